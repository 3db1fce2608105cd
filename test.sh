#!/usr/bin/env bash
# Builds everything and runs the tests.
#
#   ./test.sh              what CI runs: all tests in release with clang-format and clang-tidy, all but the slowest under asan
#                          and ubsan, what has threads under tsan, and the linker's look for one name defined twice
#                          (-flto -Werror=odr)
#   ./test.sh --quick      in release only
#   ./test.sh --all        also all faults, and whether all these builds write the same bytes
#   ./test.sh --coverage   how much of each folder the tests reach, without CUDA; build/coverage/coverage.html has the lines
#   ./test.sh -R results   ctest's arguments: in release only, unless --all stands before them
# The first that fails ends it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
all=
case ${1:-} in
  --quick) presets=(release); shift ;;
  --all) presets=(release asan-ubsan tsan lto); all=yes; export MLLMSIM_ALL_FAULTS=1; shift ;;
  --coverage) presets=(coverage); find build/coverage -name '*.gcda' -delete 2>/dev/null || true; shift ;;
  '') presets=(release asan-ubsan tsan lto) ;;
  *) presets=(release) ;;
esac

for preset in "${presets[@]}"; do
  ./setup.sh tests "$preset"
  ctest --preset "$preset" -j 2 "$@"
done
if [ "${presets[0]}" = coverage ]; then .venv/bin/python -B tests/coverage.py build/coverage; fi
if [ -n "$all" ] && [ $# -eq 0 ]; then  # all builds simulate the same events
  .venv/bin/python -B tests/golden/digest_test.py "${presets[@]/#/build/}"
fi
