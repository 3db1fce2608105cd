#!/usr/bin/env bash
# Builds mllmsim if needed and runs it: ./run.sh ARGUMENTS... is mllmsim ARGUMENTS...
# Without arguments: the two main runs, InternVL 6B+20B on 32 A100 and ViT-22B + GPT-175B on 3072
# H100, and a report of them; its path is the last line.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mllmsim=$root/build/release/bin/mllmsim
"$root/setup.sh" program
[ $# -eq 0 ] || exec "$mllmsim" "$@"

cd "$root"
runs=(internvl-6b-20b-a100x32 vit-22b-gpt-175b-h100x3072)
"$mllmsim" run "${runs[@]}"
"$mllmsim" report "${runs[@]/#/results/runs/}" --out results/runs/report.html
echo "$root/results/runs/report.html"
