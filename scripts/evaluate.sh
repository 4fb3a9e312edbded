#!/usr/bin/env bash
# Scores a translation with sacreBLEU (BLEU, chrF, TER and their signatures):
#
#   scripts/evaluate.sh HYPOTHESES REFERENCES [OPTION OF lacuna evaluate ...]
#   scripts/evaluate.sh runs/bundled/test.hyp.en data/bundled/test.en --tgt-lang en
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
if [ $# -lt 2 ]; then
  echo "usage: scripts/evaluate.sh HYPOTHESES REFERENCES [OPTION OF lacuna evaluate ...]" >&2
  exit 2
fi
. "$(dirname "$0")/bench_tools.sh"
lacuna=$(find_lacuna)
exec "$lacuna" evaluate --hyp "$1" --ref "$2" "${@:3}"
