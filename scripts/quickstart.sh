#!/usr/bin/env bash
# The whole road on the bundled corpus: set up, build, make the corpus, train, average, translate, score. No GPU is needed.
#
#   scripts/quickstart.sh
#
# Leaves the run in runs/bundled. A second start neither installs nor builds, and goes on where the first one stopped.
set -euo pipefail
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "scripts/quickstart.sh: unknown argument \"$argument\"; it takes none" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."

scripts/setup.sh
scripts/build.sh cpu lacuna
lacuna=build/cpu/lacuna

corpus=data/bundled
run=runs/bundled
python3 data/generate.py --out "$corpus"

echo "== Training (configs/bundled/base.yaml -> $run)" >&2
"$lacuna" train -c configs/bundled/base.yaml
echo "== Averaging the last checkpoints -> $run/averaged" >&2
"$lacuna" average --last 5 -o "$run/averaged" "$run"
echo "== Translating $corpus/test.de" >&2
"$lacuna" translate -m "$run/averaged" -i "$corpus/test.de" -o "$run/test.hyp.en"
echo "== Scoring" >&2
"$lacuna" evaluate --hyp "$run/test.hyp.en" --ref "$corpus/test.en" --tgt-lang en

echo
echo "Samples (source, translation, reference):"
for line in 1 2 3; do
  for file in "$corpus/test.de" "$run/test.hyp.en" "$corpus/test.en"; do sed -n "${line}p" "$file"; done
  echo
done
cat <<END
Go on:
  echo 'Der Kollege hat um zehn Uhr das Kissen auf den Stuhl gestellt.' | $lacuna translate -m $run/averaged
  $lacuna info -m $run/averaged
  $lacuna train -c configs/bundled/rela.yaml        # another attention type
  $lacuna train -c configs/multi30k_de_en/small.yaml   # a real corpus: scripts/get_multi30k.sh says where it is to be had
END
