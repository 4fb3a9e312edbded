#!/usr/bin/env bash
# WMT14 English-German (about 4.5 million pairs), for configs/wmt14_en_de/, in data/wmt14_en_de. Not yet run.
#
#   scripts/get_wmt14_en_de.sh                 training text by way of mtdata (pipx install mtdata), newstest2013 and 2014 by way of sacreBLEU
#   scripts/get_wmt14_en_de.sh --from FOLDER   links {train,newstest2013,newstest2014}.{en,de}[.gz] of FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/get_files.sh
read_arguments "$@"
target=data/wmt14_en_de
if [ -n "$from" ]; then
  take_files "$from" "$target" train.{en,de}.gz {newstest2013,newstest2014}.{en,de}
else
  mtdata=$(find_tool mtdata "pipx install mtdata")
  sacrebleu=$(find_tool sacrebleu scripts/setup.sh)
  # News Commentary 9 itself is not in mtdata's index: its version 14 (no newer test set is used) stands in.
  "$mtdata" get -l eng-deu -tr Statmt-europarl-7-deu-eng Statmt-commoncrawl_wmt13-1-deu-eng Statmt-news_commentary-14-deu-eng --merge --compress -o "$target"
  link_file "$target" train.eng.gz train.en.gz
  link_file "$target" train.deu.gz train.de.gz
  new=$(mktemp -d "$target/new.XXXXXX") # what was there before, links perhaps, is replaced once all is there
  trap 'rm -rf "$new"' EXIT
  for year in 13 14; do
    "$sacrebleu" -t "wmt$year" -l en-de --echo src > "$new/newstest20$year.en"
    "$sacrebleu" -t "wmt$year" -l en-de --echo ref > "$new/newstest20$year.de"
  done
  mv -f "$new"/newstest* "$target"
fi
echo "$target is ready: build/cpu/lacuna train -c configs/wmt14_en_de/base.yaml" >&2
