#!/usr/bin/env bash
# Formats every C++ source with clang-format 14: scripts/format.sh; with --check it only says which files are not formatted, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=-i
[ "${1:-}" != --check ] || mode='--dry-run --Werror'
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format $mode
