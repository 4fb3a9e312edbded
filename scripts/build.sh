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

# fitting_jobs: how many compilers the free memory holds, 2 GiB each (a batch of sources with LibTorch's headers takes up to 1.8).
fitting_jobs() {
  local free limit file
  free=$(awk '/^MemAvailable:/ {printf "%.0f", $2 * 1024}' /proc/meminfo)
  for file in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    limit=$(cat "$file" 2>/dev/null || true)
    case "$limit" in '' | *[!0-9]*) continue ;; esac
    [ ${#limit} -ge 19 ] || [ "$limit" -ge "$free" ] || free=$limit # 19 digits: no limit
  done
  echo $((free < 2 << 30 ? 1 : free >> 31))
}

# A project that was copied or moved with its build folder is configured from nothing.
build=build/$preset
home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
if [ -n "$home" ] && [ ! "$home" -ef . ]; then
  cmake --fresh --preset "$preset" >&2
  touch "$build/configured"
elif [ ! -f "$build/build.ninja" ] || [ ! -f "$build/configured" ] || [ CMakePresets.json -nt "$build/configured" ]; then
  cmake --preset "$preset" >&2
  touch "$build/configured" # CMake writes its own files only where they change
fi

# Ninja starts two more compilers than there are cores, or as many as CMAKE_BUILD_PARALLEL_LEVEL says.
parallel=()
if [ -z "${CMAKE_BUILD_PARALLEL_LEVEL:-}" ]; then
  jobs=$(fitting_jobs)
  [ "$jobs" -ge $(($(getconf _NPROCESSORS_ONLN) + 2)) ] || parallel=(--parallel "$jobs")
fi
cmake --build "$build" "${parallel[@]}" --target "${targets[@]}" >&2
