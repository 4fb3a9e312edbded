#!/usr/bin/env bash
# Builds with a preset of CMakePresets.json: scripts/build.sh [PRESET] [TARGET ...]; the default is `cpu lacuna`. Configures once, and again when the presets change.
set -euo pipefail
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;;
    -*) echo "scripts/build.sh: unknown argument \"$argument\"; see --help" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
preset=${1:-cpu}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(lacuna)
if [ ! -f "build/$preset/build.ninja" ] || [ CMakePresets.json -nt "build/$preset/CMakeCache.txt" ]; then
  cmake --preset "$preset" >&2
fi
cmake --build "build/$preset" --target "${targets[@]}" >&2
