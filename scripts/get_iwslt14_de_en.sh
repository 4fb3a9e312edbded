#!/usr/bin/env bash
# IWSLT14 German-English, for configs/iwslt14_de_en/, in data/iwslt14_de_en. Published scores are on text prepared by fairseq's prepare-iwslt14.sh
# (Moses tokenization, lower case, joint BPE): this takes its output. Not yet run.
#
#   scripts/get_iwslt14_de_en.sh --from FOLDER   links {train,valid,test}.{de,en}[.gz] of FOLDER and makes vocab.txt, most frequent token first
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/get_files.sh
read_arguments "$@"
target=data/iwslt14_de_en
[ -n "$from" ] || { echo "scripts/get_iwslt14_de_en.sh: --from FOLDER is missing; see --help" >&2; exit 2; }
take_files "$from" "$target" {train,valid,test}.{de,en}
zcat -f "$target"/train.{de,en}* | tr ' ' '\n' | LC_ALL=C sort | LC_ALL=C uniq -c | LC_ALL=C sort -k1,1nr -k2,2 | awk 'NF == 2 {print $2}' > "$target/vocab.txt.new"
mv -f "$target/vocab.txt.new" "$target/vocab.txt"
echo "$target is ready: build/cpu/lacuna train -c configs/iwslt14_de_en/base.yaml" >&2
