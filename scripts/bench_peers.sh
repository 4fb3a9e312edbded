#!/usr/bin/env bash
# Lacuna and its peers at the same work, on Multi30k, in turn: tables of ratios in Markdown.
#
#   scripts/bench_peers.sh --python PYTHON [--model runs/multi30k/small] [--shape small|base] [--precision fp32,bf16|none] [--threads 2] [--rounds 3]
#                          [--steps 30] [--device cpu] [--data data/multi30k] [--folder runs/bench_peers] [--one-by-one] [--length 0]
#
# PYTHON is one that has torch and sentencepiece, and of the peers transformers (MarianMT) and ctranslate2: those it lacks are left out, and said so.
# Training needs the corpus alone (scripts/get_multi30k.sh), and --precision none leaves it out; translating needs a trained model with softmax attention,
# whose weights both engines get. --one-by-one measures one sentence after the other alone, with beam 5 and 1; --length 20 makes both engines take so many
# steps for each, for a model that was hardly trained and never ends a sentence.
# On the CPU, Lacuna trains in bf16x3 beside the peers' fp32, too. --device is that of training: cpu, cuda or cuda:N.
# Nothing else should run beside it: one more busy process halves what two threads do.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python= data=$root/data/multi30k folder=$root/runs/bench_peers device=cpu options=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --one-by-one) options+=("$1"); shift ;;
    --python | --model | --shape | --precision | --threads | --rounds | --steps | --device | --data | --folder | --length)
      [ $# -ge 2 ] || { echo "scripts/bench_peers.sh: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --python) python=$2 ;;
        --data) data=$2 ;;
        --folder) folder=$2 ;;
        --device) device=$2 ;;
        *) options+=("$1" "$2") ;;
      esac
      shift 2 ;;
    *) echo "scripts/bench_peers.sh: unknown argument \"$1\"; see --help" >&2; exit 2 ;;
  esac
done
. "$root/scripts/bench_tools.sh"
lacuna=$(find_lacuna "$device")
python=$(find_python "$python" torch sentencepiece)
for file in {train,test2016}.{de,en}.gz; do
  [ -f "$data/$file" ] || { echo "scripts/bench_peers.sh: $data/$file is missing; scripts/get_multi30k.sh --from FOLDER links it" >&2; exit 1; }
done
exec python3 "$root/scripts/peers/side_by_side.py" --lacuna "$lacuna" --python "$python" --data "$data" --folder "$folder" --device "$device" "${options[@]}"
