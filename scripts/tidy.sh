#!/usr/bin/env bash
# clang-tidy over the sources, by .clang-tidy; silent if it finds nothing.
#
#   scripts/tidy.sh            every source of src/
#   scripts/tidy.sh FILE ...   these
#
# Reads how a file is compiled from build/cpu, which it configures where it has to be.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/cpu/build.ninja ] || cmake --preset cpu >&2

# clang-tidy can't read GCC's precompiled header: it reads the header itself.
commands=build/cpu/tidy
mkdir -p "$commands"
sed -E "s@-Winvalid-pch@@; s@-include [^ ]*cmake_pch.hxx@-include $PWD/src/base/libtorch.h@; s@-fno-math-errno@@" \
  build/cpu/compile_commands.json > "$commands/compile_commands.json"

files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files 'src/*.cpp')
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$commands" --quiet 2> >(grep -v -E '^[0-9]+ warnings? generated|^Suppressed |^Use -header-filter' >&2)
