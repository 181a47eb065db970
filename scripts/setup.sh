#!/usr/bin/env bash
# Installs what a fresh Debian 12 or 13 machine lacks (Debian's and PyPI's packages only) and makes
# .venv. Sourced by ./test, ./quickstart and .ci/run:  setup_system [extra packages]; setup_python
# [extras]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian 12's own Boost is too old, and 1.81 lies beside it; later ones have a newer one.
boost=libboost-dev
grep -qs '^VERSION_ID="12"' /etc/os-release && boost=libboost1.81-dev
SYSTEM_PACKAGES=(g++ clang-19 cmake ninja-build ccache mold git pkg-config python3 python3-dev python3-venv
  "$boost" libssl-dev capnproto libcapnp-dev libabsl-dev libsqlite3-dev libhwloc-dev
  libgtest-dev libgmock-dev librapidcheck-dev)

TEST_EXTRAS=examples,test,notebook,data,dashboard,browser # what all tests need of pyproject.toml's

step() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

setup_system() {
  local missing=() package
  for package in "${SYSTEM_PACKAGES[@]}" "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null ||
    fail "these packages are missing and this is no Debian system: ${missing[*]}"
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "installing ${missing[*]} needs root: run as root or install sudo"
    sudo=sudo
  fi
  step "installing ${#missing[@]} Debian packages: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# setup_python examples,test: .venv with the project's own dependencies and these extras.
setup_python() {
  local extras=$1 stamp
  stamp=$( (cat pyproject.toml; echo "$extras") | sha256sum | cut -c1-16)
  if [ ! -x .venv/bin/python ]; then
    step "making .venv with $(/usr/bin/python3 --version)"
    /usr/bin/python3 -m venv .venv
  fi
  [ -f ".venv/.deps-$stamp" ] && return
  step "installing Python packages (torch is the large one)"
  .venv/bin/python scripts/requirements.py "$extras" > .venv/requirements.txt
  .venv/bin/python -m pip install -q --disable-pip-version-check -r .venv/requirements.txt
  touch ".venv/.deps-$stamp"
}

# venv_beside NAME [EXTRAS]: .venv-NAME, which sees what .venv has, with these extras (NAME); as
# `venv`. Nothing where its file `stamp` says that it has what pyproject.toml says.
venv_beside() {
  local packages='import sysconfig; print(sysconfig.get_path("purelib"))'
  venv=.venv-$1
  stamp=$venv/.deps-$( (cat pyproject.toml; .venv/bin/python -VV) | sha256sum | cut -c1-16)
  [ ! -f "$stamp" ] || return 0
  step "installing $1 into $venv"
  [ -x "$venv/bin/python" ] || .venv/bin/python -m venv "$venv"
  .venv/bin/python -c "$packages" >"$("$venv/bin/python" -c "$packages")/troupe-venv.pth"
  .venv/bin/python scripts/requirements.py "${2:-$1}" >"$venv/requirements.txt"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$venv/requirements.txt"
}

# setup_frameworks: .venv-frameworks, which sees what .venv has and adds what tests/frameworks and
# tests/doors/real_ray need. DeepSpeed is built here, with its one operator for CPUs; where that
# fails its tests are skipped, and the log says why.
setup_frameworks() {
  local venv stamp
  venv_beside frameworks frameworks,ray
  [ ! -f "$stamp" ] || return 0
  .venv/bin/python scripts/requirements.py deepspeed >"$venv/deepspeed.txt"
  DS_ACCELERATOR=cpu DS_BUILD_SHM_COMM=1 "$venv/bin/python" -m pip install --disable-pip-version-check --no-build-isolation \
    -r "$venv/deepspeed.txt" >"$venv/deepspeed.log" 2>&1 || step "DeepSpeed could not be installed: $(tail -1 "$venv/deepspeed.log")"
  touch "$stamp"
}

# setup_tensorflow: .venv-tensorflow, for the trainings of tests/frameworks/tensorflow.
setup_tensorflow() {
  local venv stamp
  venv_beside tensorflow
  touch "$stamp"
}

# suite NAME COMMAND...: runs it. Where TROUPE_SUITES names a folder, what it printed and how it
# ended are kept there, in NAME.out and NAME.status; `suite_xml NAME FLAG` makes `xml` the arguments
# that put its report into NAME.xml, or none. For scripts/ci_verdict.py.
suite() {
  local name=$1 status=0; shift
  if [ -z "${TROUPE_SUITES:-}" ]; then "$@"; return; fi
  "$@" 2>&1 | tee "$TROUPE_SUITES/$name.out" || status=${PIPESTATUS[0]}
  echo "$status" >"$TROUPE_SUITES/$name.status"
  return "$status"
}
suite_xml() { xml=(); [ -z "${TROUPE_SUITES:-}" ] || xml=("$2" "$TROUPE_SUITES/$1.xml"); }

# pytest_on PRESET SUITE ARGS...: pytest on what is built in build/PRESET. A suite pytest-dev.NAME
# has the environment .venv-NAME.
pytest_on() {
  local build=$PWD/build/$1 name=$2 venv=.venv; shift 2
  [[ $name != *.* ]] || venv=.venv-${name#*.}
  suite_xml "$name" --junit-xml
  PYTHONPATH="$build/python" TROUPE_BIN_DIR="$build/bin" suite "$name" \
    "$venv/bin/python" -m pytest -o junit_family=xunit1 "${xml[@]}" "$@"
}

# build_preset dev [targets...]: configures and builds, compiler output kept to what matters. With
# TROUPE_TOGETHER set eight files are compiled as one, for a build that is made once.
build_preset() {
  local preset=$1; shift
  local python=$PWD/.venv/bin/python; [ -x "$python" ] || python=/usr/bin/python3
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # checkouts beside each other share the cache
  export CCACHE_DEPEND=1  # a file that is not in the cache is not preprocessed once more for it
  local together=(); [ -z "${TROUPE_TOGETHER:-}" ] ||
    together=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8)
  step "building ($preset)"
  cmake --preset "$preset" -DPython_EXECUTABLE="$python" "${together[@]}" \
    >"build-$preset.log" 2>&1 ||
    { tail -30 "build-$preset.log" >&2; fail "cmake could not configure (log: build-$preset.log)"; }
  local targets=(); [ $# -gt 0 ] && targets=(--target "$@")
  cmake --build "build/$preset" "${targets[@]}" >>"build-$preset.log" 2>&1 ||
    { grep -E -A6 'error|FAILED' "build-$preset.log" | tail -60 >&2; fail "the build failed (log: build-$preset.log)"; }
}
