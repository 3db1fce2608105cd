#!/usr/bin/env bash
# Measures how fast mllmsim is: tests/bench/README.md says what, against what, and how to read it.
#
#   ./bench.sh                 everything, some minutes; ARGUMENTS go to Google Benchmark:
#   ./bench.sh --benchmark_filter='Kernel|Growth'
# Prints the table; leaves build/bench/bench.json (Google Benchmark's), table.md and growth.png.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
./setup.sh tests
exec .venv/bin/python tests/bench/bench.py build/release/bin/bench --out build/bench "$@"
