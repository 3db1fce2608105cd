"""Figures of every shipped run under every strategy, to nine digits, as they were when last looked at.

    golden_test.py MLLMSIM             compares with runs.csv and stages.csv beside this file
    golden_test.py MLLMSIM --update    writes them anew; say in CHANGES.md what moved and why

Passes over a data set are cut to a few steps. What a strategy refuses is kept with its reason.
"""

import concurrent.futures
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
STEPS = 4  # of a pass over a data set
NOT_FIGURES = {"scenario_hash", "calibration_hash", "event_digest", "seed", "plan", "stages", "steps"}
STAGE_COLUMNS = [
    "blocks", "recomputed_blocks", "parameters", "forward_s", "backward_s", "busy_s", "bubble_s",
    "weights_bytes", "gradients_bytes", "optimizer_bytes", "peak_activations_bytes", "peak_memory_bytes",
]


def listed(program, section):
    """Names below a heading of `mllmsim list`."""
    names, inside = [], False
    for line in subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith(" "):
            inside = line.strip() == section
        elif inside and line.startswith("  ") and not line.startswith("   "):
            names.append(line.split()[0])
    return names


def digits(value):
    if value is None:  # what a run does not have
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def reason(stderr):
    """The last problem, with the run's name for its file, wherever that lies."""
    text = stderr.strip().splitlines()[-1].split(": ", 1)[-1]
    return re.sub(r"\S*/(\S+)\.toml(:\d+)*: ", r"\1: ", text)


def figures(program, run, strategy, out):
    """Rows for runs.csv and stages.csv."""
    def call(*overrides):
        return subprocess.run(
            [program, "run", run, f"strategy.name={strategy}", *overrides, "--json", "-j", "1", "--out", out],
            capture_output=True, text=True)

    scenario = (HERE.parent.parent / "scenarios" / "runs" / f"{run}.toml").read_text()
    result = call(*([f"data.steps={STEPS}"] if "set =" in scenario else []))
    head = {"run": run, "strategy": strategy}
    if result.returncode != 0:
        assert result.returncode == 2, result.stderr
        return [head | {"refused": reason(result.stderr)}], []
    found = json.loads(result.stdout)["runs"][0]
    row = head | {k: digits(v) for k, v in found.items() if k not in NOT_FIGURES}
    stages = [head | {"stage": str(s["stage"])} | {c: digits(s[c]) for c in STAGE_COLUMNS} for s in found["stages"]]
    return [row], stages


def table(rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def differences(name, expected, actual):
    key = lambda row: (row["run"], row["strategy"], row.get("stage", ""))
    before, after = ({key(r): r for r in csv.DictReader(io.StringIO(t))} for t in (expected, actual))
    for k in sorted(before.keys() | after.keys()):
        old, new = before.get(k, {}), after.get(k, {})
        for column in dict.fromkeys([*old, *new]):
            if old.get(column) != new.get(column):
                yield f"{name}: {' '.join(k)}: {column} was {old.get(column)!r}, is {new.get(column)!r}"


def main():
    program, update = sys.argv[1], "--update" in sys.argv[2:]
    cases = [(r, s) for r in listed(program, "runs") for s in listed(program, "strategies")]
    assert cases, "nothing to compare"
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda c: figures(program, *c, f"{scratch}/{c[0]}-{c[1]}"), cases))
    tables = {"runs.csv": table([r for runs, _ in done for r in runs]),
              "stages.csv": table([s for _, stages in done for s in stages])}
    moved = []
    for name, text in tables.items():
        if update:
            (HERE / name).write_text(text)
        else:
            moved += differences(name, (HERE / name).read_text(), text)
    print("\n".join(moved[:50]))
    if len(moved) > 50:
        print(f"... and {len(moved) - 50} more")
    print(f"{len(cases)} runs compared, {len(moved)} figures differ")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
