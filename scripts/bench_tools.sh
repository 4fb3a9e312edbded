# For the scripts that measure and score: where the program is, and a Python that has what is asked for. To be sourced.

# find_lacuna [DEVICE [lacuna-bench]]: prints the program, lacuna or lacuna-bench, that was built for it.
find_lacuna() {
  local preset=cpu program=${2:-lacuna} built
  case "${1:-cpu}" in cuda*) preset=cuda ;; esac
  built=$(dirname "${BASH_SOURCE[0]}")/../build/$preset/$program
  [ -x "$built" ] || built=$(command -v "$program") || { echo "$program is not built; run scripts/build.sh $preset ${program/-/_}" >&2; return 1; }
  echo "$built"
}

# find_python PYTHON_OR_EMPTY PACKAGE ...: prints it, or says which packages it lacks.
find_python() {
  local python=$1 missing=()
  shift
  if [ -z "$python" ]; then
    python=$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/python
    [ -x "$python" ] || python=python3
  fi
  command -v "$python" >/dev/null || { echo "there is no $python; give one with --python" >&2; return 1; }
  local package
  for package in "$@"; do
    "$python" -c "import sys; sys.path[:] = [p for p in sys.path if p]; import importlib.util; sys.exit(importlib.util.find_spec('$package') is None)" || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "$python lacks the packages: ${missing[*]}; give a Python that has them with --python" >&2
    return 1
  fi
  echo "$python"
}
