# run_nvcc.sh NOTES COMMAND...: runs nvcc, whose ptxas speaks at length, into a file; shows it only where nvcc fails.
notes=$1
shift
"$@" >"$notes" 2>&1 || {
  cat "$notes" >&2
  exit 1
}
