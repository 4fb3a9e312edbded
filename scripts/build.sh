#!/usr/bin/env bash
# Builds with a preset of CMakePresets.json: scripts/build.sh [PRESET] [TARGET ...]; the default is `cpu lacuna`. Configures once.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-cpu}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(lacuna)
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >&2
cmake --build "build/$preset" --target "${targets[@]}" >&2
