#!/usr/bin/env bash
# Feeds the program with broken files: targets of libFuzzer for each format, then changed checkpoints and runs.
#   scripts/fuzz.sh                  10 seconds of each
#   scripts/fuzz.sh --seconds N      N seconds of each
#   scripts/fuzz.sh --target NAME    one target (yaml, lines, ...; folders = changed checkpoints and runs)
#   scripts/fuzz.sh --record FILE    adds a line of JSON to FILE for each target of libFuzzer; seconds that are there count: for hours, as in:
#                                    nice -n 19 setsid scripts/fuzz.sh --seconds 1200 --record fuzz.jsonl &
# Inputs that break something stay in build/fuzz/found.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
seconds=10 target="" record=""
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds=${2:?--seconds needs a number} ;;
    --target) target=${2:?--target needs a name} ;;
    --record) record=${2:?--record needs a file} ;;
    *) echo "scripts/fuzz.sh: $1 is not known; see --help" >&2; exit 2 ;;
  esac
  shift 2
done
if ! command -v clang++ >/dev/null; then
  echo "scripts/fuzz.sh needs clang++: sudo apt-get install clang libclang-rt-dev" >&2
  exit 1
fi
found=$PWD/build/fuzz/found
mkdir -p "$found"
failed=0
if [ "$target" != folders ]; then
  [ -f build/fuzz/build.ninja ] || cmake --preset fuzz
  cmake --build build/fuzz --target "fuzz${target:+_$target}"
  python3 tests/fuzz/make_seeds.py build/fuzz/seeds
  python3 tests/fuzz/run_targets.py build/fuzz ${target:+"$target"} --seconds "$seconds" ${record:+--record "$record"} || failed=1
  rm -rf /dev/shm/lacuna_fuzz_*
fi
if [ -z "$target" ] || [ "$target" = folders ]; then
  scripts/build.sh cpu lacuna torture_faults
  python3 tests/fuzz/mutate_folders.py build/cpu/lacuna --library build/cpu/tests/torture/libtorture_faults.so --seconds "$seconds" --seed "$RANDOM" --keep "$found" || failed=1
fi
exit "$failed"
