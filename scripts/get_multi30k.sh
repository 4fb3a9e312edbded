#!/usr/bin/env bash
# Multi30k German-English (29,000 image captions; for research and education), for configs/multi30k_de_en/, in data/multi30k.
#
#   scripts/get_multi30k.sh --from FOLDER   links {train,valid,test2016}.{de,en}[.gz] of FOLDER, which may have them as val and test_2016_flickr:
#                                           data/task1/raw of the project's own repository (multi30k/dataset) does
#   scripts/get_multi30k.sh                 brings test2016 by way of sacreBLEU; training and validation text have to be given with --from
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/get_files.sh
read_arguments "$@"
target=data/multi30k
if [ -n "$from" ]; then
  take_files "$from" "$target" {train,valid=val,test2016=test_2016_flickr}.{de,en}.gz
  echo "$target is ready: build/cpu/lacuna train -c configs/multi30k_de_en/small.yaml" >&2
  exit 0
fi
sacrebleu=$(find_tool sacrebleu scripts/setup.sh)
mkdir -p "$target"
# sacreBLEU knows the set from English to German. What was there before, links perhaps, is replaced once all is there.
new=$(mktemp -d "$target/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
"$sacrebleu" -t multi30k/2016 -l en-de --echo ref | gzip > "$new/test2016.de.gz"
"$sacrebleu" -t multi30k/2016 -l en-de --echo src | gzip > "$new/test2016.en.gz"
mv -f "$new"/test2016.{de,en}.gz "$target"
if ls "$target"/{train,valid}.{de,en}.gz >/dev/null 2>&1; then
  echo "$target has test2016; train and valid were there" >&2
  exit 0
fi
echo "$target has test2016; train and valid are not to be had from a package: scripts/get_multi30k.sh --from FOLDER" >&2
exit 1
