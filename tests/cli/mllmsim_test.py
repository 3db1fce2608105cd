"""The program as a user meets it: mllmsim_test.py MLLMSIM runs the built binary and reads what it leaves."""

import json
import os
import pathlib
import resource
import subprocess
import unittest

import duckdb
import pandas

from program import MLLMSIM, InItsOwnDirectory

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "scenarios" / "data" / "pictures-1k.jsonl"
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
INTERNVL = str(RUNS / "internvl-6b-20b-a100x32.toml")
OPTIMUS = str(RUNS / "vit-22b-gpt-175b-h100x3072.toml")
TABLES = ["runs", "plan", "stages", "steps", "spans", "memory", "gaps"]


class Cli(InItsOwnDirectory):
    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path


class Run(Cli):
    def test_leaves_tables_that_pandas_and_duckdb_open(self):
        self.mllmsim("run", INTERNVL)
        out = self.dir / "results/runs/internvl-6b-20b-a100x32"
        runs = pandas.read_parquet(out / "runs.parquet")
        self.assertEqual(runs.loc[0, "gpus"], 32)
        self.assertEqual(len(pandas.read_parquet(out / "stages.parquet")), 4)
        total = duckdb.sql(f"select sum(end_ns - start_ns) from '{out}/spans.parquet' where stream = 'compute'").fetchall()[0][0]
        # At stage granularity compute spans and bubbles tile each of the four stages' steps.
        self.assertAlmostEqual(total / 4e9, runs.loc[0, "iteration_s"], places=6)

    def test_gpu_days_follow_from_iteration_time(self):
        run = json.loads(self.mllmsim("run", INTERNVL, "--json").stdout)["runs"][0]
        steps = run["samples"] / run["global_batch_size"]
        self.assertAlmostEqual(run["gpu_days"], run["gpus"] * run["iteration_s"] * steps / 86400, places=9)

    def test_busy_and_bubbles_fill_the_step_of_every_stage(self):
        run = json.loads(self.mllmsim("run", OPTIMUS, "--json").stdout)["runs"][0]
        for stage in run["stages"]:
            self.assertAlmostEqual(stage["busy_s"] + stage["bubble_s"], run["iteration_s"], places=6)

    def test_same_bytes_with_one_thread_and_two(self):
        for name, threads in [("a", 1), ("b", 2), ("c", 2)]:
            self.mllmsim("run", INTERNVL, OPTIMUS, "--out", name, "--threads", threads)
        files = sorted(p.relative_to(self.dir / "a") for p in (self.dir / "a").rglob("*.parquet"))
        self.assertEqual(len(files), 2 * len(TABLES))
        for file in files:
            for other in ["b", "c"]:
                self.assertEqual((self.dir / "a" / file).read_bytes(), (self.dir / other / file).read_bytes(), file)

    def test_overrides_and_their_own_directory(self):
        done = self.mllmsim("run", INTERNVL, "strategy.name=balanced", "cluster.nodes=8", "parallelism.global_batch_size=1024", "--json")
        run = json.loads(done.stdout)["runs"][0]
        self.assertEqual((run["strategy"], run["gpus"], run["dp"]), ("balanced", 64, 8))
        self.assertEqual(len(list((self.dir / "results/runs").glob("internvl-6b-20b-a100x32+*"))), 1)

    def test_both_granularities_take_the_same_time(self):
        times = [json.loads(self.mllmsim("run", INTERNVL, f"granularity={g}", "--json").stdout)["runs"][0]["iteration_s"]
                 for g in ["stage", "kernel"]]
        self.assertEqual(*times)

    @unittest.skipIf(os.environ.get("MLLMSIM_SANITIZE"), "a sanitizer takes memory of its own")
    def test_3072_gpus_by_kernel_fit_in_2_gib(self):
        self.mllmsim("run", OPTIMUS, "granularity=kernel")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 2 * 1024 * 1024)  # KiB

    def test_what_does_not_fit_is_a_result_with_a_reason(self):
        done = self.mllmsim("run", INTERNVL, "cluster.gpu_memory=16 GiB", "--json")
        run = json.loads(done.stdout)["runs"][0]
        self.assertFalse(run["fits"])
        self.assertIn("of 16.0 GiB", run["reason"])

    def test_given_times_need_no_model(self):
        scenario = self.write("given.toml", """
            [parallelism]
            pipeline_model_parallel_size = 4
            global_batch_size = 8
            [given_times]
            forward = "1 ms"
            backward = "2 ms"
            p2p = "0 us"
            """)
        run = json.loads(self.mllmsim("run", scenario, "--json").stdout)["runs"][0]
        self.assertAlmostEqual(run["iteration_s"], (8 + 4 - 1) * 3e-3, places=12)

    def test_metadata_says_how_to_run_it_again(self):
        self.mllmsim("run", INTERNVL, "--out", "o")
        metadata = duckdb.sql(f"select key::varchar, value::varchar from parquet_kv_metadata('{self.dir}/o/runs.parquet')").fetchall()
        keys = {key for key, _ in metadata}
        self.assertLessEqual({"scenario", "scenario_hash", "calibration_hash", "version", "seed"}, keys)


class Mistakes(Cli):
    def test_all_problems_of_a_scenario_at_once_with_line_and_suggestion(self):
        scenario = self.write("bad.toml", 'model = "internvl-6b-20b"\ncluster = "a100-80g-4x200"\n'
                              "[parallelism]\ntensor_model_paralel_size = 2\nmicro_batch_size = \"four\"\n")
        error = self.mllmsim("run", scenario, code=2).stderr
        self.assertIn("bad.toml:4:", error)
        self.assertIn("did you mean", error)
        self.assertIn("bad.toml:5:", error)
        self.assertFalse((self.dir / "results").exists())

    def test_unknown_file_command_and_option(self):
        self.assertIn("no-such", self.mllmsim("run", "no-such.toml", code=2).stderr)
        self.assertIn("no such command", self.mllmsim("rum", code=2).stderr)
        self.assertIn("--frobnicate", self.mllmsim("run", INTERNVL, "--frobnicate", code=2).stderr)
        self.mllmsim("run", code=2)

    def test_a_bad_override_names_itself(self):
        error = self.mllmsim("run", INTERNVL, "parallelism.zero_stage=4", code=2).stderr
        self.assertIn("command line", error)
        self.assertIn("zero_stage", error)

    def test_an_unwritable_place_is_the_machines_fault(self):
        self.write("file", "")
        self.mllmsim("run", INTERNVL, "--out", self.dir / "file" / "sub", code=3)

    def test_two_runs_do_not_write_to_one_place(self):
        self.assertIn("another run", self.mllmsim("run", INTERNVL, INTERNVL, code=2).stderr)

    def test_a_missing_calibration_is_said_so(self):
        error = self.mllmsim("run", INTERNVL, "calibration=h300", code=2).stderr
        self.assertIn("h300", error)


class Calibrate(Cli):
    CALIBRATIONS = ROOT / "cost_models" / "calibrations"

    def test_show_names_source_points_and_error_of_every_part(self):
        text = self.mllmsim("calibrate", "show", self.CALIBRATIONS / "a100-sxm4-80g.json").stdout
        self.assertRegex(text, r"gemm, m n k >= 512 +interpolated +\d+ +\d\.\d% +\d+\.\d%")
        self.assertRegex(text, r"collectives in a node +interpolated")
        self.assertRegex(text, r"FlashAttention 1 / 2 +estimate +x 2.000")
        self.assertRegex(text, r"(?m)^data sheet\n    NVIDIA A100 Tensor Core GPU data sheet")

    def test_scale_moves_a_run_and_marks_it_transferred(self):
        scaled = self.dir / "mine.json"
        self.mllmsim("calibrate", "scale", self.CALIBRATIONS / "a100-sxm4-80g.json", "--gemm", "1.1", "--out", scaled)
        runs = [json.loads(self.mllmsim("run", INTERNVL, "--json", *more).stdout)["runs"][0]
                for more in [[], [f"calibration={scaled}"]]]
        # More than 40 % of the step are GEMMs, and less than all of it.
        self.assertGreater(runs[1]["iteration_s"], 1.04 * runs[0]["iteration_s"])
        self.assertLess(runs[1]["iteration_s"], 1.1 * runs[0]["iteration_s"])
        self.assertGreater(runs[1]["cost_share_transferred"], runs[0]["cost_share_transferred"])

    def test_a_run_says_what_it_rests_on(self):
        run = json.loads(self.mllmsim("run", INTERNVL, "--json").stdout)["runs"][0]
        shares = [run[f"cost_share_{s}"] for s in ["measured", "interpolated", "transferred", "estimate"]]
        self.assertAlmostEqual(sum(shares), 1)

    def test_gaps_are_a_to_do_list_for_the_measuring_program(self):
        shapes = self.dir / "shapes.jsonl"
        text = self.mllmsim("calibrate", "gaps", INTERNVL, "--out", shapes).stdout
        self.assertIn("weight_gradient", text)
        companion = pathlib.Path(MLLMSIM).with_name("mllmsim-calibrate")
        for option, what in [("--shapes", shapes), ("--scenario", INTERNVL)]:
            plan = subprocess.run([companion, "--plan", option, what], capture_output=True, text=True)
            self.assertEqual(plan.returncode, 0, plan.stderr)
        plan = subprocess.run([companion, "--plan", "--scenario", "no-such"], capture_output=True, text=True)
        self.assertEqual(plan.returncode, 2)

    def test_raw_measurements_are_fitted_and_used(self):
        # A GPU that runs every GEMM at 100 TFLOP/s after 5 us, measured at 300 sizes.
        sizes = [512, 768, 1024, 1536, 2048, 3072, 4096, 6144]
        lines = ['{"header": {"gpu": "NVIDIA A100-SXM4-80GB"}}']
        lines += [json.dumps({"part": "gemm", "m": m, "n": n, "k": k, "pass": "forward", "us": 5 + 2 * m * n * k / 100e6})
                  for m in sizes for n in sizes for k in sizes[::2]]
        raw = self.write("raw.jsonl", "\n".join(lines) + "\n")
        mine = self.dir / "mine.json"
        self.mllmsim("calibrate", "fit", raw, "--out", mine)
        slow = json.loads(self.mllmsim("run", INTERNVL, f"calibration={mine}", "--json").stdout)["runs"][0]
        fast = json.loads(self.mllmsim("run", INTERNVL, "--json").stdout)["runs"][0]
        self.assertGreater(slow["iteration_s"], 1.5 * fast["iteration_s"])

    def test_mistakes(self):
        self.mllmsim("calibrate", "show", "nothing.json", code=2)
        broken = self.write("broken.json", "{")
        self.assertIn("broken.json", self.mllmsim("calibrate", "show", broken, code=2).stderr)
        self.mllmsim("calibrate", "gaps", code=2)
        self.mllmsim("calibrate", "frobnicate", code=2)


class Listing(Cli):
    def test_strategies_models_clusters_and_runs_have_descriptions(self):
        text = self.mllmsim("list").stdout
        for word in ["baseline", "balanced", "internvl-6b-20b", "a100-80g-4x200", "vit-22b-gpt-175b-h100x3072", "internvl-1.2m"]:
            self.assertIn(word, text)
        for line in text.splitlines():
            if line.startswith("  ") and not line.startswith("    "):
                self.assertGreater(len(line.split()), 1, line)

    def test_help_and_version(self):
        self.assertIn("run", self.mllmsim("--help").stdout)
        self.assertIn("--out", self.mllmsim("run", "--help").stdout)
        self.assertRegex(self.mllmsim("--version").stdout, r"^mllmsim \d+\.\d+\.\d+\n$")


class Shipped(Cli):
    def test_every_shipped_run_runs(self):
        for run in sorted(RUNS.glob("*.toml")):
            with self.subTest(run.stem):
                result = json.loads(self.mllmsim("run", run, "--json").stdout)["runs"][0]
                self.assertAlmostEqual(result["gpu_days"] * 86400 / result["gpus"] / result["iteration_s"],
                                       result["samples"] / result["samples_per_step"], places=6)

    def test_every_shipped_model_can_be_simulated(self):
        models = self.mllmsim("list", "models").stdout.split("encoders\n")[0].splitlines()[1:]
        for model in [line.split()[0] for line in models]:
            with self.subTest(model):
                sees = "vl" in model or "vision" in model or model.startswith(("llava", "vit", "qwen3.6", "qwen3.8")) or model == "gemma-3-27b"
                data = f'set = "{PICTURES}"\nsteps = 1' if sees else "samples = 1000\ntokens_per_sample = 2048"
                scenario = self.write("m.toml", f"""
                    cluster = {{ base = "h100-8x400", nodes = 16 }}
                    model = "{model}"
                    [parallelism]
                    tensor_model_parallel_size = 1
                    pipeline_model_parallel_size = 4
                    global_batch_size = 128
                    [data]
                    {data}
                    """)
                self.mllmsim("run", scenario, "--json")


if __name__ == "__main__":
    unittest.main(verbosity=2)
