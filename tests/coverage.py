"""What the tests reach, by folder: coverage.py BUILD, after they have run in a build with --coverage (preset coverage).

Lines and branches as gcovr counts them; branches that only an exception takes, which every call has, are left out, and so
is what needs a GPU. BUILD/coverage.html shows every line."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"lines": 93, "branches": 80}  # per cent


def measured(build):
    """The summary of each file."""
    summary = build / "coverage.json"
    subprocess.run([sys.executable, "-m", "gcovr", "--root", ROOT, "--object-directory", build, "-j", "2",
                    "--filter", "(sim|cost_models|strategies|scenarios|results)/", "--exclude", ".*/cuda/",
                    "--exclude-throw-branches", "--exclude-unreachable-branches", "--exclude-noncode-lines",
                    "--gcov-ignore-parse-errors=all", "--merge-mode-functions=separate",
                    "--json-summary", summary, "--html-details", build / "coverage.html", build],
                   check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return json.loads(summary.read_text())["files"]


def main():
    build = Path(sys.argv[1]).resolve()
    counts = defaultdict(lambda: defaultdict(int))
    for file in measured(build):
        folder = "/".join(file["filename"].split("/")[:2] if file["filename"].count("/") > 1 else file["filename"].split("/")[:1])
        for name in (folder, "all"):
            for kind, short in (("lines", "line"), ("branches", "branch")):
                counts[name][kind] += file[f"{short}_total"]
                counts[name][kind + " reached"] += file[f"{short}_covered"]
    print(f"{'folder':32}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}")
    for name in sorted(counts, key=lambda n: (n == "all", n)):
        c = counts[name]
        shares = {kind: 100 * c[kind + " reached"] / max(1, c[kind]) for kind in TARGETS}
        print(f"{name:32}{c['lines']:8}{shares['lines']:8.1f}%{c['branches']:10}{shares['branches']:8.1f}%")
    missed = [f"{kind} {shares[kind]:.1f} % (target {least} %)" for kind, least in TARGETS.items() if shares[kind] < least]
    if missed:
        sys.exit("coverage.py: too little is reached: " + ", ".join(missed))


if __name__ == "__main__":
    main()
