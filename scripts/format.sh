#!/usr/bin/env bash
# Formats every C++ source with clang-format 14: scripts/format.sh; with --check it only says which files are not formatted, and fails.
set -euo pipefail
mode=(-i)
for argument in "$@"; do
  case "$argument" in
    --check) mode=(--dry-run --Werror) ;;
    -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;;
    *) echo "scripts/format.sh: unknown argument \"$argument\"; known: --check" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
# Other versions break lines elsewhere.
for program in clang-format-14 clang-format; do
  case "$("$program" --version 2>/dev/null || true)" in *' version 14.'*) break ;; esac
  program=
done
if [ -z "$program" ]; then
  echo "scripts/format.sh: needs clang-format 14, which is not installed; Debian 12 and Ubuntu 24.04 have it: sudo apt-get install clang-format-14" >&2
  exit 77
fi
find src python tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | xargs "$program" "${mode[@]}"
