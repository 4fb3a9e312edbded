#!/usr/bin/env bash
# Proves that nothing is lost: lets every operation on files of small runs fail in every way, and starts the same command again.
#   scripts/torture.sh                     a part of the operations of each scenario, a minute
#   scripts/torture.sh --all               all of them: some minutes
#   scripts/torture.sh --scenario NAME     one scenario (--list names them); --case NUMBER:KIND one fault of it
#   scripts/torture.sh --kills N           SIGKILL at N random moments, and other signals
#   scripts/torture.sh --record FILE       adds a line of JSON to FILE for each result, and does not seek again what is in it: a walk that is
#                                          stopped goes on where it was, as long as the program stays as it is
#   scripts/torture.sh --jobs N            so many at once; as many as there are CPUs unless given
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,$s/^# \{0,1\}//p;/^set/q' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."
scripts/build.sh cpu lacuna torture_faults
exec python3 tests/torture/torture.py build/cpu/lacuna build/cpu/tests/torture/libtorture_faults.so "$@"
