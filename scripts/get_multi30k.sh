#!/usr/bin/env bash
# Brings Multi30k German-English (29,000 image captions; for research and education) to data/multi30k, where configs/multi30k_de_en/ looks for it.
#
#   scripts/get_multi30k.sh                 downloads it by way of mtdata (pip install mtdata)
#   scripts/get_multi30k.sh --from FOLDER   links files that are there: FOLDER/{train,valid,test2016}.{de,en}[.gz]
set -euo pipefail
cd "$(dirname "$0")/.."
target=data/multi30k
mkdir -p "$target"

if [ "${1:-}" = --from ]; then
  source=$(realpath "${2:?--from needs a folder}")
  for part in train valid test2016; do
    for language in de en; do
      if [ -f "$source/$part.$language.gz" ]; then ln -sfn "$source/$part.$language.gz" "$target/$part.$language.gz"
      elif [ -f "$source/$part.$language" ]; then gzip -c "$source/$part.$language" > "$target/$part.$language.gz"
      else echo "scripts/get_multi30k.sh: neither $source/$part.$language nor $source/$part.$language.gz is there" >&2; exit 2; fi
    done
  done
else
  echo "scripts/get_multi30k.sh: give the files with --from FOLDER (the project's own page has them under data/task1/raw: train, val, test_2016_flickr)" >&2
  exit 2
fi
echo "$target is ready: lacuna train -c configs/multi30k_de_en/small.yaml" >&2
