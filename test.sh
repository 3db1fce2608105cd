#!/usr/bin/env bash
# Builds everything and runs the tests; arguments go to ctest: ./test.sh -R results
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/setup.sh" tests
cd "$root"
exec ctest --preset release -j 2 "$@"
