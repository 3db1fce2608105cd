#!/usr/bin/env bash
# Builds everything and runs the tests.
#
#   ./test.sh              what CI runs: all tests in release, then unit tests and golden under asan and ubsan
#   ./test.sh --quick      in release only
#   ./test.sh --all        also what has threads under tsan, and the linker's look for one name defined twice
#   ./test.sh -R results   ctest's arguments: in release only, unless --all stands before them
# The first that fails ends it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
case ${1:-} in
  --quick) presets=(release); shift ;;
  --all) presets=(release asan-ubsan tsan lto); shift ;;
  '') presets=(release asan-ubsan) ;;
  *) presets=(release) ;;
esac

for preset in "${presets[@]}"; do
  ./setup.sh tests "$preset"
  ctest --preset "$preset" -j 2 "$@"
done
