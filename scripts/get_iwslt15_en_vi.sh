#!/usr/bin/env bash
# IWSLT15 English-Vietnamese (133,000 pairs), for configs/iwslt15_en_vi/, in data/iwslt15_en_vi. Not yet run.
#
#   scripts/get_iwslt15_en_vi.sh                 downloads by way of mtdata (pipx install mtdata)
#   scripts/get_iwslt15_en_vi.sh --from FOLDER   links {train,tst2012,tst2013}.{en,vi}[.gz] of FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/get_files.sh
read_arguments "$@"
target=data/iwslt15_en_vi
if [ -n "$from" ]; then
  take_files "$from" "$target" {train,tst2012,tst2013}.{en,vi}
else
  mtdata=$(find_tool mtdata "pipx install mtdata")
  "$mtdata" get -l eng-vie -tr StanfordNLP-iwslt15_train-1-eng-vie -dv StanfordNLP-test2012-1-eng-vie -ts StanfordNLP-test2013-1-eng-vie --merge -o "$target"
  for language in en:eng vi:vie; do
    link_file "$target" "train.${language#*:}" "train.${language%:*}"
    link_file "$target" "dev.${language#*:}" "tst2012.${language%:*}"
    link_file "$target" "test1.${language#*:}" "tst2013.${language%:*}"
  done
fi
echo "$target is ready: build/cpu/lacuna train -c configs/iwslt15_en_vi/base.yaml" >&2
