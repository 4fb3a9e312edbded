#!/usr/bin/env bash
# Builds everything and runs every test: scripts/test.sh [--preset cpu|cuda|sanitize|tsan] [CTEST ARGUMENT ...], e.g. scripts/test.sh -L fast
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
preset=cpu
if [ "${1:-}" = --preset ]; then
  preset=${2:?--preset needs a name}
  shift 2
fi
target=all
case "$preset" in
  sanitize) packages="clang libclang-rt-dev libomp-dev" ;;
  tsan) packages="clang libclang-rt-dev libomp-dev" target=threaded_tests ;; # LibTorch is not instrumented: what has no threads of ours says nothing
  *) packages="" ;;
esac
if [ -n "$packages" ] && ! command -v clang++ >/dev/null; then
  echo "scripts/test.sh --preset $preset needs clang++: sudo apt-get install $packages" >&2
  exit 1
fi
# Tests share the CPUs: threads of OpenMP that wait for others sleep at once.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
scripts/setup.sh --tests
scripts/build.sh "$preset" "$target"
ctest --preset "$preset" --no-tests=error --parallel "$(nproc)" "$@"
