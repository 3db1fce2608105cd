"""results/README.md lists every column of every table. columns_test.py MLLMSIM."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import pyarrow.parquet

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
KEYS = ["run", "strategy", "scenario_hash"]
OF_A_RUN = ["runs", "plan", "stages", "steps", "spans", "memory", "gaps"]


def listed(table, kinds):
    """Names in the first cells of the table that begins with `table.parquet`, KIND replaced by each kind of bubble."""
    lines = iter((ROOT / "results/README.md").read_text().splitlines())
    for line in lines:
        if line.startswith(f"| `{table}.parquet`"):
            break
    next(lines)
    names = []
    for line in lines:
        if not line.startswith("|"):
            break
        names += re.findall(r"`([^`]+)`", line.split("|")[1])
    return [name.replace("KIND", kind) for name in names for kind in (kinds if "KIND" in name else [""])]


class Columns(unittest.TestCase):
    def mllmsim(self, *arguments):
        subprocess.run([MLLMSIM, *arguments], cwd=self.dir.name, capture_output=True, check=True)

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def columns(self, file):
        return pyarrow.parquet.read_schema(pathlib.Path(self.dir.name) / file).names

    def test_tables_of_a_run(self):
        self.mllmsim("run", "llama-3-8b-a100x8", "-o", "run")
        prefix = "bubble_share_"
        kinds = [c.removeprefix(prefix) for c in self.columns("run/runs.parquet") if c.startswith(prefix)]
        files = sorted(p.stem for p in (pathlib.Path(self.dir.name) / "run").glob("*.parquet"))
        self.assertEqual(files, sorted(OF_A_RUN))
        for table in OF_A_RUN:
            with self.subTest(table=table):
                self.assertCountEqual(KEYS + listed(table, kinds), self.columns(f"run/{table}.parquet"))

    def test_tables_of_a_sweep(self):
        self.mllmsim("run", "llama-3-8b-a100x8", "-o", "run")
        self.mllmsim("sweep", "llama-3-8b-a100x8", "--vary", "pp=1,2", "--vary", "cluster=a100-80g-4x200,h100-1x8", "-o", "sweep")
        text = (ROOT / "results/README.md").read_text()
        listed_here = text.split("| sweeps: ")[1].split("\n\n")[0]
        for table, own in (("runs", ["point", "parallelism.pipeline_model_parallel_size"]), ("stages", ["point"])):
            extra = set(self.columns(f"sweep/{table}.parquet")) - set(self.columns(f"run/{table}.parquet"))
            self.assertEqual(extra, set(own))
            for name in own:
                self.assertIn(f"`{name}`", listed_here)

    def test_validation(self):
        self.mllmsim("validate", "korthikanti-figure1", "--out", "v.parquet")
        self.assertCountEqual(listed("validation", []), self.columns("v.parquet"))

    def test_packs(self):
        (pathlib.Path(self.dir.name) / "a.csv").write_text("vit_num,token_num\n1,300\n2,500\n")
        self.mllmsim("pack", "a.csv", "--out", "p.parquet")
        self.assertCountEqual(listed("packs", []), self.columns("p.parquet"))


if __name__ == "__main__":
    unittest.main()
