"""compare and explain as a user meets them: compare_test.py MLLMSIM."""

import csv
import io
import json
import pathlib
import unittest

from program import InOneDirectory

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
INTERNVL = str(RUNS / "internvl-6b-20b-a100x32.toml")
GIVEN = str(RUNS / "given-times-1f1b.toml")
PP = "parallelism.pipeline_model_parallel_size"


class Compare(InOneDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mllmsim("run", INTERNVL, "--out", "slow")
        cls.mllmsim("run", INTERNVL, "strategy.name=balanced", "--out", "fast")
        cls.mllmsim("run", INTERNVL, "cluster.gpu_memory=16 GiB", "--out", "small")
        cls.mllmsim("sweep", INTERNVL, "--vary", f"{PP}=2,4,8", "--strategies", "balanced,baseline", "--out", "sweep")

    def rows(self, *arguments):
        return json.loads(self.mllmsim("compare", *arguments, "--json").stdout)["runs"]

    def test_speed_up_is_gpu_days_of_the_baseline_over_those_of_the_run(self):
        slow, fast = self.rows("slow", "fast", "--baseline", "slow")
        self.assertEqual(slow["speed_up"], 1)
        # The same batch on the same GPUs: both ratios are that of the steps.
        self.assertAlmostEqual(fast["speed_up"], slow["iteration_s"] / fast["iteration_s"], places=9)
        self.assertAlmostEqual(fast["speed_up"], slow["gpu_days"] / fast["gpu_days"], places=9)

    def test_the_baseline_can_be_any_run(self):
        slow, fast = self.rows("slow", "fast", "--baseline", "fast")
        self.assertEqual(fast["speed_up"], 1)
        self.assertAlmostEqual(slow["speed_up"], fast["iteration_s"] / slow["iteration_s"], places=9)

    def test_what_does_not_fit_has_no_speed_up(self):
        small = self.rows("slow", "small")[1]
        self.assertFalse(small["fits"])
        self.assertIsNone(small["speed_up"])
        self.assertIn("of 16.0 GiB", small["reason"])

    def test_by_strategy_compares_within_each_point_of_a_sweep(self):
        rows = self.rows("sweep", "--by", "strategy")
        self.assertEqual([row[PP] for row in rows], [2, 2, 4, 4, 8, 8])
        for balanced, baseline in zip(rows[0::2], rows[1::2]):
            if baseline["fits"] and balanced["fits"]:
                self.assertEqual(baseline["speed_up"], 1)
                self.assertAlmostEqual(balanced["speed_up"], baseline["iteration_s"] / balanced["iteration_s"], places=9)

    def test_by_a_key_that_varies(self):
        rows = self.rows("sweep", "--by", "pp", "--baseline", "4")
        self.assertEqual([row["speed_up"] for row in rows if row[PP] == 4], [1, 1])

    def test_a_strategy_as_baseline_implies_by_strategy(self):
        self.assertEqual(self.rows("sweep", "--baseline", "balanced"), self.rows("sweep", "--baseline", "balanced", "--by", "strategy"))

    def test_runs_and_sweeps_together(self):
        self.assertEqual(len(self.rows("slow", "sweep", self.dir / "fast/runs.parquet")), 8)

    def test_tables(self):
        text = self.mllmsim("compare", "sweep", "--by", "strategy").stdout
        self.assertRegex(text, r"balanced +(\d) +\d +\d +\d\.\d\dx +\1\n")
        markdown = self.mllmsim("compare", "slow", "fast", "--markdown").stdout.splitlines()
        self.assertEqual(len({line.count("|") for line in markdown}), 1)
        rows = list(csv.DictReader(io.StringIO(self.mllmsim("compare", "slow", "small", "--csv").stdout)))
        self.assertEqual(float(rows[0]["iteration_s"]), self.rows("slow")[0]["iteration_s"])
        self.assertEqual(rows[1]["fits"], "false")

    def test_mistakes(self):
        self.assertIn("did you mean \"slow\"", self.mllmsim("compare", "slow", "fast", "--baseline", "slw", code=2).stderr)
        self.assertIn("--by", self.mllmsim("compare", "slow", "--by", "colour", code=2).stderr)
        self.assertIn("runs.parquet", self.mllmsim("compare", "nothing", code=2).stderr)
        self.mllmsim("compare", code=2)
        self.mllmsim("compare", "slow", "--json", "--csv", code=2)


class Explain(InOneDirectory):
    def explain(self, *arguments):
        return json.loads(self.mllmsim("explain", *arguments, "--json").stdout)

    def remedy(self, explanation, name):
        return next(r for r in explanation["remedies"] if r["remedy"] == name)

    def test_the_critical_path_is_the_step(self):
        e = self.explain(INTERNVL)
        self.assertAlmostEqual(sum(part["time_s"] for part in e["critical_path"]), e["iteration_s"], places=6)
        self.assertAlmostEqual(sum(part["share"] for part in e["critical_path_stages"]), 1)
        # The encoder's stage is the slowest by far, so the path runs mostly through it.
        self.assertEqual(e["slowest_stage"], 0)
        self.assertGreater(e["critical_path_stages"][0]["share"], 0.5)

    # Every stage forward 1, backward 2 ms, 8 micro-batches, no transfers. The path: 8 x 3 ms on one stage, and the way of one
    # micro-batch through the other three and back, 3 x 3 ms: 11 x 1 ms forward, 11 x 2 ms backward.
    def test_a_pipeline_worked_out_by_hand(self):
        (self.dir / "given.toml").write_text(f"""
            parallelism = {{ pipeline_model_parallel_size = 4, global_batch_size = 8 }}
            given_times = {{ forward = "1 ms", backward = "2 ms", p2p = "0 us" }}
            """)
        e = self.explain("given.toml")
        times = {part["kind"]: part["time_s"] for part in e["critical_path"]}
        self.assertAlmostEqual(times["forward"], 11e-3)
        self.assertAlmostEqual(times["backward"], 22e-3)
        self.assertAlmostEqual(e["imbalance_across_stages"], 1)
        # Twice the micro-batches: (16 + 3) x 3 ms for twice the samples.
        self.assertAlmostEqual(self.remedy(e, "more micro-batches")["gain"], 2 * 11 / 19 - 1)

    def test_each_remedy_is_a_simulation_of_its_own(self):
        e = self.explain(INTERNVL)
        for name in ["recompute off", "better cut", "more micro-batches"]:
            remedy = self.remedy(e, name)
            run = json.loads(self.mllmsim("run", INTERNVL, remedy["change"], "--json").stdout)["runs"][0]
            self.assertEqual(remedy["iteration_s"], run["iteration_s"], name)
            self.assertEqual(remedy["fits"], run["fits"], name)
        self.assertFalse(self.remedy(e, "recompute off")["fits"])
        self.assertIn("does not fit", self.remedy(e, "recompute off")["note"])
        self.assertGreater(self.remedy(e, "better cut")["gain"], 0.3)

    def test_a_result_explains_itself(self):
        self.mllmsim("run", INTERNVL, "cluster.nodes=8", "--out", "run")
        self.assertEqual(self.explain("run"), self.explain(INTERNVL, "cluster.nodes=8"))

    def test_what_does_not_apply_says_so(self):
        e = self.explain(INTERNVL, "strategy.name=balanced", "recompute=none")
        self.assertIn("already", self.remedy(e, "better cut")["note"])
        self.assertIn("nothing", self.remedy(e, "recompute off")["note"])
        self.assertIn("alike", self.remedy(e, "balanced data")["note"])

    def test_data_out_of_balance(self):
        lengths = self.dir / "lengths.json"
        lengths.write_text(json.dumps([{"vit_num": v, "token_num": 256 * v + 50 + i * 37 % 300, "image_flags": v}
                                       for i in range(1100) for v in [(1, 1, 1, 3, 5)[i % 5]]]))
        e = self.explain(RUNS / "internvl-1.2m-a100x32.toml", f"data.set={lengths}")
        self.assertGreater(e["imbalance_across_micro_batches"], 1.1)
        self.assertGreater(self.remedy(e, "balanced data")["gain"], 0)
        packed = json.loads(self.mllmsim("run", RUNS / "internvl-1.2m-a100x32.toml", f"data.set={lengths}", "data.batching=isf", "--json").stdout)
        self.assertEqual(self.remedy(e, "packed data")["gpu_days"], packed["runs"][0]["gpu_days"])

    def test_a_table_for_people(self):
        text = self.mllmsim("explain", INTERNVL).stdout
        for words in ["critical path", "recompute", "slowest stage", "imbalance across micro-batches", "what would help"]:
            self.assertIn(words, text)

    def test_mistakes(self):
        self.mllmsim("explain", code=2)
        self.mllmsim("explain", "no-such", code=2)
        (self.dir / "empty").mkdir()
        self.assertIn("runs.parquet", self.mllmsim("explain", "empty", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
