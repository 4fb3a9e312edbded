#!/usr/bin/env bash
# The attention operation alone, Lacuna's and eager PyTorch's with the package entmax, one after the other: a table of ratios in Markdown.
#
#   scripts/bench_attention.sh [--python PYTHON] [--lengths 32,128,512,2048] [--dtype fp32,bf16] [--threads 2] [--rounds 7] [--device cpu] [--causal]
#
# PYTHON is one that has torch and entmax (default: .venv/bin/python, else python3).
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
python= options=() threads=2 device=cpu
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --python | --lengths | --dtype | --threads | --rounds | --device)
      [ $# -ge 2 ] || { echo "scripts/bench_attention.sh: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --python) python=$2 ;;
        --threads) threads=$2 ;;
        --device) device=$2 ;;
        *) options+=("$1" "$2") ;;
      esac
      shift 2 ;;
    --causal) options+=("$1"); shift ;;
    *) echo "scripts/bench_attention.sh: unknown argument \"$1\"; see --help" >&2; exit 2 ;;
  esac
done
. "$folder/bench_tools.sh"
bench=$(find_lacuna "$device" lacuna-bench)
python=$(find_python "$python" torch entmax)
ours=$(mktemp)
trap 'rm -f "$ours"' EXIT
echo "== Lacuna" >&2
"$bench" attention --threads "$threads" --device "$device" "${options[@]}" --json > "$ours"
echo "== eager PyTorch" >&2
"$python" "$folder/bench_attention_peers.py" --threads "$threads" --device "$device" "${options[@]}" --beside "$ours"
