"""Runs the benchmarks and sets what they measured beside targets and references.

    bench.py BENCH --out DIRECTORY [Google Benchmark's arguments]    measures, then writes bench.json, table.md, growth.png
    bench.py --read bench.json --out DIRECTORY                       the same of an earlier measurement
    bench.py BENCH --smoke                                           every benchmark that is quick runs once, whatever it takes

Times are CPU time of one thread. Nothing here fails because something is slow.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys

# work, benchmark, target in seconds, how it is compared: with another benchmark of the same run, or in words.
ROWS = [
    ("event kernel: 1F1B, 64 stages x 512 micro-batches", "Kernel_Simulate/64/512", 10e-3, "Kernel_BareSweep/64/512"),
    ("... the bare sweep, rows built", "Kernel_BareSweep/64/512", None, None),
    ("... lowering", "Kernel_Lower/64/512", None, "Kernel_Simulate/64/512"),
    ("... why each stream idles", "Kernel_Account/64/512", None, "Kernel_Simulate/64/512"),
    ("GPT-3 175B on 1,024 A100, a step", "Step_Gpt3_1024", 1e-3, None),
    ("GPT-3 on 65,536 GPUs, one replica simulated", "Step_Gpt3_65536", None, "Step_Gpt3_1024"),
    ("100,352 GPUs, pp 64, 4,096 micro-batches", "Step_Huge_100000", 3.0, None),
    ("24,576 GPUs, all replicas, oversubscription 1", "Step_Contended_24576/1", None, None),
    ("24,576 GPUs, all replicas, oversubscription 4", "Step_Contended_24576/4", 15.0, "Step_Contended_24576/1"),
    ("24,576 GPUs, all replicas, oversubscription 32", "Step_Contended_24576/32", 15.0, "Step_Contended_24576/1"),
    ("a point of a sweep, 32 GPUs", "Point_Resolved", 100e-6, None),
    ("whole pass, InternVL 6+20B, baseline", "Pass_baseline", 1.2, None),
    ("whole pass, InternVL 6+20B, omnibal", "Pass_omnibal", 1.2, None),
    ("... under optimus", "Pass_optimus", 15.0, None),
    ("... under omnibal+optimus", "Pass_omnibal+optimus", 15.0, None),
    ("Optimus, 1,536 H100: planned and simulated", "Planning_Optimus_1536", 0.2, None),
    ("Optimus, 2,048 H100", "Planning_Optimus_2048", 0.2, None),
    ("Optimus, 3,072 H100", "Planning_Optimus_3072", 0.2, None),
    ("omnibal, 32,768 H100: planned and simulated", "Planning_Omnibal_32768", 5.0, None),
    ("trace of 1.2 M spans", "Growth_Spans/224", 3.0, None),
    ("ISF, 12.7 M samples", "Growth_Isf/12700000", None, None),
]
SLOPES = {"Tasks": "tasks of a step", "Ranks": "pipeline ranks", "Gpus": "GPUs that are not simulated", "Replicas": "simulated replicas",
          "Isf": "samples packed", "Spans": "spans of a trace", "OptimusMicroBatches": "micro-batches under Optimus",
          "OptimusLayers": "layers of the LLM under Optimus"}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def measure(program, out, arguments):
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bench.json"
    subprocess.run([program, f"--benchmark_out={path}", "--benchmark_out_format=json", *arguments], check=True)
    return path


def times(found):
    """CPU seconds by benchmark; of repetitions, the median."""
    out = {}
    for b in found["benchmarks"]:
        if b.get("run_type") == "aggregate" and b["aggregate_name"] != "median":
            continue
        out[b["run_name"]] = b | {"seconds": b["cpu_time"] * SECONDS[b["time_unit"]]}
    return out


def readable(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(found):
    lines = ["| work | CPU time | target | in the same run |", "|---|---|---|---|"]
    for work, name, target, reference in ROWS:
        if name not in found:
            continue
        b = found[name]
        words = []
        if "per_task" in b:
            words.append(f"{b['per_task'] * 1e9:.0f} ns per task")
        if b.get("steps", 1) > 1:
            words.append(f"{readable(b['seconds'] / b['steps'])} per step")
        if reference in found:
            words.append(f"{b['seconds'] / found[reference]['seconds']:.2g} x {reference}")
        aim = "" if target is None else f"{readable(target)}, {'met' if b['seconds'] <= target else 'missed'}"
        lines.append(f"| {work} | {readable(b['seconds'])} | {aim} | {', '.join(words)} |")
    return lines


def growths(found):
    """Points (size, seconds) by what grows."""
    out = {}
    for name, b in found.items():
        if (match := re.match(r"Growth_(\w+)/", name)) and "size" in b:
            out.setdefault(match[1], []).append((b["size"], b["seconds"]))
    return {k: sorted(v) for k, v in out.items() if len(v) > 1}


def slope(points):
    """Least squares through the logarithms."""
    xs, ys = ([math.log(p[i]) for p in points] for i in (0, 1))
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def slopes(grown):
    lines = ["| what grows | from | to | slope |", "|---|---|---|---|"]
    for key, points in grown.items():
        lines.append(f"| {SLOPES.get(key, key)} | {points[0][0]:,.0f} | {points[-1][0]:,.0f} | {slope(points):.2f} |")
    return lines


def picture(grown, path):
    """CPU time relative to the smallest, over size relative to the smallest; a line is a slope of 1."""
    blocks, plots = [], []
    for key, points in grown.items():
        x0, y0 = points[0]
        blocks.append(f"$d{len(blocks)} << EOD\n" + "\n".join(f"{x / x0} {y / y0}" for x, y in points) + "\nEOD")
        plots.append(f"$d{len(blocks) - 1} with linespoints pt 7 title '{SLOPES.get(key, key)}: {slope(points):.2f}'")
    script = "\n".join(["set terminal pngcairo size 900,600", f"set output '{path}'", "set logscale xy", "set key left top",
                        "set xlabel 'size, over the smallest'", "set ylabel 'CPU time, over the smallest'", *blocks,
                        "plot " + ", ".join([*plots, "x with lines dt 2 lc 'gray' title 'slope 1'"])])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--read", type=pathlib.Path)
    parser.add_argument("--smoke", action="store_true")
    options, arguments = parser.parse_known_args()
    if options.smoke:
        quick = "Kernel_|Growth_(Tasks|Ranks)/(8|64|256)$|Growth_Gpus/1024$|Step_Gpt3_1024|Point|Isf/100000$|Growth_Spans/16$"
        arguments = [f"--benchmark_filter={quick}", "--benchmark_min_time=0.000001"]
    path = options.read or measure(options.program, options.out, arguments)
    found = times(json.loads(path.read_text()))
    grown = growths(found)
    lines = [*table(found), "", *slopes(grown)]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table.md").write_text("\n".join(lines) + "\n")
    if grown:
        picture(grown, options.out / "growth.png")
    print("\n".join(lines))
    if options.smoke:
        wanted = {"Kernel_Simulate/64/512", "Kernel_BareSweep/64/512", "Step_Gpt3_1024", "Point_Resolved"}
        assert wanted <= found.keys(), f"not measured: {wanted - found.keys()}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
