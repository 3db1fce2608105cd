#!/usr/bin/env bash
# Builds mllmsim if needed and runs it: ./run.sh ARGUMENTS... is mllmsim ARGUMENTS...
# Without arguments: the two main runs, InternVL 6B+20B on 32 A100 and ViT-22B + GPT-175B on 3072
# H100.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/setup.sh" program
if [ $# -eq 0 ]; then
  cd "$root"
  set -- run scenarios/runs/internvl-6b-20b-a100x32.toml \
    scenarios/runs/vit-22b-gpt-175b-h100x3072.toml
fi
exec "$root/build/release/bin/mllmsim" "$@"
