"""The README is true: its links lead somewhere, its commands run, its figures are what the program prints.

    readme_test.py MLLMSIM [--update]    --update: writes the run that it shows and its table of strategies anew
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [p for p in ROOT.rglob("*.md") if not {"build", ".venv", ".git"} & set(p.relative_to(ROOT).parts)]
# What of the commands' words stands for something of the reader's.
LARGE = "internvl-6b-20b-a100x32"
STANDS_FOR = {"FILE": LARGE, "RUN...": "results/runs/a", "[RUN]": "results/runs/b", "RUN": "results/runs/a", "LOG": "log.txt",
              "results/sweeps/NAME": "results/sweeps/s", "mine.json": "mine.json"}
UPDATE = "--update" in sys.argv and not sys.argv.remove("--update")
ELSEWHERE = ["mllmsim validate"]  # minutes long, and validate_test.py runs it with all options


def slug(heading):
    """A heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page):
    return {slug(h) for h in re.findall(r"^#+ (.*)$", page.read_text(), re.M)}


def commands():
    """Those of "Using it", without what is said of them."""
    block = README.split("## Using it\n")[1].split("```")[1]
    return [re.split(r"  +", line)[0] for line in block.splitlines() if line.startswith("mllmsim")]


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)):
                if re.match(r"https?:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=target):
                    self.assertTrue(file.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(file))

    def test_the_contents_list_every_section(self):
        contents = README.split("\n## ")[0]
        for heading in re.findall(r"^## (.*)$", README, re.M):
            self.assertIn(f"[{heading}](#{slug(heading)})", contents)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.dir = pathlib.Path(temporary.name)
        # What earlier commands of the README leave.
        cls.run_words(MLLMSIM, "run", LARGE, "-o", "results/runs/a")
        cls.run_words(MLLMSIM, "run", LARGE, "-s", "balanced", "-o", "results/runs/b")
        cls.run_words(MLLMSIM, "sweep", LARGE, "--vary", "pp=2,4", "--strategies", "baseline,balanced", "-o", "results/sweeps/s")
        (cls.dir / "scenarios").symlink_to(ROOT / "scenarios")
        lines = [{"header": {"gpu": "NVIDIA A100-SXM4-80GB"}}]
        lines += [{"part": "gemm", "m": m, "n": n, "k": k, "pass": "forward", "us": 5 + 2 * m * n * k / 200e6}
                  for m in (512, 1024, 2048, 4096) for n in (512, 2048, 4096) for k in (512, 1024, 4096)]
        (cls.dir / "raw.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
        ranks = "\n".join(f"#  Rank  {i} Group  0 Pid 1 on n0 device  {i} [0x00] NVIDIA A100" for i in range(2))
        head = "#       size         count      type   redop    root     time   algbw   busbw  error"
        product = {"External id": 1, "Input Dims": [[64, 32], [32, 16]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
        events = [{"cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": 0, "dur": 10, "args": product},
                  {"name": "PP:0F0", "pid": 0, "ts": 0, "dur": 1000}]
        (cls.dir / "trace.json").write_text(json.dumps({"traceEvents": events}))
        (cls.dir / "log.txt").write_text(f"# nccl-tests: all_reduce_perf\n# Using devices\n{ranks}\n{head}\n 1048576 262144 float sum -1 40.0 26 26 0\n")

    @classmethod
    def run_words(cls, *words, code=0):
        done = subprocess.run(list(map(str, words)), cwd=cls.dir, capture_output=True, text=True)
        if done.returncode != code:
            raise AssertionError(f"{words}: exit code {done.returncode}, not {code}: {done.stderr}")
        return done

    def test_each_runs(self):
        found = commands()
        self.assertGreater(len(found), 25)
        for command in found:
            if any(command.startswith(e) for e in ELSEWHERE):
                continue
            with self.subTest(command):
                text = command
                for word, means in STANDS_FOR.items():
                    text = re.sub(rf"(?<!\S){re.escape(word)}(?!\S)", means, text)
                if "equal_batch" in text:  # of a data set, which others do not need
                    text = text.replace(LARGE, "internvl-1.2m-a100x32 data.steps=1")
                program, rest = re.match(r"(\S+) ?(.*)", text).groups()
                code = 4 if program == "mllmsim-calibrate" else 0  # there is no GPU here
                words = re.findall(r'"([^"]*)"|(\S+)', rest)
                if "import nccl" in text:
                    words += [("--op", ""), ("all_reduce", "")]
                done = subprocess.run([str(MLLMSIM.with_name(program)), *(a or b for a, b in words)], cwd=self.dir, capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)

    def test_its_python_reads_the_results(self):
        import duckdb
        import pandas
        block = README.split("```python\n")[1].split("```")[0].replace("internvl-1.2m-omnibal", "a")
        for line in block.splitlines():
            if line.startswith(("pandas.", "duckdb.")):  # polars is not among what setup.sh installs
                query = re.sub(r"results/", f"{self.dir}/results/", line)
                self.assertGreater(len(eval(query, {"pandas": pandas, "duckdb": duckdb})), 0, line)  # noqa: S307

    def test_the_complete_scenario_runs(self):
        (self.dir / "whole.toml").write_text((ROOT / "scenarios/README.md").read_text().split("```toml\n")[1].split("```")[0])
        self.run_words(MLLMSIM, "run", "whole.toml")


@unittest.skipIf(os.environ.get("MLLMSIM_SANITIZE"), "the figures are those of any build")
class Figures(unittest.TestCase):
    def in_the_readme(self, old, new, file="README.md"):
        if UPDATE:
            (ROOT / file).write_text((ROOT / file).read_text().replace(old, new))
        else:
            self.assertEqual(old, new)

    def run_one(self, *words):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([MLLMSIM, "run", *words], cwd=directory, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_run_it_shows(self):
        shown, = re.findall(r"^```\n(internvl-1.2m-a100x32 \(omnibal\)\n.*?)^```$", README, re.S | re.M)
        self.in_the_readme(shown, self.run_one("internvl-1.2m-a100x32", "strategy.name=omnibal", "-o", "results/runs/internvl-1.2m-omnibal"))

    def test_its_table_of_strategies(self):
        head, _, *rows = README.split("nobody has published the last column:\n\n")[1].split("\n\n")[0].splitlines()
        strategies = ["baseline" if s == "Megatron-LM" else s.lower().replace(" ", "") for s in head.strip("| ").split(" | ")]
        for row, (run, figure, digits) in zip(rows, ((["internvl-1.2m-a100x32", "data.steps=32"], "gpu_days", 1),
                                                     (["vit-22b-gpt-175b-h100x3072"], "iteration_s", 2))):
            # As in run.sh: Megatron-LM's own interleaving.
            own = {"baseline": ["vpp=2"]} if figure == "iteration_s" else {}
            made = [json.loads(self.run_one(*run, f"strategy.name={s}", *own.get(s, []), "--json", "-o", "x"))["runs"][0][figure]
                    for s in strategies]
            with self.subTest(run):
                name = row.split(" | ")[0]
                self.in_the_readme(row, " | ".join([name, *(f"{value:.{digits}f}" for value in made)]) + " |")

    def test_its_table_of_6_n_d(self):
        page = "results/README.md"
        rows = (ROOT / page).read_text().split("| over ours | because |\n")[1].split("\n\n")[0].splitlines()[1:]
        for row in rows:
            run, *_, because = row.strip("| ").split(" | ")
            made = json.loads(self.run_one(run, "strategy.name=baseline", "--json", "-o", "x"))["runs"][0]
            flops = f"{made['model_flops']:.2e}".replace("e+", "e")
            with self.subTest(run):
                self.in_the_readme(row, f"| {run} | {flops} | {made['mfu']:.1%} | {made['mfu_6nd']:.1%} | "
                                        f"{made['mfu_6nd'] / made['mfu']:.2f} | {because} |".replace("%", " %"), page)


if __name__ == "__main__":
    unittest.main()
