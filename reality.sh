#!/bin/sh
# ./reality.sh [--quick | --refit]: in rounds, calibrate on this machine, predict, really train with PyTorch on two cores; compare;
# writes results/reality.md and its picture. Needs two cores, 20 minutes and, the first time, 5 GB for PyTorch, which
# goes into build/reality-venv. No part of ./test.sh. --quick: every fourth case, nothing is written. --refit: fit and
# predict again every round of the last run from its own profiles (build/reality), with the program as it is now.
set -eu
cd "$(dirname "$0")"
TORCH=torch==2.15.0
VENV=build/reality-venv
[ -x build/release/bin/mllmsim ] || ./run.sh list > /dev/null
if [ "${1:-}" = --refit ]; then
  exec python3 tests/reality/reality.py build/release/bin/mllmsim python3 build/reality --refit \
    --page results/reality.md --picture results/pictures/reality.png
fi
[ -x $VENV/bin/python ] || python3 -m venv $VENV
$VENV/bin/python -c 'import torch, numpy' 2> /dev/null || $VENV/bin/pip install --quiet $TORCH numpy
if [ "${1:-}" = --quick ]; then
  exec python3 tests/reality/reality.py build/release/bin/mllmsim $VENV/bin/python build/reality-quick --quick
fi
exec python3 tests/reality/reality.py build/release/bin/mllmsim $VENV/bin/python build/reality \
  --page results/reality.md --picture results/pictures/reality.png
