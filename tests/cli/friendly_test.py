"""What a new user stumbles over: names, comparisons, short forms and messages. friendly_test.py MLLMSIM."""

import json
import pathlib
import re
import subprocess
import unittest

import pandas
import pyarrow.parquet

from program import MLLMSIM, InOneDirectory

INTERNVL = "internvl-6b-20b-a100x32"
LLM = ("num_hidden_layers = {layers}, hidden_size = 1024, num_attention_heads = 16, "
       "intermediate_size = 4096, vocab_size = 32000, rotary = true")
RUN = """
cluster = {{ base = "a100-80g-4x200", nodes = 1 }}
model.llm = {{ {llm} }}
parallelism = {{ global_batch_size = 16 }}
data = {{ tokens_per_sample = 1024, samples = 1000 }}
"""


class Friendly(InOneDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, layers in (("small", 4), ("large", 16)):
            (cls.dir / f"{name}.toml").write_text(RUN.format(llm=LLM.format(layers=layers)))
            cls.mllmsim("run", f"{name}.toml", "-o", name)
        cls.mllmsim("run", "large.toml", "tp=2", "-o", "large-tp2")
        cls.mllmsim("run", "large.toml", "cluster.nodes=2", "-o", "large-16")
        for name in "abc":
            cls.lengths(name)

    @classmethod
    def lengths(cls, name):
        records = [{"vit_num": 1 + i % 3, "token_num": 300 * (1 + i % 3) + i % 50} for i in range(400)]
        (cls.dir / f"{name}.json").write_text(json.dumps(records))

    def row(self, name):
        return pandas.read_parquet(self.dir / name / "runs.parquet").loc[0]

    def compare(self, *arguments):
        return json.loads(self.mllmsim("compare", *arguments, "--json").stdout)["runs"]

    def test_run_says_what_would_fit_each_simulated(self):
        (self.dir / "eight_b.toml").write_text(
            'model = "llama-3-8b"\ncluster = { base = "h100-8x400" }\n[parallelism]\nzero_stage = 1\nmicro_batch_size = 2\n'
            'global_batch_size = 64\n[data]\nsamples = 1e6\ntokens_per_sample = 8192\n')
        run = json.loads(self.mllmsim("run", "eight_b.toml", "--json").stdout)["runs"][0]
        self.assertFalse(run["fits"])
        self.assertIn("activations", run["reason"])  # what is biggest
        times = [row["iteration_s"] for row in run["would_fit"] if "tokens" not in row["change"]]
        self.assertEqual(times, sorted(times))
        for row in run["would_fit"]:
            alone = json.loads(self.mllmsim("run", "eight_b.toml", *row["change"].split(), "--json").stdout)["runs"][0]
            self.assertTrue(alone["fits"], row)
            self.assertEqual(alone["iteration_s"], row["iteration_s"])
        self.assertIn("recompute=full", [row["change"] for row in run["would_fit"]])
        # The longest samples of a multiple of 64 tokens that fit: 64 more do not.
        longest = [row["change"] for row in run["would_fit"] if "tokens_per_sample" in row["change"]]
        self.assertEqual(len(longest), 1)
        tokens = int(longest[0].split("=")[1])
        more = json.loads(self.mllmsim("run", "eight_b.toml", f"data.tokens_per_sample={tokens + 64}", "--json").stdout)["runs"][0]
        self.assertFalse(more["fits"])
        self.assertIn("would fit with", self.mllmsim("run", "eight_b.toml").stdout)

    def test_samples_longer_than_max_tokens_are_left_out_of_a_file(self):
        (self.dir / "longest.csv").write_text("vit_num,token_num\n" + "1,300\n" * 60 + "1,900\n" * 20)
        (self.dir / "longest.toml").write_text(
            'model = { llm = "qwen2.5-7b", encoders = [{ base = "internvit-300m-448", projector = "mlp2", pixel_shuffle = 0.5 }] }\n'
            'cluster = "h100-8x400"\nrecompute = "full"\ndata = { set = "longest.csv" }\n[parallelism]\nglobal_batch_size = 8\n')
        samples = [json.loads(self.mllmsim("run", "longest.toml", *keys, "--json").stdout)["runs"][0]["samples"]
                   for keys in ([], ["data.max_tokens=512"])]
        self.assertEqual(samples, [80, 60])

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
        self.assertRegex(text, r"wall clock +[0-9.]+ (hours|minutes|seconds) on 8 GPUs")
        self.assertRegex(text, r"cost +[0-9.,]+ +price +2\.5 per GPU-hour")
        both = self.mllmsim("run", "small.toml", "large.toml", "--price-per-gpu-hour", 2.5).stdout
        self.assertRegex(both, r"GPU-days +days +cost +MFU")
        compared = json.loads(self.mllmsim("compare", "large", "--json", "--price-per-gpu-hour", 2.5).stdout)["runs"][0]
        self.assertAlmostEqual(compared["cost"], row.gpu_days * 24 * 2.5)
        self.assertIn("--price-per-gpu-hour", self.mllmsim("run", "large.toml", "--price-per-gpu-hour", 0, code=2).stderr)

    def test_days_and_cost_beside_gpu_days_everywhere(self):
        price = ["--price-per-gpu-hour", 2.5]
        cost = lambda row: row["gpu_days"] * 24 * 2.5
        sweep = ["sweep", "large.toml", "--vary", "tp=1,3", "-o", "priced", *price]
        self.assertRegex(self.mllmsim(*sweep).stdout, r"GPU-days +days +cost")
        points = json.loads(self.mllmsim(*sweep, "--json").stdout)["points"]
        self.assertEqual([point["cost"] for point in points], [cost(points[0]), None])
        e = json.loads(self.mllmsim("explain", "large.toml", "--json", *price).stdout)
        self.assertEqual([e["cost"], e["days"]], [cost(e), e["gpu_days"] / 8])
        self.assertTrue(all(r["cost"] == cost(r) for r in e["remedies"] if "gpu_days" in r))
        text = self.mllmsim("explain", "large.toml", *price).stdout
        self.assertRegex(text, r"GPU-days \([0-9.]+ seconds on 8 GPUs\)")
        self.assertRegex(text, r"what would help +gain +iteration s +GPU-days +cost")
        self.mllmsim("report", "large", "large-tp2", "-o", "priced.html", *price)
        self.assertIn('<th scope="col">cost</th>', (self.dir / "priced.html").read_text())
        self.mllmsim("report", "priced", "-o", "points.html", *price)
        self.assertRegex((self.dir / "points.html").read_text(), r"seconds on 8 GPUs, cost [0-9.]+\)")
        self.assertIn("--price", self.mllmsim("sweep", "large.toml", "--vary", "tp=1", "--price-per-gpu-hour", -1, code=2).stderr)

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

    def test_quoted_headings_of_a_lengths_file(self):
        (self.dir / "quoted.csv").write_text('"vit_num", "token_num"\n"1","300"\n2,600\n')
        self.assertEqual(json.loads(self.mllmsim("pack", "quoted.csv", "--json").stdout)["samples"], 2)

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

    # Keys as other programs call them, or without their table; what is proposed is a key.
    def test_keys_by_other_names(self):
        source = (pathlib.Path(__file__).resolve().parents[2] / "scenarios/tree/other_names.cpp").read_text()
        others = re.findall(r'\{"(\w+)", "([\w.]+)"\}', source)
        self.assertGreater(len(others), 40)
        written = {"tp": "parallelism.tensor_model_parallel_size", **dict(others)}
        error = self.mllmsim("run", "large.toml", *[f"odd.{name}=1" for name in written], code=2).stderr
        self.assertIn("odd: unknown key", error)
        for name, key in written.items():
            if name != key.split(".")[0]:
                error = self.mllmsim("run", "large.toml", f"parallelism.{name}=x", code=2).stderr
                if f"parallelism.{name}" != key:
                    self.assertIn(f'did you mean "{key}"?', error)
        for key in set(written.values()):
            done = subprocess.run([MLLMSIM, "run", "large.toml", f"{key}=1", "-o", "other"], cwd=self.dir, capture_output=True, text=True)
            self.assertNotIn("unknown key", done.stderr, key)

    def test_slips_that_newcomers_make(self):
        (self.dir / "slip.toml").write_text('{"model": "qwen2.5-7b", "cluster": "h100-8x400"}')
        self.assertIn("slip.toml:1:1: not valid TOML, but perhaps JSON", self.mllmsim("run", "slip.toml", code=2).stderr)
        self.assertEqual(self.mllmsim("run", "missing.toml", code=2).stderr, "error: missing.toml: no such file\n")
        self.assertIn("without dashes: tp=2", self.mllmsim("run", "large.toml", "--tp", 2, code=2).stderr)
        self.assertIn("data.batching: needs data.set", self.mllmsim("run", "large.toml", "data.batching=isf", code=2).stderr)
        (self.dir / "both.toml").write_text((self.dir / "large.toml").read_text().replace("samples = 1000", 'set = "a.json"'))
        self.assertIn("both.toml:5:30: data.tokens_per_sample: data.set says it", self.mllmsim("run", "both.toml", code=2).stderr)
        self.assertIn("pictures-1k", self.mllmsim("list", "data").stdout)
        self.mllmsim("run", "qwen2.5-vl-7b-h100x16", "data.set=pictures-1k", "data.steps=1", "-o", "by-name")
        did = self.mllmsim("run", "large.toml", "cluster.gpu_memory=2 GiB", "-o", "little").stderr
        self.assertIn("`mllmsim explain little` tries what would make it fit", did)
        self.mllmsim("report", "little", "-o", "little.html")
        self.assertRegex((self.dir / "little.html").read_text(), r"</strong>: it cannot be done\. stage 0 needs .*mllmsim explain")
        self.assertIn("none of these fits", self.mllmsim("explain", "small.toml", "cluster.gpu_memory=1 GiB").stdout)

    def test_short_forms(self):
        self.mllmsim("run", "large.toml", "tp=2", "pp=2", "mbs=2", "gbs=32", "dp=2", "-o", "short")
        row = self.row("short")
        self.assertEqual([row.tp, row.pp, row.dp, row.micro_batch_size, row.global_batch_size], [2, 2, 2, 2, 32])
        self.assertIn("gbs", self.mllmsim("run", "--help").stdout)

    def test_short_forms_wherever_keys_are_taken(self):
        self.mllmsim("sweep", "large.toml", "gbs=32", "--vary", "tp=1,2", "--vary", "mbs=1..4*2", "-o", "shorts")
        rows = pandas.read_parquet(self.dir / "shorts/runs.parquet")
        self.assertEqual(sorted(set(rows["parallelism.tensor_model_parallel_size"])), [1, 2])
        self.assertEqual(sorted(set(rows["parallelism.micro_batch_size"])), [1, 2, 4])
        self.mllmsim("plot", "sweep", "shorts", "--where", "mbs=2", "--x", "tp", "-o", "s.svg", "--data", "s.csv")
        self.assertIn("mean speed-up", self.mllmsim("compare", "shorts", "--by", "mbs", "--baseline", "1").stdout)
        (self.dir / "swept.toml").write_text((self.dir / "large.toml").read_text() + "[sweep.vary]\npp = [1, 2]\n")
        self.mllmsim("sweep", "swept.toml", "-o", "swept")
        self.assertIn("parallelism.pipeline_model_parallel_size", pandas.read_parquet(self.dir / "swept/runs.parquet"))

    # Packs of a and b hold more samples than micro-batches of 2: with equal_batch a step has fewer of them.
    def test_packs_at_equal_samples_per_step(self):
        set_up = ["large.toml", "data.set=a.json", "mbs=2", "gbs=64", "data.batching=isf"]
        rows = {}
        for name, more in (("as-many", []), ("equal", ["data.equal_batch=true"])):
            self.mllmsim("run", *set_up, *more, "-o", name)
            rows[name] = self.row(name)
            steps = pandas.read_parquet(self.dir / name / "steps.parquet")
            self.assertEqual(rows[name].micro_batches, steps.micro_batches[0])
        per_pack = rows["equal"].samples_per_micro_batch * rows["equal"].dp
        self.assertLessEqual(abs(rows["equal"].samples_per_step - 64), per_pack / 2 + 1)
        self.assertLess(abs(rows["equal"].samples_per_step - 64), abs(rows["as-many"].samples_per_step - 64))
        self.mllmsim("run", *set_up[:-1], "data.equal_batch=true", "-o", "unpacked")
        self.assertEqual(self.row("unpacked").samples_per_step, 64)

    def test_equal_batches_where_there_can_be_none(self):
        error = self.mllmsim("run", "large.toml", "data.equal_batch=true", code=2).stderr
        self.assertIn("data.equal_batch: needs data.set", error)
        error = self.mllmsim("run", "large.toml", "data.set=a.json", "gbs=8", "data.batching=isf", "data.pack_tokens=9000",
                             "data.pack_tiles=30", "data.equal_batch=true", code=2).stderr
        self.assertIn("data.equal_batch=true: data.equal_batch: the smallest step", error)

    # One bin for all samples groups at random, which pads more than bins of 64 tokens do.
    def test_bins_of_length_grouping(self):
        pads = []
        for tokens in (64, 100000):
            self.mllmsim("run", "large.toml", "data.set=a.json", "mbs=2", "gbs=64", "data.batching=length", f"data.length_bin={tokens}", "-o", "bins")
            pads.append(self.row("bins").pad_ratio)
        self.assertLess(pads[0], pads[1])
        self.assertIn("data.length_bin", self.mllmsim("run", "large.toml", "data.set=a.json", "data.length_bin=0", code=2).stderr)
        self.assertIn("needs data.set", self.mllmsim("run", "large.toml", "data.length_bin=64", code=2).stderr)

    def test_limits_of_packs_in_a_scenario(self):
        for change, words in (("data.pack_tokens=0", "positive"), ("data.pack_tokens=-4", "positive"),
                              ("data.pack_tokens=100", "at least the 949 tokens of the longest sample"),
                              ("data.pack_tiles=1", "at least the 3 tiles"), ("data.keep_tokens=5000", "at most the 4096 tokens")):
            error = self.mllmsim("run", "large.toml", "data.set=a.json", "data.batching=isf", change, code=2).stderr
            self.assertIn(words, error)
            self.assertIn(change.split("=")[0], error)
        for option, value in (("--keep-t", 0), ("--keep-t", -1), ("--keep-t", 5000), ("--keep-v", 0)):
            self.assertIn(option, self.mllmsim("pack", "a.json", option, value, code=2).stderr)

    def test_what_cannot_be_planned_is_not_what_does_not_fit(self):
        self.mllmsim("sweep", "large.toml", "--vary", "pp=1,2,3", "--vary", 'cluster.gpu_memory="4 GiB","80 GiB"',
                     "--strategies", "baseline,fsdp", "-o", "kinds")
        rows = pandas.read_parquet(self.dir / "kinds/runs.parquet")
        planned, misfits, fit = ~rows.feasible, rows.feasible & ~rows.fits, rows.fits
        self.assertEqual([len(rows), planned.sum(), misfits.sum(), fit.sum()], [12, 8, 2, 2])
        self.assertTrue(rows[planned].drop(columns=["simulated_steps"])[["iteration_s", "gpu_days", "days", "mfu", "bubble_share",
                        "peak_memory_bytes", "samples_per_step"]].isna().all(axis=None))
        times = ["iteration_s", "gpu_days", "days", "samples_per_s", "tokens_per_s_per_gpu", "mfu", "hfu", "mfu_6nd", "bubble_share"]
        self.assertTrue(rows[misfits][times].isna().all(axis=None))
        self.assertFalse(rows[fit][times].isna().any(axis=None))
        self.assertFalse(rows[~planned][["peak_memory_bytes", "gpu_memory_bytes", "samples_per_step"]].isna().any(axis=None))
        stages = pandas.read_parquet(self.dir / "kinds/stages.parquet").merge(rows[["point", "fits"]], on="point")
        self.assertEqual(stages[~stages.fits][["forward_s", "backward_s", "busy_s", "bubble_s"]].notna().sum().sum(), 0)
        self.assertFalse(stages[stages.fits].forward_s.isna().any())
        self.assertFalse(stages[["peak_memory_bytes", "weights_bytes"]].isna().any(axis=None))
        self.assertTrue(rows[rows["parallelism.pipeline_model_parallel_size"] == 3].tp.isna().all())
        text = self.mllmsim("sweep", "large.toml", "--vary", "pp=1,2,3", "--vary", 'cluster.gpu_memory="4 GiB","80 GiB"',
                            "--strategies", "baseline,fsdp", "-o", "kinds").stdout
        self.assertIn("12 points: 2 fit, 2 do not fit in memory, 8 cannot be planned", text)
        self.assertIn("fsdp needs", " ".join(rows.reason))
        self.assertNotIn("zero3 needs", " ".join(rows.reason))
        compared = self.compare("kinds")
        self.assertEqual(sum(c["iteration_s"] is None for c in compared), 10)
        self.assertTrue(all(isinstance(c["parallelism.pipeline_model_parallel_size"], int) for c in compared))
        text = self.mllmsim("compare", "kinds", "--by", "strategy").stdout
        self.assertIn("cannot be planned", text)
        self.assertIn("does not fit", text)
        points = json.loads(self.mllmsim("sweep", "large.toml", "--vary", "pp=1,3", "-o", "two", "--json").stdout)["points"]
        self.assertEqual([p["mfu"] is None for p in points], [False, True])

    def test_tables_without_the_new_columns_still_read(self):
        old = pyarrow.parquet.read_table(self.dir / "large/runs.parquet").drop_columns(["feasible"])
        (self.dir / "old").mkdir()
        for file in (self.dir / "large").glob("*.parquet"):
            if file.stem not in ("gaps", "plan"):
                (self.dir / "old" / file.name).write_bytes(file.read_bytes())
        pyarrow.parquet.write_table(old, self.dir / "old/runs.parquet")
        self.assertEqual(self.compare("old")[0]["feasible"], True)
        self.mllmsim("report", "old", "-o", "old.html")

    def test_refusals_of_strategies_name_file_line_and_key(self):
        error = self.mllmsim("run", "large.toml", "strategy.name=fsdp", code=2).stderr
        self.assertRegex(error, r"large.toml:4:\d+: parallelism.zero_stage: fsdp needs 3, found 0")

    def explain(self, *arguments):
        return json.loads(self.mllmsim("explain", *arguments, "--json").stdout)

    def test_a_plan_that_does_not_fit_is_helped(self):
        e = self.explain("large.toml", "cluster.gpu_memory=7 GiB", "mbs=2")
        self.assertFalse(e["fits"])
        tried = {r["remedy"]: r for r in e["remedies"]}
        for name in ("full recompute", "selective recompute", "micro-batch 1", "tp 2", "pp 2", "distributed optimizer",
                     "strategy omnibal", "strategy optimus", "strategy omnibal+optimus", "strategy zero3"):
            self.assertIn(name, tried)
        helped = [r for r in e["remedies"] if r.get("fits")]
        self.assertTrue(helped)
        self.assertEqual(helped, e["remedies"][:len(helped)])
        self.assertEqual([r["days"] for r in helped], sorted(r["days"] for r in helped))
        # What does not fit takes no time, and nothing is a gain over it.
        self.assertEqual([e[key] for key in ("iteration_s", "gpu_days", "days")], [None] * 3)
        self.assertEqual({r.get("gain") for r in e["remedies"]}, {None})
        self.assertEqual({r["iteration_s"] for r in e["remedies"] if r.get("fits") is False}, {None})
        best = helped[0]
        run = json.loads(self.mllmsim("run", "large.toml", "cluster.gpu_memory=7 GiB", "mbs=2", *best["change"].split(),
                                      "--json", "-o", "best").stdout)["runs"][0]
        self.assertEqual([run["fits"], run["iteration_s"], run["peak_memory_bytes"]],
                         [True, best["iteration_s"], best["peak_memory_bytes"]])

    def test_two_remedies_where_one_does_not_do(self):
        e = self.explain("large.toml", "cluster.gpu_memory=3.2 GiB", "mbs=2")
        helped = [r["remedy"] for r in e["remedies"] if r.get("fits")]
        self.assertTrue(helped)
        self.assertTrue(all(" and " in name for name in helped), helped)

    def test_a_plan_that_fits_is_told_of_other_strategies(self):
        e = self.explain("large.toml", "data.set=a.json", "pp=2")
        self.assertTrue({"strategy omnibal", "strategy optimus", "strategy omnibal+optimus"} <= {r["remedy"] for r in e["remedies"]})
        self.assertNotIn("distributed optimizer", {r["remedy"] for r in e["remedies"]})

    def test_huge_jobs_say_how_large_they_are(self):
        error = self.mllmsim("run", "large.toml", "gbs=1000000000", code=2).stderr
        self.assertIn("parallelism.global_batch_size: 125000000 micro-batches of a pipeline are too many", error)
        self.assertIn("2 points\n", self.mllmsim("sweep", "large.toml", "--vary", "tp=1,2", "-o", "said").stderr)
        quiet = self.mllmsim("run", "large.toml", "-o", "quiet").stderr
        self.assertNotIn("tasks", quiet)
        started = subprocess.Popen([MLLMSIM, "run", "internvl-1.2m-a100x32", "gbs=4", "mbs=1", "granularity=kernel", "-o", "big"],
                                   cwd=self.dir, stderr=subprocess.PIPE, text=True)
        try:
            self.assertRegex(started.stderr.readline(), r"about 317 k steps of .* tasks, .* in all, which may take .*data.steps=32")
        finally:
            started.kill()
            started.communicate()

    def test_what_to_measure_first(self):
        text = self.mllmsim("run", "large.toml", "-o", "measured").stdout
        self.assertIn("measure first: ", text)
        command = "mllmsim calibrate gaps measured --top 5 --out shapes.jsonl && mllmsim-calibrate --shapes shapes.jsonl"
        self.assertIn(command, " ".join(text.split()))
        gaps = pandas.read_parquet(self.dir / "measured/gaps.parquet")
        self.assertEqual(len(gaps), 5)
        self.assertTrue(gaps.share.is_monotonic_decreasing)
        listed = self.mllmsim("calibrate", "gaps", "measured", "--top", 5, "--out", "shapes.jsonl").stdout
        for kernel in gaps.kernel:
            self.assertIn(kernel, listed)
        self.assertEqual(len((self.dir / "shapes.jsonl").read_text().splitlines()), 5)
        self.mllmsim("report", "measured", "-o", "m.html")
        page = (self.dir / "m.html").read_text()
        self.assertIn("These 5 measurements would replace", page)
        self.assertIn("mllmsim-calibrate --shapes", page)
        shown = self.mllmsim("calibrate", "show", "a100-sxm4-80g").stdout
        self.assertIn("measure first", shown)
        self.assertIn("mllmsim-calibrate --shapes", " ".join(shown.split()))

    def test_results_say_nothing_of_the_machine(self):
        self.mllmsim("run", self.dir / "large.toml", f"data.set={self.dir}/a.json", "data.steps=1", "-o", "private")
        self.mllmsim("sweep", self.dir / "large.toml", "--vary", f"data.set={self.dir}/a.json,{self.dir}/no/b.json,{self.dir}/c.json",
                     "--vary", f"calibration=a100-sxm4-80g,{self.dir}/no/x.json", "data.steps=1", "-o", "private-sweep")
        rows = pandas.read_parquet(self.dir / "private-sweep/runs.parquet")
        self.assertEqual(list(rows["data.set"][:3]), ["a.json", "b.json", "c.json"])
        self.assertIn("data.set: b.json: no such file", " ".join(rows.reason))
        for file in [*(self.dir / "private").glob("*.parquet"), *(self.dir / "private-sweep").glob("*.parquet")]:
            table = pyarrow.parquet.read_table(file)
            self.assertNotIn(str(self.dir), str(table.schema.metadata) + table.to_pandas().to_csv(), file)

    def test_a_picture_of_nothing(self):
        for kind in ("validation", "packing"):
            self.assertIn("nothing: no such file", self.mllmsim("plot", kind, "nothing", code=2).stderr)
        self.assertIn("is a directory", self.mllmsim("plot", "packing", "large", code=2).stderr)

    def test_an_image_that_patches_do_not_fill(self):
        encoder = ('model.encoders=[{num_hidden_layers=2, hidden_size=512, num_attention_heads=8, intermediate_size=1024, '
                   'image_size=384, patch_size=14, class_token=false, projector="linear"}]')
        self.mllmsim("run", "large.toml", encoder, "data.tiles_per_sample=1", "-o", "floor")
        error = self.mllmsim("run", "large.toml", encoder, "data.tiles_per_sample=2", code=2).stderr
        self.assertIn("2 tiles x 729", error)

    def test_a_data_set_replaces_uniform_samples(self):
        run = self.mllmsim("run", INTERNVL, "data.set=internvl-1.2m", "data.steps=1", "--json", "-o", "set")
        self.assertEqual(json.loads(run.stdout)["runs"][0]["samples"], 1267819)


if __name__ == "__main__":
    unittest.main()
