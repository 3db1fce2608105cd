"""The same events and the same bytes, whatever the number of threads, the build or the compiler.

    digest_test.py PROGRAM [PROGRAM...]    every shipped run: 1 and 2 threads, by each program (or the one in a build directory)

Passes over a data set are cut to a few steps. The directory names of runs that differ are printed with the tables that do.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 4  # of a pass over a data set
THREADS = [1, 2]


def simulated(program, run, threads, out):
    """Event digest, and a hash of each table."""
    overrides = [f"data.steps={STEPS}"] if "set =" in run.read_text() else []
    done = subprocess.run([program, "run", run, *overrides, "--json", "-j", str(threads), "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, f"{program} {run.stem}: {done.stderr}"
    tables = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}
    return {"events": json.loads(done.stdout)["runs"][0]["event_digest"]} | tables


def main():
    given = [pathlib.Path(p).resolve() for p in sys.argv[1:]]
    programs = [str(p / "bin" / "mllmsim" if p.is_dir() else p) for p in given]
    runs = sorted((ROOT / "scenarios" / "runs").glob("*.toml"))
    assert programs and runs, "nothing to compare"
    cases = [(run, program, threads) for run in runs for program in programs for threads in THREADS]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        outs = (pathlib.Path(scratch) / str(i) for i in range(len(cases)))
        found = list(pool.map(lambda c, out: simulated(c[1], c[0], c[2], out), cases, outs))
    differing = 0
    for run in runs:
        own = [(program, threads, figures) for (r, program, threads), figures in zip(cases, found) if r == run]
        first = own[0][2]
        print(f"{run.stem}: events {first['events']}")
        for program, threads, figures in own[1:]:
            other = [key for key in first.keys() | figures.keys() if first.get(key) != figures.get(key)]
            if other:
                differing += 1
                print(f"  {program} with {threads} threads differs in {', '.join(sorted(other))}")
    print(f"{len(cases)} simulations of {len(runs)} runs by {len(programs)} programs, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
