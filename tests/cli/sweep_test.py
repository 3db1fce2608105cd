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
            if row["feasible"]:
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

    def test_a_varied_key_is_one_column_whatever_its_name(self):
        self.run_mllmsim("sweep", "llama-3-8b-a100x8", "--vary", "cluster=a100-80g-8x200,h100-8x400,nowhere", "--vary", "seed=1,2", "--out", "s")
        table = pyarrow.parquet.read_table(self.dir / "s/runs.parquet")
        self.assertEqual(len(set(table.column_names)), len(table.column_names))
        rows = table.to_pandas()
        self.assertEqual(list(zip(rows["cluster"], rows["seed"])),
                         [(c, s) for c in ["a100-80g-8x200", "h100-8x400", "nowhere"] for s in [1, 2]])
        runs = json.loads(self.run_mllmsim("compare", "s", "--by", "cluster", "--json").stdout)["runs"]
        self.assertEqual({(r["cluster"], r["seed"]) for r in runs}, set(zip(rows["cluster"], rows["seed"])))

    def test_varied_files_have_a_column_of_their_own(self):
        shipped = (ROOT / "scenarios/clusters/a100-80g-8x200.toml").read_text()
        for name in "ab":
            (self.dir / name).mkdir()
            self.write(f"{name}/mine.toml", shipped)
        self.run_mllmsim("sweep", "llama-3-8b-a100x8", "--vary", "cluster=" + ",".join(f"{self.dir}/{n}/mine.toml" for n in "ab"), "--out", "s")
        self.assertEqual([pathlib.Path(row["scenario.cluster"]).parent.name for row in self.rows("s")], ["a", "b"])
        runs = json.loads(self.run_mllmsim("compare", "s", "--json").stdout)["runs"]
        self.assertEqual([r["scenario.cluster"] for r in runs], [row["scenario.cluster"] for row in self.rows("s")])

    def test_an_absurd_point_is_a_row_with_its_reason(self):
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=4,-1,9223372036854775807", "--vary", "cluster.gpu_memory=80 GiB,80 apples",
                         "--out", "s")
        rows = {(row[PP], row["cluster.gpu_memory"]): row for row in self.rows("s")}
        self.assertEqual(len(rows), 6)
        self.assertEqual([key for key, row in rows.items() if row["fits"]], [(4, "80 GiB")])
        self.assertTrue(all(row["reason"] for key, row in rows.items() if key != (4, "80 GiB")))

    def test_swept_numbers_are_numbers_in_compare(self):
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=4,8", "--vary", "cluster.gpu_memory=80 GiB", "--out", "s")
        runs = json.loads(self.run_mllmsim("compare", "s", "--json").stdout)["runs"]
        self.assertEqual([(r[PP], r["cluster.gpu_memory"]) for r in runs], [(4, "80 GiB"), (8, "80 GiB")])

    def test_a_mistyped_key_over_a_large_range_is_said_at_once(self):
        used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # of processors, not of the clock
        before = used()
        done = self.run_mllmsim("sweep", INTERNVL, "--vary", "parallelism.global_batch=1..900000", code=2)
        self.assertIn("unknown key", done.stderr)
        self.assertLess(used() - before, 20)  # reading each took minutes

    def test_numbers_of_the_command_line_have_ranges(self):
        for option in ["--threads=1000000000", "--threads=0", "--threads=two", "--shard=3/18446744073709551615", "--shard=0/4",
                       "--shard=-1/4", "--shard=1", "--shard=1/2/3"]:
            done = self.run_mllmsim("sweep", INTERNVL, *GRID, option, code=2)
            self.assertRegex(done.stderr, "expected (a number from 1 to 4096|I/N with I from 1 to N and N at most 1000000)", option)
        self.assertIn("from 1 to 4096", self.run_mllmsim("sweep", INTERNVL, *GRID, "-j", "-1", code=2).stderr)
        for command in (["run", INTERNVL], ["validate"]):
            for threads in ("-1", "0", "1000000000", "two"):
                self.assertIn("from 1 to 4096", self.run_mllmsim(*command, "-j", threads, code=2).stderr)
        self.assertIn("from 1 to 1000000", self.run_mllmsim("calibrate", "gaps", INTERNVL, "--top", "-1", code=2).stderr)
        many = self.run_mllmsim("sweep", INTERNVL, "--vary", "seed=1..4000", "--vary", f"{BATCH}=1..5000", code=2)
        self.assertIn("20000000 points, at most 10000000", many.stderr)
        self.assertFalse((self.dir / "results").exists())

    def test_the_number_of_points_is_said_before_the_start(self):
        self.assertTrue(self.run_mllmsim("sweep", INTERNVL, *GRID, "--shard", "4/5").stderr.startswith("18 points, 3 of them in shard 4 of 5\n"))

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

    def test_shards_of_one_out_are_found_by_merge(self):
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "whole")
        for i in [1, 2, 3]:
            self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s", "--shard", f"{i}/3")
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s", "--shard", "1/2")  # given up: 2/2 is not there
        self.run_mllmsim("merge", "s")
        self.same("whole", "s")
        self.run_mllmsim("sweep", INTERNVL, *GRID, "--out", "s", "--shard", "2/2")
        self.assertIn("in several ways, 2 of them complete", self.run_mllmsim("merge", "s", code=2).stderr)
        self.run_mllmsim("merge", "s/shard-1-of-2", "s/shard-2-of-2", "--out", "named")
        self.same("whole", "named")

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

    def test_a_long_point_does_not_hold_up_a_signal(self):
        process = self.start("sweep", GIVEN, "--vary", f"{BATCH}=3000000,6000000", "--out", "s", "--threads", "1")
        while not (self.dir / "s/sweep.journal").exists():
            self.assertIsNone(process.poll(), "the sweep ended before it could be interrupted")
            time.sleep(0.01)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 143)
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn("the same command continues", process.stderr.read())

    def test_what_a_killed_run_left_is_removed(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        (self.dir / "s").mkdir()
        stale, alive, other = (self.write(f"s/{name}", "") for name in
                               [f"runs.parquet.tmp-{ended.pid}-0", "runs.parquet.tmp-1-0", "notes.tmp-x"])
        self.run_mllmsim("sweep", INTERNVL, "--vary", f"{PP}=4", "--out", "s")
        self.assertEqual([path.exists() for path in [stale, alive, other]], [False, True, True])

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
                                using (point) where r.feasible""").fetchall()[0][0]
        self.assertEqual(stages, sum(row["pp"] for row in self.rows("s") if row["feasible"]))


if __name__ == "__main__":
    unittest.main()
