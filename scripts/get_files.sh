# Shared by the get_<dataset>.sh scripts, which stand in the project's folder by then.

# `read_arguments ARGUMENT...` sets `from` to the folder of `--from FOLDER`, to nothing without; --help prints the comment the script begins with.
read_arguments() {
  local script=scripts/${0##*/}
  from=
  while [ $# -gt 0 ]; do
    case "$1" in
      -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"; exit 0 ;;
      --from)
        [ -n "${2:-}" ] || { echo "$script: --from needs a folder" >&2; exit 2; }
        from=$2
        shift 2 ;;
      *) echo "$script: unknown argument \"$1\"; known: --from FOLDER" >&2; exit 2 ;;
    esac
  done
}

# `take_files FOLDER TARGET NAME...` links each NAME of FOLDER, which has it plain or as gzip, into TARGET under just that name: what reads it looks
# at what it holds. For a NAME like valid=val.de.gz it takes val.de.gz where valid.de.gz is not there. FOLDER counts from where the script was started.
take_files() {
  local folder target names name other file wanted
  target=$2
  folder=$(cd "${OLDPWD:-.}" && realpath -e "$1" 2>/dev/null) && [ -d "$folder" ] || {
    echo "$0: --from $1: there is no such folder" >&2
    exit 2
  }
  mkdir -p "$target"
  for names in "${@:3}"; do
    name=${names%%[=.]*}.${names#*.} other=${names#*=}
    for file in "$name" "${name%.gz}" "${name%.gz}.gz" "$other" "${other%.gz}" "${other%.gz}.gz"; do
      [ -f "$folder/$file" ] || continue
      ln -sfn "$folder/$file" "$target/$name"
      continue 2
    done
    wanted=${name%.gz}
    [ "$other" = "$name" ] || wanted+=" or ${other%.gz}"
    echo "$0: $folder lacks $wanted, plain or as .gz" >&2
    exit 2
  done
}

# `find_tool COMMAND HOW`: prints the command, the one of .venv or on PATH; without it stops, and says HOW to have it.
find_tool() {
  local tool=.venv/bin/$1
  [ -x "$tool" ] || tool=$(command -v "$1") || {
    echo "$0: needs the command $1: $2 (or give files that are there: $0 --from FOLDER)" >&2
    exit 1
  }
  echo "$tool"
}

# `link_file TARGET FILE NAME`: NAME of the folder TARGET is FILE of it, which a download must have left there.
link_file() {
  [ -e "$1/$2" ] || {
    echo "$0: the download left no $1/$2; look at what it says, or give files that are there: $0 --from FOLDER" >&2
    exit 1
  }
  ln -sfn "$2" "$1/$3"
}
