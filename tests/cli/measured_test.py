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

CPU = """
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
        (self.dir / "cpu.toml").write_text(CPU)
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

    def test_a_small_or_odd_profile_gives_a_usable_calibration_or_says_what_to_measure(self):
        """Machines without a data sheet, from few, one, scattered or wrong measurements: `run` takes what `fit` writes."""
        def product(m, n, k, gflops, **more):
            return dict(part="gemm", m=m, n=n, k=k, us=2 * m * n * k / gflops / 1e3, format="fp32", **{"pass": "forward", **more})

        sizes = [64, 96, 128, 192, 256, 384, 512]
        grid = [(m, n, k) for m in sizes for n in (256, 768, 1024) for k in (256, 1024)]
        files = {
            "one": [product(128, 256, 256, 60)],
            "few": [product(m, 256, 256, 60) for m in sizes[:5]],
            # Half of the products twice as fast as the others, for no reason of their shape; gradients faster still.
            "scattered": [product(*s, 40 + 40 * (sum(s) // 32 % 2)) for s in grid]
            + [product(*s, 100, **{"pass": "weight_gradient"}) for s in grid],
            # The larger the faster, still rising where the measurements end.
            "rising": [product(*s, 80 * s[0] / (s[0] + 200) * s[2] / (s[2] + 400)) for s in grid],
        }
        (self.dir / "cpu.toml").write_text(CPU.replace("cpu-cal.json", "fitted.json"))
        for name, lines in files.items():
            (self.dir / "raw.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            said = self.mllmsim("calibrate", "fit", "raw.jsonl", "--gpu", "some-core", "--out", "fitted.json").stderr
            self.assertEqual("not fitted: gemm" in said, name in ("one", "few"), name)
            self.assertIn("GFLOP/s fp32", said)
            run = json.loads(self.mllmsim("run", "cpu.toml", "-o", name, "--json").stdout)["runs"][0]
            self.assertLess(run["hfu"], 1, name)
            self.assertGreater(run["iteration_s"], 1e-3, name)
        # No products: nothing to take a peak from. A data sheet's peak is not exceeded.
        (self.dir / "nccl.jsonl").write_text("".join(json.dumps(dict(
            part="collective", op="all_reduce", ranks=2, nodes=1, bytes=1 << e, us=20 + (1 << e) / 1e4)) + "\n" for e in range(12, 24)))
        self.assertIn("products", self.mllmsim("calibrate", "fit", "nccl.jsonl", "--gpu", "some-core", "--out", "no.json", code=2).stderr)
        said = self.mllmsim("calibrate", "fit", "nccl.jsonl", "--gpu", "a100-sxm4-80g", "--out", "nccl.json").stderr
        self.assertIn("not fitted: gemm", said)
        self.assertIn("not fitted: all_gather in a node", said)
        fast = [dict(product(2048, n, k, 500e3), format="bf16") for n in range(1024, 4097, 256) for k in (1024, 2048)]
        (self.dir / "fast.jsonl").write_text("".join(json.dumps(line) + "\n" for line in fast))
        said = self.mllmsim("calibrate", "fit", "fast.jsonl", "--gpu", "a100-sxm4-80g", "--out", "no.json", code=2).stderr
        self.assertIn("was measured at 500 TFLOP/s, above the 312 TFLOP/s of a100-sxm4-80g's data sheet", said)
        self.assertFalse((self.dir / "no.json").exists())

    def test_from_the_trace_of_a_gpu_to_a_prediction(self):
        """A step's trace as Kineto writes it of a GPU: operators with shapes on two threads of the CPU, what launches kernels, and
        the kernels, tied to operators by External id or by correlation. Products at 200 TFLOP/s (weight gradients 160),
        attention at 150, norms at 1,000 GB/s, an all-gather over two nodes."""
        trace = GpuTrace()
        bf16 = "c10::BFloat16"
        for tokens in (512, 1024, 2048, 3072, 4096):
            for inputs, outputs in ((4096, 6144), (4096, 4096), (4096, 14336), (14336, 4096), (4096, 2048)):
                flops = 2 * tokens * inputs * outputs
                dims = [[tokens, inputs], [inputs, outputs]]
                trace.operator("aten::mm", dims, [bf16] * 2, 1, [("ampere_bf16_s16816gemm", flops / 200e6)])
                trace.operator("aten::mm", [[inputs, tokens], [tokens, outputs]], [bf16] * 2, 2,
                               [("ampere_bf16_s16816gemm_tn", flops / 160e6 - 2), ("splitKreduce_kernel", 2)], strides=[[1, inputs], [outputs, 1]],
                               inside="autograd::engine::evaluate_function: MmBackward0")
            trace.operator("aten::native_layer_norm", [[tokens, 4096]], [bf16], 1,
                           [("vectorized_layer_norm_kernel", 2 * 2 * tokens * 4096 / 1e6)])
            for batch in (1, 2):
                shape = [batch, 32, tokens, 128]
                flops = 4 * batch * 32 * tokens * tokens * 128
                trace.operator("aten::_scaled_dot_product_flash_attention", [shape] * 3, [bf16] * 3, 1,
                               [("flash_fwd_kernel", flops / 2 / 150e6)], concrete=["", "", "", "0.", "True", "False", ""])
                trace.operator("aten::_scaled_dot_product_cudnn_attention_backward", [shape] * 4, [bf16] * 4, 2,
                               [("cudnn_generated_fort_native_sdpa_sm80_flash_bprop", flops / 100e6)], concrete=[""] * 14 + ["True"],
                               inside="autograd::engine::evaluate_function: ScaledDotProductCudnnAttentionBackward0")
        trace.operator("aten::mm", [[64, 64], [64, 64]], ["float"] * 2, 1, [("sgemm", 9)])  # an odd one in fp32
        for us in (900, 700):
            trace.kernel("ncclDevKernel_AllGather_RING_LL", us, 20, {
                "Collective name": "_allgather_base", "In msg nelems": 1 << 22, "Out msg nelems": 1 << 26, "Group size": 16,
                "dtype": "BFloat16", "Process Group Ranks": str(list(range(16)))})
        (self.dir / "gpu.json").write_text(trace.text("NVIDIA A100-SXM4-80GB"))
        self.mllmsim("calibrate", "import", "kineto", "gpu.json", "--out", "raw.jsonl")
        lines = [json.loads(line) for line in (self.dir / "raw.jsonl").read_text().splitlines()]
        self.assertEqual(lines[0]["header"]["gpu"], "NVIDIA A100-SXM4-80GB")
        of = lambda part: [line for line in lines if line.get("part") == part]
        self.assertEqual(len(of("gemm")), 50)
        self.assertEqual({line["pass"] for line in of("gemm")}, {"forward", "weight_gradient"})
        self.assertEqual([sum(line["backward"] == b for line in of("attention") if line["causal"]) for b in (False, True)], [10, 10])
        self.assertEqual(len(of("memory_bound")), 5)
        self.assertEqual([(line["nodes"], line["us"]) for line in of("collective")], [(2, 700)])
        gradient = [line for line in of("gemm") if line["pass"] == "weight_gradient" and line["k"] == 4096 and line["n"] == 14336][0]
        self.assertAlmostEqual(gradient["us"], 2 * 4096 * 4096 * 14336 / 160e6, delta=0.1)
        said = self.mllmsim("calibrate", "fit", "raw.jsonl", "--out", "mine.json").stderr
        self.assertNotIn("not fitted: gemm", said)
        self.assertNotIn("not fitted: attention", said)
        self.assertIn("not fitted: collectives in a node", said)
        fitted = json.loads((self.dir / "mine.json").read_text())
        self.assertEqual(fitted["gpu"]["peak_tflops"], 312)
        self.assertAlmostEqual(fitted["gemm"]["weight_gradient"]["factor"], 200 / 160, delta=0.03)
        own = json.loads(self.mllmsim("run", "llama-3-8b-a100x8", "calibration=mine.json", "-o", "own", "--json").stdout)["runs"][0]
        shipped = json.loads(self.mllmsim("run", "llama-3-8b-a100x8", "-o", "shipped", "--json").stdout)["runs"][0]
        self.assertLess(abs(own["iteration_s"] / shipped["iteration_s"] - 1), 0.3)
        self.assertGreater(own["cost_share_measured"] + own["cost_share_interpolated"], 0.3)

    def test_a_run_that_rests_on_estimates_says_so(self):
        (self.dir / "launch.jsonl").write_text(json.dumps({"part": "launch", "us": 3}) + "\n")
        self.mllmsim("calibrate", "fit", "launch.jsonl", "--gpu", "a100-sxm4-80g", "--out", "sheet.json")
        said = self.mllmsim("run", "llama-3-8b-a100x8", "calibration=sheet.json", "-o", "sheet").stderr
        self.assertIn("warning: 100 % of llama-3-8b-a100x8's kernel time rests on estimates, not measurements", said)


class GpuTrace:
    """Events of a step on a GPU, one after another, as torch.profiler exports them."""

    def __init__(self):
        self.events = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
                       {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 1e9, "args": {"External id": 1}}]
        self.cpu = self.gpu = 100.0
        self.ids = 1

    def operator(self, name, dims, types, thread, kernels, strides=None, concrete=None, inside=None):
        """An operator of 20 us on the CPU, in another one or in autograd's, and what it launches."""
        for n in [inside or name.replace("::", "::outer_"), name]:
            self.ids += 1
            args = {"External id": self.ids, "Record function id": 0}
            if n == name:
                args.update({"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete or [""] * len(dims)})
                args["Input Strides"] = strides or [[d[-1], 1] if len(d) == 2 else [] for d in dims]
            self.events.append({"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": thread, "ts": self.cpu,
                                "dur": 20 if n == name else 22, "args": args})
            self.cpu += 1
        for i, (kernel, us) in enumerate(kernels):
            launch = {"External id": self.ids, "correlation": 10 * self.ids + i, "cbid": 211}
            self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread,
                                "ts": self.cpu + i, "dur": 0.5, "args": launch})
            tie = {"correlation": launch["correlation"]}
            if i == 0:
                tie["External id"] = self.ids
            self.kernel(kernel, us, 7, tie)
        self.cpu += 30

    def kernel(self, name, us, stream, args):
        self.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": self.gpu, "dur": us,
                            "args": {"device": 0, "context": 1, "stream": stream, "grid": [108, 1, 1], "block": [128, 1, 1], **args}})
        self.gpu += us + 1.5

    def text(self, gpu):
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": gpu}], "traceEvents": self.events})


if __name__ == "__main__":
    unittest.main(verbosity=2)
