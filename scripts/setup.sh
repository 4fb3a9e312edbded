#!/usr/bin/env bash
# Installs what Lacuna is built from: Debian packages, and LibTorch and sacreBLEU in a virtual environment inside the project (.venv).
#
#   scripts/setup.sh            what the program needs, and GoogleTest; CPU only
#   scripts/setup.sh --tests    also what the tests and checks need (clang-format, clang-tidy, TensorBoard, MkDocs for the
#                               manual, nanobind for the Python package, and a headless Chromium, 98 MB to fetch and
#                               306 MB on disk, that opens the report)
#   scripts/setup.sh --cuda     LibTorch with its CUDA libraries (4.6 GB) in place of the slim CPU set (1.3 GB)
#
# Does nothing, in under 2 seconds, when all is there.
set -euo pipefail

tests=no cuda=no
for argument in "$@"; do
  case "$argument" in
    --tests) tests=yes ;;
    --cuda) cuda=yes ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "scripts/setup.sh: unknown argument \"$argument\"; known: --tests --cuda" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."

if [ "$(uname -m)" != x86_64 ] || ! grep -qw avx2 /proc/cpuinfo; then
  echo "scripts/setup.sh: this processor ($(uname -m)) cannot run Lacuna; expected x86-64 with AVX2 (Haswell or later)" >&2
  exit 1
fi

packages=(g++ cmake ninja-build pkg-config git ca-certificates python3 python3-venv
  libsentencepiece-dev libyaml-cpp-dev libcli11-dev libspdlog-dev libhwy-dev nlohmann-json3-dev zlib1g-dev libzstd-dev libxxhash-dev
  libjemalloc-dev libssl-dev libboost-dev libicu-dev libgtest-dev libgmock-dev)
[ "$tests" = no ] || packages+=(clang-format python3-dev)
# Ubuntu has no such package; the test that opens the report is skipped there.
[ "$tests" = no ] || grep -qsE '^ID(_LIKE)?=.*ubuntu' /etc/os-release || packages+=(chromium-headless-shell)

install_packages() {
  local missing=()
  local status
  status=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qx "$package installed" <<<"$status" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      printf 'scripts/setup.sh: these Debian packages are missing and this user may not install them:\n  %s\n' "${missing[*]}" >&2
      printf 'Install them by hand, then run this again:\n  sudo apt-get install %s\n' "${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo env)
    local proxy
    for proxy in http_proxy https_proxy no_proxy; do  # which sudo leaves out
      [ -z "${!proxy:-}" ] || as_root+=("$proxy=${!proxy}")
    done
  fi
  echo "Installing Debian packages: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null  # a machine that was just started may be installing updates
}

# is_whole: the environment runs (one whose Python is gone or was replaced, as by an upgrade of Debian, does not) and has what it was made for.
is_whole() {
  .venv/bin/python -c 'from importlib.util import find_spec; raise SystemExit(not (find_spec("torch") and find_spec("sacrebleu")))' 2>/dev/null
}

# wanted_stamp: what an up-to-date .venv was made from.
wanted_stamp() {
  echo "cuda=$cuda"
  cat requirements.txt requirements-torch.txt
  [ "$tests" = no ] || cat requirements-test.txt requirements-docs.txt requirements-python.txt
}

install_environment() {
  # An environment that holds more than is asked for (the CUDA libraries, the test packages) serves too.
  local have wanted
  wanted=$(wanted_stamp)
  have=$(is_whole && cat .venv/lacuna-setup 2>/dev/null || true)
  [ "$have" != "$wanted" ] || return 0
  if [ "$tests" = no ] && [ "$have" = "$(tests=yes; wanted_stamp)" ]; then return 0; fi
  if [ "$cuda" = no ] && [ "$have" = "$(cuda=yes; wanted_stamp)" ]; then return 0; fi
  if [ "$tests$cuda" = nono ] && [ "$have" = "$(cuda=yes; tests=yes; wanted_stamp)" ]; then return 0; fi
  # Never take test packages or CUDA libraries away again: all builds share the environment.
  if grep -qs tensorboard .venv/lacuna-setup; then tests=yes; fi
  if grep -qs '^cuda=yes' .venv/lacuna-setup; then cuda=yes; fi
  echo "Installing LibTorch and sacreBLEU into .venv" >&2
  .venv/bin/python -m pip --version >/dev/null 2>&1 || python3 -m venv --clear .venv  # one that was interrupted has no pip
  local pip=(.venv/bin/python -m pip install -q --disable-pip-version-check)
  if [ "$cuda" = yes ]; then
    "${pip[@]}" "$(grep '^torch==' requirements-torch.txt)"
  else
    "${pip[@]}" --no-deps -r requirements-torch.txt
  fi
  "${pip[@]}" -r requirements.txt
  [ "$tests" = no ] || "${pip[@]}" -r requirements-test.txt -r requirements-docs.txt -r requirements-python.txt
  wanted_stamp > .venv/lacuna-setup
}

install_packages
install_environment
