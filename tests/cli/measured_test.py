"""A step that was really trained beside a simulated one, and the way from a profile to a prediction, on made-up traces.

The run: two stages with given times, forwards of 10 ms and backwards of 20 ms, two micro-batches, no transfers. 1F1B:

  stage 0   F0 F1 .. B0 .. B1       F0 at 0, F1 at 10, B0 at 40, B1 at 70, end 90
  stage 1   .. F0 B0 F1 B1          F0 at 10, B0 at 20, F1 at 40, B1 at 50
"""
import json
import unittest

from program import InItsOwnDirectory


RUN = """
name = "two stages"
[given_times]
forward = "10 ms"
backward = "20 ms"
[parallelism]
pipeline_model_parallel_size = 2
micro_batch_size = 1
global_batch_size = 2
"""


def event(rank, name, start_ms, ms):
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": rank, "tid": 0, "ts": 5e6 + start_ms * 1e3, "dur": ms * 1e3}


# As simulated, but that every backward of stage 1 takes 25 ms: B0 of stage 0 starts 5 ms later, B1 10 ms later.
REAL = [event(0, "PP:0F0", 0, 10), event(0, "PP:0F1", 10, 10), event(0, "PP:0B0", 45, 20), event(0, "PP:0B1", 80, 20),
        event(1, "PP:1F0", 10, 10), event(1, "PP:1B0", 20, 25), event(1, "PP:1F1", 45, 10), event(1, "PP:1B1", 55, 25)]


class Measured(InItsOwnDirectory):
    def run_and_trace(self, events=REAL):
        (self.dir / "two.toml").write_text(RUN)
        (self.dir / "real.json").write_text(json.dumps({"traceEvents": events}))
        self.mllmsim("run", "two.toml", "-o", "run")

    def test_a_trace_beside_the_run(self):
        self.run_and_trace()
        found = json.loads(self.mllmsim("compare", "run", "--trace", "real.json", "--json").stdout)
        self.assertAlmostEqual(found["predicted_s"], 0.090)
        self.assertAlmostEqual(found["measured_s"], 0.100)
        # Stage 0 works 60 ms of either step, stage 1 60 of 90 and 70 of 100.
        self.assertAlmostEqual(found["lanes"][0]["predicted_idle_share"], 1 / 3)
        self.assertAlmostEqual(found["lanes"][0]["measured_idle_share"], 0.4)
        self.assertAlmostEqual(found["lanes"][1]["measured_idle_share"], 0.3)
        self.assertEqual(len(found["actions"]), 8)
        late = [a for a in found["actions"] if (a["stage"], a["pass"], a["micro_batch"]) == (0, "backward", 1)]
        self.assertAlmostEqual(late[0]["measured_start_s"] - late[0]["predicted_start_s"], 0.010)
        self.assertIn("error -10.0 %", self.mllmsim("compare", "run", "--trace", "real.json").stdout)

    def test_of_several_steps_the_last_counts(self):
        earlier = [dict(e, ts=e["ts"] - 1e6, dur=2 * e["dur"]) for e in REAL]
        self.run_and_trace(earlier + REAL)
        found = json.loads(self.mllmsim("compare", "run", "--trace", "real.json", "--json").stdout)
        self.assertAlmostEqual(found["measured_s"], 0.100)

    def test_a_file_per_rank(self):
        self.run_and_trace()
        for rank in (0, 1):
            events = [dict(e, pid=4711) for e in REAL if e["pid"] == rank]
            (self.dir / f"{rank}.json").write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}))
        found = json.loads(self.mllmsim("compare", "run", "--trace", "1.json", "0.json", "--json").stdout)
        self.assertEqual(len(found["actions"]), 8)

    def test_the_timeline_shows_both(self):
        self.run_and_trace()
        self.mllmsim("plot", "timeline", "run", "real.json", "-o", "both.svg", "--data", "both.csv")
        self.assertIn("real (measured)", (self.dir / "both.csv").read_text() + (self.dir / "both.svg").read_text())

    def test_mistakes(self):
        self.run_and_trace([event(0, "aten::mm", 0, 1)])
        self.assertIn("no action", self.mllmsim("compare", "run", "--trace", "real.json", code=2).stderr)
        self.run_and_trace([event(0, "PP:7F0", 0, 1)])
        self.assertIn("PP:7F0", self.mllmsim("compare", "run", "--trace", "real.json", code=2).stderr)
        self.assertIn("behind the RUN", self.mllmsim("plot", "timeline", "real.json", code=2).stderr)
        self.assertIn("one RUN", self.mllmsim("compare", "run", "run", "--trace", "real.json", code=2).stderr)
        self.assertIn("expected one run", self.mllmsim("run", "internvl-6b-20b-a100x32", "llama-3-8b-a100x8", "--batches", "b.jsonl", code=2).stderr)

    def test_micro_batches_as_simulated(self):
        self.mllmsim("run", "llama-3-8b-a100x8", "-o", "llama", "--batches", "b.jsonl")
        lines = [json.loads(line) for line in (self.dir / "b.jsonl").read_text().splitlines()]
        self.assertEqual([line["micro_batch"] for line in lines if line["replica"] == 0], list(range(len(lines))))
        self.assertEqual(lines[0]["encoders"], [])
        self.assertGreater(lines[0]["llm"][0][0], 0)

    def test_from_a_profile_to_a_prediction(self):
        """A machine of 100 GFLOP/s and 10 GB/s in fp32, profiled operator by operator: a product of twice the rows takes
        twice as long, on a machine that no data sheet knows."""
        events, at = [], 0.0

        def operator(name, us, dims, kind="float"):
            nonlocal at
            args = {"External id": len(events) + 1, "Input Dims": dims, "Input type": [kind] * len(dims)}
            events.append({"cat": "cpu_op", "tid": 1, "name": name, "ts": at, "dur": us, "args": args})
            at += us

        for tokens in (64, 96, 128, 192, 256, 512):
            for inputs, outputs in ((256, 768), (256, 256), (256, 1024), (1024, 256), (256, 512)):
                operator("aten::mm", 2e-5 * tokens * inputs * outputs, [[tokens, inputs], [inputs, outputs]])
            for name, numbers, width in (("aten::add", 3, 256), ("aten::gelu", 2, 1024), ("aten::native_layer_norm", 2, 256)):
                operator(name, tokens * width * 4 * numbers / 1e4, [[tokens, width], [tokens, width]])
        (self.dir / "cpu.json").write_text(json.dumps({"traceEvents": events}))
        self.mllmsim("calibrate", "import", "kineto", "cpu.json", "--out", "raw.jsonl")
        fit = self.mllmsim("calibrate", "fit", "raw.jsonl", "--gpu", "some-core", "--out", "cpu-cal.json").stderr
        self.assertIn("not fitted: memory bound, optimizer", fit)
        self.assertIn("not fitted: collectives in a node", fit)
        self.assertNotIn("not fitted: gemm", fit)
        scenario = """
            precision = "fp32"
            software = "pytorch-cpu-2026"
            calibration = "cpu-cal.json"
            [cluster]
            topology = "nvlink-domain"
            nodes = 1
            gpus_per_node = 1
            gpu_memory = "8 GiB"
            nvlink_bandwidth = "20 GB/s"
            gpu_speed_spread = 0
            [model.llm]
            num_hidden_layers = 4
            hidden_size = 256
            num_attention_heads = 4
            intermediate_size = 1024
            vocab_size = 512
            max_position_embeddings = 128
            qkv_bias = false
            linear_bias = false
            [parallelism]
            micro_batch_size = 2
            global_batch_size = 2
            [data]
            samples = 100
            tokens_per_sample = 128
            """
        (self.dir / "cpu.toml").write_text(scenario)
        run = json.loads(self.mllmsim("run", "cpu.toml", "-o", "cpu", "--json").stdout)["runs"][0]
        # Products: 6 FLOP per matrix value and token at 100 GFLOP/s: 4 blocks of 12 x 256^2, a head of 256 x 512.
        products = 6 * 256 * (4 * 12 * 256 ** 2 + 256 * 512) / 100e9
        # AdamW, not profiled: 28 bytes per parameter at an estimated 0.87 of the best rate measured.
        optimizer = 28 * run["parameters"] / 8.7e9
        self.assertGreater(run["iteration_s"], 0.95 * (products + optimizer))
        self.assertLess(run["iteration_s"], 1.4 * products + optimizer)  # norms, sums, attention, loss
        # In bf16 nothing was measured on it.
        self.assertIn("fp32", self.mllmsim("run", "cpu.toml", "precision=bf16", code=2).stderr)
        self.assertIn("bf16", self.mllmsim("run", "llama-3-8b-a100x8", "precision=fp32", code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
