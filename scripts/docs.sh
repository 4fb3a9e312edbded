#!/usr/bin/env bash
# Builds the manual into build/docs, and stops at a broken link: scripts/docs.sh; with --serve it shows the manual at http://127.0.0.1:8000 as it is edited.
set -euo pipefail
export NO_MKDOCS_2_WARNING=1  # the theme advertises its successor
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") exec .venv/bin/python -m mkdocs build --quiet --strict --site-dir build/docs ;;
  --serve) exec .venv/bin/python -m mkdocs serve ;;
  -h | --help) sed -n '2s/^# //p' "$0" ;;
  *) echo "scripts/docs.sh: unknown argument \"$1\"; known: --serve" >&2; exit 2 ;;
esac
