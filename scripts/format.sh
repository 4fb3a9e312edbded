#!/usr/bin/env bash
# Formats every C++ source with clang-format 14: scripts/format.sh; with --check it only says which files are not formatted, and fails.
set -euo pipefail
mode=-i
for argument in "$@"; do
  case "$argument" in
    --check) mode='--dry-run --Werror' ;;
    -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;;
    *) echo "scripts/format.sh: unknown argument \"$argument\"; known: --check" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
find src tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | xargs clang-format $mode
