#!/usr/bin/env bash
# Makes this checkout ready to use on Debian 12. Does only what is missing: a second call is quick.
#
#   ./setup.sh                 what the programs need, and builds them: build/release/bin/mllmsim
#   ./setup.sh tests           also what the tests need, and builds them
#   ./setup.sh tests PRESET    the same for dev, asan-ubsan, tsan, coverage, lto, clang or fuzz, in build/PRESET
#
# 1. Debian packages (with sudo unless root)   2. Python wheels into .venv: pyarrow brings Arrow C++
# 3. cmake --preset PRESET                     4. ninja
# Talk goes to stderr, logs to build/logs. A failing step is named and its exit code returned.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
what=${1:-program}
preset=${2:-release}

packages=(
  g++ cmake ninja-build python3-venv gnuplot-nox
  libboost-graph1.81-dev libboost-json1.81-dev libboost-program-options1.81-dev
  libeigen3-dev libfmt-dev libsqlite3-dev libtomlplusplus-dev
)
wheels=(pyarrow==25.0.1)
case $what in
  program) ;;
  tests)
    packages+=(chromium clang-format-14 clang-tidy-14 libbenchmark-dev libgtest-dev librapidcheck-dev munge slurm-wlm)
    wheels+=(pandas==3.1.1 duckdb==2.0.0)
    ;;
  *)
    echo "setup.sh: expected 'program' or 'tests', not '$what'" >&2
    exit 2
    ;;
esac
case $what-$preset in  # a sanitizer's build holds what its tests run, see testPresets
  program-release) targets=(mllmsim mllmsim-calibrate) ;;
  tests-release | tests-dev) targets=(all) ;;
  tests-asan-ubsan)
    targets=(mllmsim test_{sim,cost_models,calibrate,strategies,scenarios,results,fuzz}) ;;
  tests-tsan) targets=(mllmsim test_{sim,calibrate}) ;;
  tests-coverage)
    targets=(mllmsim test_{sim,cost_models,calibrate,strategies,scenarios,results,fuzz}) wheels+=(gcovr==8.7) ;;
  tests-lto) targets=(mllmsim) ;;
  tests-clang) targets=(mllmsim) packages+=(clang-14) ;;
  tests-fuzz) targets=(fuzz) packages+=(clang-14 libclang-rt-14-dev) ;;
  *)
    echo "setup.sh: expected dev, asan-ubsan, tsan, coverage, lto, clang or fuzz, not '$preset'" >&2
    exit 2
    ;;
esac

build=$root/build/$preset
logs=$root/build/logs
stamp=$root/.venv/installed-wheels

say() { echo "setup.sh: $*" >&2; }

# step NAME COMMAND...: runs it with its output in a log, which is shown only if it fails.
step() {
  local name=$1 log=$logs/$1.log status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  [ "$status" -eq 0 ] && return
  say "step '$name' failed with exit code $status: $*"
  tail -n 30 "$log" >&2
  say "all of it: $log"
  exit "$status"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "${packages[@]}" 2>/dev/null) ||
    true  # some are not known at all
  for package in "${packages[@]}"; do
    grep -qxF "ii $package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "needs root: apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
  step apt-update as_root apt-get update
  step apt-install as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

install_wheels() {
  local wheel installed=true
  for wheel in "${wheels[@]}"; do
    grep -qsxF "$wheel" "$stamp" || installed=false
  done
  $installed && return
  say "installing ${wheels[*]} into .venv"
  step venv python3 -m venv "$root/.venv"
  step pip "$root/.venv/bin/python" -m pip install --disable-pip-version-check "${wheels[@]}"
  printf '%s\n' "${wheels[@]}" >"$stamp"
}

# The tests always configure: their packages may have come since the last time.
configure() {
  [ "$what" = program ] && [ "$build/build.ninja" -nt "$stamp" ] && return
  say "configuring $preset"
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  step "cmake-$preset" cmake -S "$root" --preset "$preset"
}

compile() {
  if [ -x "$build/bin/mllmsim" ]; then
    step "ninja-$preset" ninja -C "$build" "${targets[@]}"
    return
  fi
  say "building $preset; the first time takes some minutes"
  if [ -t 2 ]; then  # ninja shows its progress and errors
    ninja -C "$build" "${targets[@]}" >&2 || { status=$?; say "step 'ninja' failed"; exit "$status"; }
  else
    step "ninja-$preset" ninja -C "$build" "${targets[@]}"
  fi
}

mkdir -p "$logs"
exec 9>"$logs/lock"  # two calls at once take turns
flock 9
if command -v dpkg-query >/dev/null; then
  install_packages
else
  say "not a Debian system; taking these for installed: ${packages[*]}"
fi
install_wheels
configure
compile
