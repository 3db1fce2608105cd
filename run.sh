#!/usr/bin/env bash
# Builds mllmsim if needed and runs it: ./run.sh ARGUMENTS... is mllmsim ARGUMENTS...
# Without arguments: the main runs, a pass over InternVL-1.2M on 32 A100 and a step of ViT-22B +
# GPT-175B on 3072 H100, each under two strategies, and a report of them; its path is the last line.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mllmsim=$root/build/release/bin/mllmsim
"$root/setup.sh" program
[ $# -eq 0 ] || exec "$mllmsim" "$@"

cd "$root"
out=results/runs
for strategy in baseline omnibal; do
  "$mllmsim" run internvl-1.2m-a100x32 strategy.name=$strategy --out $out/internvl-1.2m-$strategy
done
"$mllmsim" run vit-22b-gpt-175b-h100x3072 strategy.name=baseline \
  parallelism.virtual_pipeline_stages=2 --out $out/vit-22b-baseline
"$mllmsim" run vit-22b-gpt-175b-h100x3072 --out $out/vit-22b-optimus
"$mllmsim" report $out/internvl-1.2m-baseline $out/internvl-1.2m-omnibal $out/vit-22b-baseline \
  $out/vit-22b-optimus --out $out/report.html
echo "$root/results/runs/report.html"
