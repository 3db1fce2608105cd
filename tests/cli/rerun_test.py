"""Runs repeated from their own results: rerun_test.py MLLMSIM."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import pyarrow
import pyarrow.parquet

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
A100 = ROOT / "cost_models" / "calibrations" / "a100-sxm4-80g.json"
QUICK = "llama-3-8b-a100x8"


class Rerun(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name).resolve()
        self.addCleanup(self.temporary.cleanup)

    def call(self, *arguments, code=0, where="."):
        done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=self.dir / where, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def change(self, path, column, value):
        """Writes another value into the first row of a column."""
        table = pyarrow.parquet.read_table(self.dir / path)
        index = table.schema.get_field_index(column)
        values = [value, *table.column(index).to_pylist()[1:]]
        field = table.schema.field(index)
        changed = pyarrow.array(values, type=field.type.value_type if pyarrow.types.is_dictionary(field.type) else field.type)
        if pyarrow.types.is_dictionary(field.type):
            changed = changed.dictionary_encode()
        metadata = table.schema.metadata
        table = table.set_column(index, field, changed).replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(table, self.dir / path)

    def metadata(self, path):
        schema = pyarrow.parquet.read_schema(self.dir / path)
        return {k.decode(): v.decode(errors="replace") for k, v in schema.metadata.items() if not k.startswith(b"ARROW:")}

    def test_every_shipped_run_repeats(self):
        for run in sorted(RUNS.glob("*.toml")):
            steps = ["data.steps=2"] if "set =" in run.read_text() else []
            self.call("run", run, *steps, "-o", "r")
            self.assertRegex(self.call("rerun", "r").stdout, rf"{run.stem} \(\S+\): the same: \d+ values of 6 tables, events [0-9a-f]{{16}}")

    def test_one_table_is_enough(self):
        self.call("run", QUICK, "-s", "balanced", "tp=2", "-o", "r")
        shutil.copy(self.dir / "r/spans.parquet", self.dir / "sent-by-mail.parquet")
        shutil.rmtree(self.dir / "r")
        done = json.loads(self.call("rerun", "sent-by-mail.parquet", "--json").stdout)
        self.assertTrue(done["same"])
        self.assertEqual((done["run"], done["strategy"], done["differences"]), (QUICK, "balanced", []))

    def test_what_differs_is_said(self):
        self.call("run", QUICK, "-o", "r")
        before = pyarrow.parquet.read_table(self.dir / "r/runs.parquet").column("gpu_days")[0].as_py()
        self.change("r/runs.parquet", "gpu_days", before * 2)
        self.change("r/stages.parquet", "layers", "none")
        done = json.loads(self.call("rerun", "r", "--json", code=1).stdout)
        self.assertEqual([(d["table"], d["column"], d["rows"]) for d in done["differences"]], [("runs", "gpu_days", 1), ("stages", "layers", 1)])
        self.assertAlmostEqual(done["differences"][0]["relative_difference"], 0.5)
        self.assertIsNone(done["differences"][1]["relative_difference"])
        self.assertRegex(self.call("rerun", "r", code=1).stdout, r"(?s)differs\n.*runs +gpu_days +1 .*50 %")

    def test_a_calibration_that_changed_is_named(self):
        shutil.copy(A100, self.dir / "mine.json")
        (self.dir / "own").mkdir()
        (self.dir / "own/a.toml").write_text((RUNS / f"{QUICK}.toml").read_text().replace("\n[", '\ncalibration = "mine.json"\n[', 1))
        shutil.move(self.dir / "mine.json", self.dir / "own/mine.json")
        self.call("run", "own/a.toml", "-o", "r")
        self.assertIn("the same", self.call("rerun", "r", "--from", "own").stdout)
        self.assertIn("the same", self.call("rerun", "../r", where="own").stdout)
        self.assertIn("mine.json", self.call("rerun", "r", code=2).stderr)
        scaled = self.dir / "own/scaled.json"
        self.call("calibrate", "scale", "own/mine.json", "--gemm", 1.1, "--out", scaled)
        shutil.move(scaled, self.dir / "own/mine.json")
        done = self.call("rerun", "r", "--from", "own", code=1).stdout
        self.assertRegex(done, r"changed since: calibration: [0-9a-f]{16} then, [0-9a-f]{16} now")
        self.assertIn("iteration_s", done)

    def test_rows_of_sweeps_repeat(self):
        self.call("sweep", QUICK, "mbs=1", "--vary", "parallelism.tensor_model_parallel_size=1,2,3", "--strategies", "baseline,zero3", "-o", "s")
        for point in range(6):  # tp = 3 cannot be read: the same reason, then
            self.assertIn("the same", self.call("rerun", "s", "--point", point).stdout)
        chosen = ["--where", "strategy=baseline", "--where", "parallelism.tensor_model_parallel_size=2"]
        self.assertRegex(self.call("rerun", "s/runs.parquet", *chosen).stdout, r"\(baseline\): the same: \d+ values of 1 tables")
        self.assertIn("3 points of the sweep are chosen", self.call("rerun", "s", "--where", "strategy=zero3", code=2).stderr)
        self.assertIn("no column x", self.call("rerun", "s", "--where", "x=1", code=2).stderr)
        self.change("s/runs.parquet", "event_digest", "0" * 16)
        self.assertRegex(self.call("rerun", "s", "--point", 0, code=1).stdout, r"runs +event_digest +1 +0000000000000000")

    def test_bad_input(self):
        self.assertIn("no such file or directory", self.call("rerun", "nothing", code=2).stderr)
        self.call("rerun", code=2)
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), self.dir / "other.parquet")
        self.assertIn("is not a table of a run or a sweep", self.call("rerun", "other.parquet", code=2).stderr)
        (self.dir / "broken.parquet").write_bytes(b"PAR1")
        self.assertIn("broken.parquet", self.call("rerun", "broken.parquet", code=3).stderr)
        self.call("run", QUICK, "-o", "r")
        self.assertIn("no row to choose", self.call("rerun", "r", "--point", 0, code=2).stderr)

    def test_no_path_of_the_machine_is_in_results(self):
        shutil.copy(RUNS / "internvl-1.2m-a100x32.toml", self.dir / "a.toml")
        shutil.copy(A100, self.dir / "mine.json")
        (self.dir / "lengths.csv").write_text("token_num,vit_num\n" + "900,3\n" * 2048)
        own = [self.dir / "a.toml", f"calibration={self.dir}/mine.json", f"data.set={self.dir}/lengths.csv", "data.steps=1"]
        self.call("run", *own, "-o", "r")
        self.call("sweep", *own, "--vary", "tp=1,2", "-o", "s")
        self.call("sweep", RUNS / "internvl-1.2m-a100x32.toml", "data.steps=1", "--vary", "tp=1,2", "-o", "t")
        for table in ["r/runs.parquet", "r/spans.parquet", "s/runs.parquet", "t/stages.parquet"]:
            for key, value in self.metadata(table).items():
                self.assertNotIn(str(self.dir), value, f"{table}: {key}")
                self.assertNotIn(str(ROOT), value, f"{table}: {key}")
        self.assertIn("the same", self.call("rerun", "r").stdout)
        self.assertIn("the same", self.call("rerun", "s", "--point", 1).stdout)


if __name__ == "__main__":
    unittest.main()
