# Shared by the get_<dataset>.sh scripts: `take_files FOLDER TARGET NAME...` links each NAME or NAME.gz of FOLDER into TARGET, as the same kind of file.
take_files() {
  local folder target name
  folder=$(realpath "$1") target=$2
  mkdir -p "$target"
  for name in "${@:3}"; do
    if [ -f "$folder/$name" ]; then ln -sfn "$folder/$name" "$target/$name"
    elif [ -f "$folder/$name.gz" ]; then ln -sfn "$folder/$name.gz" "$target/$name.gz"
    else
      echo "$0: neither $folder/$name nor $folder/$name.gz is there" >&2
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
