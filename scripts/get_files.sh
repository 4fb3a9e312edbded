# Shared by the get_<dataset>.sh scripts, which stand in the project's folder by then.
#
# `take_files FOLDER TARGET NAME...` links each NAME of FOLDER, which has it plain or as gzip, into TARGET under just that name: what reads it looks
# at what it holds. FOLDER counts from where the script was started.
take_files() {
  local folder target name plain
  folder=$(cd "${OLDPWD:-.}" && realpath "$1") target=$2
  mkdir -p "$target"
  for name in "${@:3}"; do
    plain=${name%.gz}
    if [ -f "$folder/$name" ]; then ln -sfn "$folder/$name" "$target/$name"
    elif [ -f "$folder/$plain" ]; then ln -sfn "$folder/$plain" "$target/$name"
    elif [ -f "$folder/$plain.gz" ]; then ln -sfn "$folder/$plain.gz" "$target/$name"
    else
      echo "$0: neither $folder/$plain nor $folder/$plain.gz is there" >&2
      exit 2
    fi
  done
}

# `need COMMAND PACKAGE`: stops with what to install if COMMAND is not there.
need() {
  command -v "$1" >/dev/null || {
    echo "$0: needs the command $1: pip install $2 (or give files that are there: $0 --from FOLDER)" >&2
    exit 1
  }
}
