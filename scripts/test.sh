#!/usr/bin/env bash
# Builds everything and runs every test: scripts/test.sh [--preset cpu|cuda|sanitize] [CTEST ARGUMENT ...], e.g. scripts/test.sh -L fast
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
preset=cpu
if [ "${1:-}" = --preset ]; then
  preset=${2:?--preset needs a name}
  shift 2
fi
if [ "$preset" = sanitize ] && ! command -v clang++ >/dev/null; then
  echo "scripts/test.sh --preset sanitize needs clang++: sudo apt-get install clang libclang-rt-dev" >&2
  exit 1
fi
scripts/setup.sh --tests
scripts/build.sh "$preset" all
ctest --preset "$preset" --no-tests=error --parallel "$(nproc)" "$@"
