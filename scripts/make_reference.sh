#!/usr/bin/env bash
# Writes the pages of the manual that the program generates: configuration and commands.
#
#   scripts/make_reference.sh [PROGRAM]           writes docs/reference/{configuration,commands}.md; the program is build/cpu/lacuna unless named
#   scripts/make_reference.sh --check [PROGRAM]   writes nothing; exit status 1 where a page differs from what the program prints
set -euo pipefail
check=no
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --check) check=yes; shift ;;
  -*) echo "scripts/make_reference.sh: unknown argument \"$1\"; known: --check" >&2; exit 2 ;;
esac
program=$(realpath -e "${1:-$(dirname "$0")/../build/cpu/lacuna}") || {
  echo "scripts/make_reference.sh: there is no program to ask; build it first: scripts/build.sh" >&2
  exit 2
}
cd "$(dirname "$0")/.."

new=$(mktemp)
trap 'rm -f "$new"' EXIT
status=0
for page in configuration commands; do
  "$program" reference "$page" > "$new"
  if [ "$check" = no ]; then
    cat "$new" > "docs/reference/$page.md"
  elif ! diff -u "docs/reference/$page.md" "$new" >&2; then
    echo "docs/reference/$page.md differs from the program; run scripts/make_reference.sh" >&2
    status=1
  fi
done
exit $status
