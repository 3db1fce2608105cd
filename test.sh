#!/usr/bin/env bash
# Builds everything and runs the tests.
#
#   ./test.sh              what CI runs: all tests in release, all but the slowest under asan and ubsan, and the linker's
#                          look for one name defined twice (-flto -Werror=odr)
#   ./test.sh --quick      in release only
#   ./test.sh --all        also what has threads under tsan, all faults, and whether all these builds write the same bytes
#   ./test.sh -R results   ctest's arguments: in release only, unless --all stands before them
# The first that fails ends it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
case ${1:-} in
  --quick) presets=(release); shift ;;
  --all) presets=(release asan-ubsan tsan lto); export MLLMSIM_ALL_FAULTS=1; shift ;;
  '') presets=(release asan-ubsan lto) ;;
  *) presets=(release) ;;
esac

for preset in "${presets[@]}"; do
  ./setup.sh tests "$preset"
  ctest --preset "$preset" -j 2 "$@"
done
if [ ${#presets[@]} -gt 3 ] && [ $# -eq 0 ]; then  # all builds simulate the same events
  .venv/bin/python -B tests/golden/digest_test.py "${presets[@]/#/build/}"
fi
