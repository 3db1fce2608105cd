"""What a new user stumbles over: names, comparisons, short forms and messages. friendly_test.py MLLMSIM."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import pandas

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
INTERNVL = "internvl-6b-20b-a100x32"
LLM = ("num_hidden_layers = {layers}, hidden_size = 1024, num_attention_heads = 16, "
       "intermediate_size = 4096, vocab_size = 32000, rotary = true")
RUN = """
cluster = {{ base = "a100-80g-4x200", nodes = 1 }}
model.llm = {{ {llm} }}
parallelism = {{ global_batch_size = 16 }}
data = {{ tokens_per_sample = 1024, samples = 1000 }}
"""


class Friendly(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.dir = pathlib.Path(cls.temporary.name)
        for name, layers in (("small", 4), ("large", 16)):
            (cls.dir / f"{name}.toml").write_text(RUN.format(llm=LLM.format(layers=layers)))
            cls.mllmsim("run", f"{name}.toml", "-o", name)
        cls.mllmsim("run", "large.toml", "tp=2", "-o", "large-tp2")
        cls.mllmsim("run", "large.toml", "cluster.nodes=2", "-o", "large-16")
        for name in "abc":
            cls.lengths(name)

    @classmethod
    def mllmsim(cls, *arguments, code=0):
        done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=cls.dir, capture_output=True, text=True)
        if done.returncode != code:
            raise AssertionError(f"exit code {done.returncode}, not {code}: {done.stderr}")
        return done

    @classmethod
    def lengths(cls, name):
        records = [{"vit_num": 1 + i % 3, "token_num": 300 * (1 + i % 3) + i % 50} for i in range(400)]
        (cls.dir / f"{name}.json").write_text(json.dumps(records))

    def row(self, name):
        return pandas.read_parquet(self.dir / name / "runs.parquet").loc[0]

    def compare(self, *arguments):
        return json.loads(self.mllmsim("compare", *arguments, "--json").stdout)["runs"]

    def test_a_model_of_a_run_file_is_named_after_it(self):
        self.assertEqual([self.row(name).model for name in ("small", "large")], ["small", "large"])

    def test_only_the_same_work_is_compared(self):
        small, large, tp2 = self.compare("small", "large", "large-tp2")
        self.assertIsNone(small["speed_up"])
        self.assertEqual(large["speed_up"], 1)
        self.assertAlmostEqual(tp2["speed_up"], large["gpu_days"] / tp2["gpu_days"])
        self.assertIn("another model", self.mllmsim("compare", "small", "large").stdout)
        self.mllmsim("report", "small", "large", "large-tp2", "-o", "r.html")
        cells = re.findall(r"<td>([0-9.]+ x|-)</td>", (self.dir / "r.html").read_text())
        self.assertEqual(cells, ["-", "1.00 x", f"{tp2['speed_up']:.2f} x"])

    def test_another_number_of_samples_is_other_work(self):
        self.mllmsim("run", "large.toml", "data.samples=2000", "-o", "large-2000")
        self.assertEqual([r["speed_up"] for r in self.compare("large", "large-2000")], [None, None])

    def test_names_do_not_make_other_work(self):
        self.mllmsim("run", "large.toml", "model.name=mine", "name=mine", "-o", "named")
        self.assertEqual([r["speed_up"] for r in self.compare("large", "named")], [1, 1])

    def test_speed_up_is_gpu_days_everywhere(self):
        few, many = self.compare("large", "large-16")
        self.assertAlmostEqual(many["speed_up"], few["gpu_days"] / many["gpu_days"])
        self.assertLess(many["speed_up"], 1.001)  # twice the GPUs are no gain in GPU-days
        self.mllmsim("report", "large", "large-16", "-o", "two.html")
        self.assertIn(f"<td>{many['speed_up']:.2f} x</td>", (self.dir / "two.html").read_text())

    def test_days_and_cost(self):
        row = self.row("large")
        self.assertAlmostEqual(row.days, row.gpu_days / row.gpus)
        text = self.mllmsim("run", "large.toml", "--price-per-gpu-hour", 2.5, "-o", "x").stdout
        self.assertRegex(text, r"wall clock +[0-9.]+ (days|hours|minutes) on 8 GPUs")
        self.assertRegex(text, r"cost +[0-9.,]+ +price +2\.5 per GPU-hour")
        compared = json.loads(self.mllmsim("compare", "large", "--json", "--price-per-gpu-hour", 2.5).stdout)["runs"][0]
        self.assertAlmostEqual(compared["cost"], row.gpu_days * 24 * 2.5)
        self.assertIn("--price-per-gpu-hour", self.mllmsim("run", "large.toml", "--price-per-gpu-hour", 0, code=2).stderr)

    def test_a_step_says_how_many_samples_it_has(self):
        self.assertEqual(self.row("large").samples_per_step, 16)
        self.mllmsim("run", "internvl-1.2m-a100x32", "strategy.name=omnibal", "data.steps=2", "-o", "packed")
        steps = pandas.read_parquet(self.dir / "packed/steps.parquet").groupby("step").samples.sum()
        row = self.row("packed")
        self.assertAlmostEqual(row.samples_per_step, steps.mean())
        self.assertNotEqual(row.samples_per_step, row.global_batch_size)

    def test_nothing_trained_is_refused(self):
        error = self.mllmsim("run", "large.toml", "model.llm.trained=false", code=2).stderr
        self.assertIn("nothing is trained", error)
        self.assertIn("model.llm.trained", error)

    def test_senseless_limits_of_packs_are_refused(self):
        error = self.mllmsim("pack", "a.json", "--q-t", 10, code=2).stderr
        self.assertIn("--q-t: expected a whole number from 300", error)
        self.assertIn("kept from 3 tiles or 222 tokens", self.mllmsim("pack", "a.json", "--q-t", 350, "--q-v", 3).stdout)
        self.assertIn("or 1 tokens", self.mllmsim("pack", "internvl-1.2m", "--q-t", 100, "--algorithm", "isf").stdout)

    def test_several_lengths_files_are_packed_together(self):
        self.assertEqual(json.loads(self.mllmsim("pack", "a.json", "b.json", "c.json", "--json").stdout)["samples"], 1200)

    def test_pack_out_writes_the_fewest_packs(self):
        packings = json.loads(self.mllmsim("pack", "a.json", "--out", "p.parquet", "--json").stdout)["packings"]
        self.assertEqual(pandas.read_parquet(self.dir / "p.parquet").pack.nunique(), min(p["packs"] for p in packings))

    def test_calibrate(self):
        self.assertIn("calibrate fit RAW", self.mllmsim("calibrate", "fit", "--help").stdout)
        self.assertIn("error: ", self.mllmsim("calibrate", "show", ".", code=2).stderr)
        self.assertIn("A100", self.mllmsim("calibrate", "show", "a100-sxm4-80g").stdout.upper())
        self.assertIn('there are "a100-sxm4-80g"', self.mllmsim("calibrate", "show", "tpu", code=2).stderr)
        self.assertTrue(self.mllmsim("calibrate", "fit", "nothing.jsonl", "--out", "x", code=2).stderr.startswith("error: "))

    def test_an_nccl_log_that_does_not_say_its_operation(self):
        ranks = "\n".join(f"#  Rank  {i} Group  0 Pid 1 on n0 device  {i} [0x00] NVIDIA A100" for i in range(2))
        head = "#       size         count      type   redop    root     time   algbw   busbw  error"
        (self.dir / "log.txt").write_text(f"# Using devices\n{ranks}\n{head}\n 1048576 262144 float sum -1 40.0 26 26 0\n")
        self.assertIn("--op", self.mllmsim("calibrate", "import", "nccl", "log.txt", code=2).stderr)
        raw = self.mllmsim("calibrate", "import", "nccl", "log.txt", "--op", "all_reduce").stdout
        self.assertIn("all_reduce", raw)
        self.assertIn("--op", self.mllmsim("calibrate", "import", "nccl", "log.txt", "--op", "x", code=2).stderr)

    def test_what_is_not_there_is_wrong_input(self):
        for command in (["report", "nothing"], ["trace", "nothing", "-o", "t.json"], ["plot", "timeline", "nothing"]):
            self.assertIn("nothing", self.mllmsim(*command, code=2).stderr)
        error = self.mllmsim("plot", "bubbles", "large", "-o", "no/where/a.svg", code=2).stderr
        self.assertIn("no folder no/where", error)
        self.assertNotIn(".csv", error)

    def test_choices_are_listed(self):
        for change, choice in (("strategy.name=xyzzy", '"baseline"'), ("cluster=xyzzy", '"a100-80g-4x200"'),
                               ("calibration=xyzzy", '"a100-sxm4-80g"')):
            self.assertIn(choice, self.mllmsim("run", "large.toml", change, code=2).stderr)

    def test_no_far_fetched_did_you_mean(self):
        self.assertNotIn("did you mean", self.mllmsim("run", "large.toml", "model.llm.lora=1", code=2).stderr)

    def test_short_forms(self):
        self.mllmsim("run", "large.toml", "tp=2", "pp=2", "mbs=2", "gbs=32", "dp=2", "-o", "short")
        row = self.row("short")
        self.assertEqual([row.tp, row.pp, row.dp, row.micro_batch_size, row.global_batch_size], [2, 2, 2, 2, 32])
        self.assertIn("gbs", self.mllmsim("run", "--help").stdout)

    def test_a_data_set_replaces_uniform_samples(self):
        run = self.mllmsim("run", INTERNVL, "data.set=internvl-1.2m", "data.steps=1", "--json", "-o", "set")
        self.assertEqual(json.loads(run.stdout)["runs"][0]["samples"], 1267819)


if __name__ == "__main__":
    unittest.main()
