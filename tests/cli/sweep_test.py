"""Sweeps as a user meets them: sweep_test.py MLLMSIM runs the built binary, breaks it off, and reads what it leaves."""

import json
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import duckdb
import pyarrow.parquet

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
INTERNVL = str(RUNS / "internvl-6b-20b-a100x32.toml")
PASS = str(RUNS / "internvl-1.2m-a100x32.toml")
GIVEN = str(RUNS / "given-times-1f1b.toml")
PP = "parallelism.pipeline_model_parallel_size"
BATCH = "parallelism.global_batch_size"
GRID = ["--vary", f"{PP}=2,4,8", "--vary", "cluster.nodes=2..8*2", "--strategies", "balanced,baseline"]


class Cli(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_mllmsim(self, *arguments, code=0, **more):
        done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def start(self, *arguments):
        process = subprocess.Popen([MLLMSIM, *map(str, arguments)], cwd=self.dir, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def same(self, a, b):
        for table in ["runs", "stages"]:
            self.assertEqual((self.dir / a / f"{table}.parquet").read_bytes(), (self.dir / b / f"{table}.parquet").read_bytes(), table)

    def rows(self, where):
        return pyarrow.parquet.read_table(self.dir / where / "runs.parquet").to_pylist()

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path


class Grid(Cli):
    def test_a_row_for_every_combination_with_its_values(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s")
        rows = self.rows("s")
        self.assertEqual([row["point"] for row in rows], list(range(18)))
        self.assertEqual([(row["cluster.nodes"], row[PP], row["strategy"]) for row in rows],
                         [(n, p, s) for n in [2, 4, 8] for p in [2, 4, 8] for s in ["balanced", "baseline"]])
        for row in rows:
            if row["iteration_s"] > 0:
                self.assertEqual((row["gpus"], row["pp"], row["dp"]), (8 * row["cluster.nodes"], row[PP], 4 * row["cluster.nodes"] // row[PP]))

    def test_a_point_is_what_run_gives(self):
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=4,8", "--out", "s")
        run = json.loads(self.run_mllmsim("run", INTERNVL, f"{PP}=8", "--json").stdout)["runs"][0]
        row = self.rows("s")[1]
        for key in ["gpu_days", "iteration_s", "mfu", "peak_memory_bytes", "scenario_hash", "bubble_share"]:
            self.assertEqual(row[key], run[key], key)

    def test_infeasible_points_are_rows_with_a_reason(self):
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=4,7", "--vary", "cluster.gpu_memory=16 GiB,80 GiB", "--out", "s")
        reasons = {(row[PP], row["cluster.gpu_memory"]): row["reason"] for row in self.rows("s")}
        self.assertEqual(reasons[4, "80 GiB"], "")
        self.assertIn("of 16.0 GiB", reasons[4, "16 GiB"])
        self.assertIn("do not divide", reasons[7, "80 GiB"])

    def test_every_strategy_has_a_row(self):
        names = [line.split()[0] for line in self.run_mllmsim("list", "strategies").stdout.splitlines()[1:] if line[2] != " "]
        self.run_mllmsim("sweep", INTERNVL, "--strategies", "all", "--out", "s")
        self.assertEqual([row["strategy"] for row in self.rows("s")], names)

    def test_the_table_in_the_scenario_says_the_same(self):
        text = pathlib.Path(INTERNVL).read_text()
        mine = self.write("internvl-6b-20b-a100x32.toml", text + f'\n[sweep]\nstrategies = ["balanced", "baseline"]\n'
                          f'[sweep.vary]\n{PP} = [2, 4, 8]\ncluster.nodes = "2..8*2"\n')
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "a")
        self.run_mllmsim("sweep", mine, "--out", "b")
        a, b = ([pyarrow.parquet.read_table(self.dir / d / "runs.parquet") for d in "ab"])
        self.assertTrue(a.equals(b))
        self.assertEqual(*[t.schema.metadata[b"scenario"] for t in [a, b]])

    def test_json_is_all_rows(self):
        points = json.loads(self.run_mllmsim("sweep", INTERNVL, *GRID, "--json").stdout)["points"]
        self.assertEqual(len(points), 18)
        self.assertEqual(len(list((self.dir / "results/sweeps").iterdir())), 1)

    def test_mistakes(self):
        self.assertIn("nothing varies", self.run_mllmsim("sweep", INTERNVL, code=2).stderr)
        # A key that is nowhere right is the user's mistake, not a thousand infeasible points.
        self.assertIn("did you mean", self.run_mllmsim("sweep", INTERNVL, "--vary", "cluster.node=1,2", code=2).stderr)
        self.assertIn("--shard", self.run_mllmsim("sweep", INTERNVL, *GRID, "--shard", "3/2", code=2).stderr)
        self.assertFalse((self.dir / "results").exists())


class Bytes(Cli):
    def test_do_not_depend_on_threads(self):
        for out, threads in [("a", 1), ("b", 2), ("c", 2)]:
            self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", out, "--threads", threads)
        self.same("a", "b")
        self.same("a", "c")

    def test_do_not_depend_on_shards(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "whole")
        for i in [1, 2, 3]:
            self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", f"parts/{i}", "--shard", f"{i}/3")
        self.run_mllmsim("merge", "parts/3", "parts/1", "parts/2/")
        self.same("whole", "parts")
        # A shard that came twice (a requeued task) counts once.
        self.run_mllmsim("merge", "parts/3", "parts/1", "parts/2", "parts/2", "whole", "--out", "again")
        self.same("whole", "again")

    def test_merge_wants_all_shards_of_one_sweep(self):
        for i in [1, 2]:
            self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", f"parts/{i}", "--shard", f"{i}/3")
        self.assertIn("6 of 18 points are missing", self.run_mllmsim("merge", "parts/1", "parts/2", code=2).stderr)
        (self.dir / "parts/3").mkdir()
        self.assertIn("has not finished", self.run_mllmsim("merge", "parts/1", "parts/2", "parts/3", code=2).stderr)
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--vary", "seed=2", "--out", "parts/3", "--shard", "3/3")
        self.assertIn("another sweep", self.run_mllmsim("merge", "parts/1", "parts/2", "parts/3", code=2).stderr)
        self.assertFalse((self.dir / "parts/runs.parquet").exists())


class Interrupted(Cli):
    # A few hundred points of some milliseconds each, so that there is a middle to interrupt.
    MANY = ["sweep", GIVEN, "--vary", f"{BATCH}=6000..60000+6", "--threads", "2"]

    def wait_for_points(self, process, out):
        journal = self.dir / out / "sweep.journal"
        while not journal.exists() or journal.stat().st_size < 20_000:
            self.assertIsNone(process.poll(), "the sweep ended before it could be interrupted")
            time.sleep(0.01)

    def test_kill_9_loses_nothing(self):
        few = ["sweep", GIVEN, "--vary", f"{BATCH}=12000..14400+6"]
        process = self.start(*few, "--out", "killed", "--threads", "1")
        self.wait_for_points(process, "killed")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse((self.dir / "killed/runs.parquet").exists())
        resumed = self.run_mllmsim(*few, "--out", "killed")
        self.assertRegex(resumed.stderr, r"\d+ of 401 points were finished before")
        self.run_mllmsim(*few, "--out", "whole")
        self.same("killed", "whole")

    def test_ctrl_c_says_how_to_continue(self):
        for sent, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            process = self.start(*self.MANY, "--out", f"s{code}")
            self.wait_for_points(process, f"s{code}")
            process.send_signal(sent)
            self.assertEqual(process.wait(), code)
            self.assertIn("the same command continues", process.stderr.read())

    def test_two_sweeps_do_not_write_to_one_place(self):
        process = self.start(*self.MANY, "--out", "s")
        self.wait_for_points(process, "s")
        self.assertIn("another sweep", self.run_mllmsim(*self.MANY, "--out", "s", code=3).stderr)

    def test_a_full_disk_keeps_what_was_finished(self):
        def little_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
        few = ["sweep", INTERNVL, *GRID]
        full = self.run_mllmsim(*few, "--out", "full", code=3, preexec_fn=little_room, restore_signals=False)
        self.assertIn("sweep.journal", full.stderr)
        self.assertLessEqual((self.dir / "full/sweep.journal").stat().st_size, 8_000)
        self.assertRegex(self.run_mllmsim(*few, "--out", "full").stderr, r"[1-9]\d* of 18 points were finished before")
        self.run_mllmsim(*few, "--out", "whole")
        self.same("full", "whole")


class Again(Cli):
    def test_finished_points_are_not_run_again(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s")
        self.assertIn("18 of 18 points were finished before", self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s").stderr)

    def test_more_values_extend_it(self):
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=2,4", "--out", "s")
        done = self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=1,2,4,8", "--out", "s")
        self.assertIn("2 of 4 points were finished before", done.stderr)
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=1,2,4,8", "--out", "whole")
        self.same("s", "whole")

    def test_a_torn_journal_costs_only_the_torn_point(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "whole")
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "torn")
        journal = self.dir / "torn/sweep.journal"
        journal.write_bytes(journal.read_bytes()[:-3])
        self.assertIn("17 of 18", self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "torn").stderr)
        self.same("torn", "whole")

    def test_a_changed_scenario_is_noticed(self):
        mine = self.write("mine.toml", pathlib.Path(INTERNVL).read_text())
        self.run_mllmsim("sweep", mine, *GRID, "--out", "s")
        mine.write_text(mine.read_text().replace("tokens_per_sample = 1100", "tokens_per_sample = 1200"))
        done = self.run_mllmsim("sweep", mine, *GRID, "--out", "s")
        self.assertRegex(done.stderr, r"\d+ earlier results are of other points, or of a scenario")
        self.run_mllmsim("sweep", mine, *GRID, "--out", "whole")
        self.same("s", "whole")

    def test_a_changed_calibration_is_noticed(self):
        shipped = ROOT / "cost_models/calibrations/a100-sxm4-80g.json"
        mine = self.dir / "mine.json"
        mine.write_bytes(shipped.read_bytes())
        command = ["sweep", INTERNVL, f"calibration={mine}", "--vary", f"{PP}=4,8", "--out", "s"]
        self.run_mllmsim(*command)
        before = self.rows("s")
        self.run_mllmsim("calibrate", "scale", shipped, "--gemm", "1.1", "--out", mine)
        done = self.run_mllmsim(*command)
        self.assertIn("2 earlier results", done.stderr)
        for old, new in zip(before, self.rows("s")):
            self.assertGreater(new["iteration_s"], 1.04 * old["iteration_s"])
            self.assertLess(new["iteration_s"], 1.1 * old["iteration_s"])

    def test_a_changed_data_set_is_noticed(self):
        lengths = self.dir / "lengths.json"
        command = ["sweep", PASS, f"data.set={lengths}", "--strategies", "baseline,omnibal", "--out", "s"]
        iterations = []
        for tokens in [100, 400]:
            lengths.write_text(json.dumps([{"vit_num": 1, "token_num": 256 + tokens + i % 50, "image_flags": 1} for i in range(1024)]))
            done = self.run_mllmsim(*command)
            iterations.append([row["iteration_s"] for row in self.rows("s")])
        self.assertIn("2 earlier results", done.stderr)
        for before, after in zip(*iterations):
            self.assertNotEqual(before, after)
        self.assertIn("2 of 2 points were finished before", self.run_mllmsim(*command).stderr)


class Reading(Cli):
    def test_duckdb_and_pyarrow_read_it(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s")
        best = duckdb.sql(f"""select strategy, "{PP}" as pp, gpu_days from '{self.dir}/s/runs.parquet'
                              where fits order by gpu_days limit 1""").fetchall()[0]
        rows = [row for row in self.rows("s") if row["fits"]]
        least = min(rows, key=lambda row: row["gpu_days"])
        self.assertEqual(best, (least["strategy"], least[PP], least["gpu_days"]))
        stages = duckdb.sql(f"""select count(*) from '{self.dir}/s/runs.parquet' r join '{self.dir}/s/stages.parquet' s
                                using (point) where r.iteration_s > 0""").fetchall()[0][0]
        self.assertEqual(stages, sum(row["pp"] for row in self.rows("s") if row["iteration_s"] > 0))


if __name__ == "__main__":
    unittest.main()
