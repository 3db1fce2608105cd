"""Precision, context parallelism and sharding through the front door: what they do to a run, and what is refused."""

import json
import unittest

from program import InItsOwnDirectory

TEXT = """
model = "llama-3-8b"
cluster = { base = "h100-8x400", nodes = 2, gpu_memory = "400 GiB" }  # what does not fit has no times
[parallelism]
zero_stage = 1
global_batch_size = 64
[data]
samples = 1e6
tokens_per_sample = 8192
"""


class Parallelism(InItsOwnDirectory):
    def setUp(self):
        super().setUp()
        (self.dir / "run.toml").write_text(TEXT)

    def run_with(self, *keys):
        return json.loads(self.mllmsim("run", "run.toml", *keys, "--json").stdout)["runs"][0]

    def refused(self, *keys):
        said = self.mllmsim("run", "run.toml", *keys, code=2).stderr
        self.assertTrue(said.startswith("error: "), said)
        return said

    def test_products_in_fewer_bits_are_faster(self):
        bf16, fp8, block = (self.run_with(f"precision={p}") for p in ("bf16", "fp8", "fp8_block"))
        self.assertLess(fp8["iteration_s"], 0.85 * bf16["iteration_s"])
        self.assertGreater(fp8["iteration_s"], 0.55 * bf16["iteration_s"])  # attention and head stay
        self.assertLess(block["iteration_s"], bf16["iteration_s"])
        self.assertEqual(self.run_with("precision=fp16")["iteration_s"], bf16["iteration_s"])
        # MFU is of the peak of the format, as NVIDIA's tables have it.
        self.assertAlmostEqual(fp8["mfu"] / bf16["mfu"], bf16["iteration_s"] / fp8["iteration_s"] / 2, delta=0.01)
        b200 = [self.run_with("cluster=b200-8x400", f"precision={p}")["iteration_s"] for p in ("bf16", "mxfp8", "nvfp4")]
        self.assertEqual(b200, sorted(b200, reverse=True))

    def test_a_schedule_is_checked_if_it_is_named_and_others_are_refused(self):
        plain = self.run_with("pp=2", "parallelism.pipeline_schedule=1f1b")
        self.assertEqual(plain["iteration_s"], self.run_with("pp=2")["iteration_s"])
        self.run_with("pp=2", "vpp=2", "parallelism.pipeline_schedule=interleaved-1f1b")
        self.assertIn("expected \"interleaved-1f1b\"", self.refused("pp=2", "vpp=2", "parallelism.pipeline_schedule=1f1b"))
        for name in ("zero-bubble", "zbv", "dualpipe"):
            said = self.refused("pp=2", f"parallelism.pipeline_schedule={name}")
            self.assertIn(f"\"{name}\" is not simulated: a backward runs whole", said)

    def test_recompute_by_module_trades_time_for_memory(self):
        none, core, mlp, full = (self.run_with(*keys) for keys in (
            ["recompute=none"], ["recompute=selective"], ["recompute=selective", "recompute_modules=[\"mlp\"]"], ["recompute=full"]))
        times = [r["iteration_s"] for r in (none, core, mlp, full)]
        memory = [r["peak_memory_bytes"] for r in (none, core, mlp, full)]
        self.assertEqual(times, sorted(times))
        self.assertEqual(memory, sorted(memory, reverse=True))
        # An MLP's three matrices are 81 % of a block's products: most of what full recompute costs.
        self.assertGreater(times[2] - times[0], 0.5 * (times[3] - times[0]))
        pairs = self.run_with("recompute=full", "recompute_num_layers=2")
        self.assertAlmostEqual(pairs["iteration_s"], full["iteration_s"], delta=0.01 * full["iteration_s"])
        half = self.run_with("recompute=full", "recompute_method=block", "recompute_num_layers=16")
        self.assertAlmostEqual(half["iteration_s"], (none["iteration_s"] + full["iteration_s"]) / 2,
                               delta=0.01 * full["iteration_s"])
        kernel = self.run_with("recompute=selective", "recompute_modules=[\"mlp\",\"core_attn\"]", "granularity=kernel")
        stage = self.run_with("recompute=selective", "recompute_modules=[\"mlp\",\"core_attn\"]")
        self.assertAlmostEqual(kernel["iteration_s"], stage["iteration_s"], delta=1e-6 * stage["iteration_s"])
        self.assertEqual(kernel["peak_memory_bytes"], stage["peak_memory_bytes"])

    def test_recompute_that_megatron_refuses(self):
        for keys, why in (
            (["recompute=full", 'recompute_modules=["mlp"]'], 'only with recompute = "selective"'),
            (["recompute=selective", "recompute_num_layers=2"], 'only with recompute = "full"'),
            (["recompute=full", "recompute_method=block"], "needs recompute_num_layers"),
            (["recompute=selective", 'recompute_modules=["mla_up_proj"]'], "needs latent attention"),
            (["recompute=selective", 'recompute_modules=["moe_act"]'], "needs experts"),
            (["recompute=selective", 'recompute_modules=["attention"]'], '"core_attn"'),
            (["recompute=selective", 'recompute_modules=["layernorm"]', "precision=fp8"], "delayed scaling"),
            (["recompute=full", "recompute_num_layers=2", "parallelism.zero_stage=3", "strategy.name=fsdp"], "zero_stage 3"),
        ):
            self.assertIn(why, self.refused(*keys))

    def test_precision_that_a_gpu_or_a_model_cannot(self):
        self.assertIn("no fp8 products", self.refused("cluster=a100-80g-8x200", "precision=fp8"))
        self.assertIn("no nvfp4 products", self.refused("precision=nvfp4"))
        self.assertIn("blocks of 128", self.refused("precision=fp8_block", "model.llm.intermediate_size=14400"))
        self.assertIn("fp8_block", self.refused("precision=fp9"))

    def test_context_parallelism_cuts_sequences(self):
        one, two = self.run_with(), self.run_with("cp=2")
        self.assertEqual((one["cp"], one["dp"], two["cp"], two["dp"]), (1, 16, 2, 8))
        self.assertLess(two["peak_memory_bytes"], one["peak_memory_bytes"])
        self.assertAlmostEqual(two["iteration_s"] / one["iteration_s"], 1.03, delta=0.05)
        self.assertAlmostEqual(two["model_flops"], one["model_flops"], delta=1e-9 * one["model_flops"])
        times = [self.run_with("cp=4", f"parallelism.cp_comm_type={t}")["iteration_s"] for t in ("p2p", "all_gather", "a2a")]
        self.assertLess(max(times) / min(times), 1.2)
        same = [self.run_with("cp=1", f"parallelism.cp_comm_type={t}")["event_digest"] for t in ("p2p", "a2a")]
        self.assertEqual(same, [one["event_digest"]] * 2)

    def test_granularities_agree(self):
        for keys in (["cp=2", "precision=fp8", "tp=2", "pp=2", "parallelism.sequence_parallel=true"],
                     ["cp=2", "strategy=fsdp", "parallelism.zero_stage=3", "parallelism.data_parallel_replicate_degree=2"]):
            stage, kernel = (self.run_with(*keys, f"granularity={g}")["iteration_s"] for g in ("stage", "kernel"))
            self.assertAlmostEqual(stage, kernel, delta=1e-9 * stage)

    def test_sharding(self):
        states = [self.run_with(f"parallelism.zero_stage={z}")["peak_memory_bytes"] for z in (0, 1, 2)]
        self.assertEqual(states, sorted(states, reverse=True))
        sharded = ["strategy=fsdp", "parallelism.zero_stage=3"]
        full, hybrid, kept, near = (self.run_with(*sharded, *more) for more in (
            [], ["parallelism.data_parallel_replicate_degree=2"], ["parallelism.reshard_after_forward=false"],
            ["parallelism.zero_hpz_partition_size=8"]))
        for more in (hybrid, kept, near):
            self.assertGreater(more["peak_memory_bytes"], full["peak_memory_bytes"])
            # Fewer bytes from far away; between copies, gradients are reduced once more.
            self.assertLessEqual(more["iteration_s"], (1.03 if more is hybrid else 1) * full["iteration_s"])
        self.assertLess(self.run_with("pp=2", "parallelism.zero_stage=2")["peak_memory_bytes"],
                        self.run_with("pp=2", "parallelism.zero_stage=1")["peak_memory_bytes"])

    def test_megatron_fsdp_names_the_stages_its_own_way(self):
        for stage, name in enumerate(("no_shard", "optim", "optim_grads", "optim_grads_params")):
            strategy = ["strategy=fsdp"] if stage == 3 else []
            (self.dir / "run.toml").write_text(TEXT)
            numbered = self.run_with(f"parallelism.zero_stage={stage}", *strategy)
            (self.dir / "run.toml").write_text(TEXT.replace("zero_stage = 1", f"data_parallel_sharding_strategy = \"{name}\""))
            self.assertEqual(self.run_with(*strategy)["event_digest"], numbered["event_digest"], name)
        (self.dir / "run.toml").write_text(TEXT)
        key = "parallelism.data_parallel_sharding_strategy"
        self.assertIn("either this or zero_stage", self.refused(f"{key}=optim"))
        self.assertIn("optim_grads_params", self.refused(f"{key}=everything"))

    def test_an_optimizer_on_the_cpu_takes_a_link_and_leaves_memory(self):
        none, half, whole = (self.run_with(f"software.optimizer_offload_fraction={f}") for f in (0, 0.5, 1))
        self.assertAlmostEqual(half["iteration_s"], (none["iteration_s"] + whole["iteration_s"]) / 2, delta=1e-5)  # a launch
        # Of 8,030,261,248 parameters a sixteenth: 4 + 2 bytes over PCIe, 4 + 2 x 12 + 2 in the CPU's memory, in place of
        # 16 + 24 + 6 in HBM.
        shard = 8030261248 / 16
        host = shard * (6 / 64e9 + 30 / 77e9)
        self.assertAlmostEqual(whole["iteration_s"] - none["iteration_s"], host, delta=0.06 * host)
        self.assertAlmostEqual(none["peak_memory_bytes"] - whole["peak_memory_bytes"], 12 * shard, delta=0.02 * 12 * shard)
        rack = [self.run_with("cluster={ base = \"gb200-nvl72\", nodes = 4 }", f"software.optimizer_offload_fraction={f}")["iteration_s"]
                for f in (0, 1)]
        self.assertLess(rack[1] - rack[0], (whole["iteration_s"] - none["iteration_s"]) / 2)  # C2C, not PCIe
        self.assertIn("needs a sharded optimizer", self.refused("parallelism.zero_stage=0", "software.optimizer_offload_fraction=1"))
        self.assertIn("cluster.host_link_bandwidth",
                      self.refused("cluster.host_link_bandwidth=\"0 GB/s\"", "software.optimizer_offload_fraction=1"))

    def test_activations_on_the_cpu_leave_memory(self):
        none, some = (self.run_with(f"software.cpu_offloading_num_layers={n}") for n in (0, 16))
        # Half of 32 blocks leave, but for one where windows meet, and the allocator does not keep what they leave.
        gone = none["stages"][0]["saved_activations_bytes"] - some["stages"][0]["saved_activations_bytes"]
        block = gone / 16
        self.assertGreater((none["peak_memory_bytes"] - some["peak_memory_bytes"]) / block, 14.5)
        self.assertLess(some["stages"][0]["peak_reserved_bytes"], 1.02 * some["stages"][0]["peak_allocated_bytes"])
        self.assertGreaterEqual(some["iteration_s"], none["iteration_s"] * (1 - 1e-9))
        slow = self.run_with("software.cpu_offloading_num_layers=16", "cluster.host_link_bandwidth=\"1 GB/s\"")
        self.assertGreater(slow["iteration_s"], 1.5 * none["iteration_s"])
        for word, keys in (("no pipelines", ["pp=2"]), ("recompute", ["recompute=full"]), ("CUDA graphs", ["software.cuda_graphs=true"]),
                           ("fewer than all", ["software.cpu_offloading_num_layers=32"]),
                           ("host_link_bandwidth", ["cluster.host_link_bandwidth=\"0 GB/s\""])):
            self.assertIn(word, self.refused("software.cpu_offloading_num_layers=16", *keys))

    def test_larger_groups_of_micro_batches_keep_more_activations(self):
        # 4 ranks of 2 chunks, 16 micro-batches: rank 0 runs 6 + 4 or 6 + 8 forwards before its first backward.
        sizes = ("pp=4", "vpp=2", "gbs=64", "strategy={ name = \"baseline\", partition = \"layers\" }")
        few, many = (self.run_with(*sizes, f"parallelism.microbatch_group_size_per_virtual_pipeline_stage={g}") for g in (4, 8))
        saved = [run["stages"][0]["saved_activations_bytes"] for run in (few, many)]
        self.assertAlmostEqual(saved[1] / saved[0], 15 / 11, delta=0.03)  # and one more before it
        self.assertEqual(self.run_with(*sizes)["stages"], few["stages"])  # as many as ranks
        key = "parallelism.microbatch_group_size_per_virtual_pipeline_stage"
        for word, keys in (("found 3", [f"{key}=3"]), ("found 7", [f"{key}=7"]), ("overlap_p2p", [f"{key}=8", "software.overlap_p2p=false"]),
                           ("virtual_pipeline_stages above 1", [f"{key}=8", "vpp=1"])):
            self.assertIn(word, self.refused(*sizes, *keys))

    def test_overlapped_tp_communication_has_buffers(self):
        # Twelve buffers of 8,192 x 4,096: eight gather, in a byte with fp8; four reduce.
        for precision, gather in (("bf16", 2), ("fp8", 1)):
            without, buffers = (self.run_with("tp=2", "parallelism.sequence_parallel=true", f"precision={precision}",
                                              f"software.overlap_tp_forward={o}")["stages"][0]["communicators_bytes"] for o in ("false", "true"))
            self.assertEqual(buffers - without, 8192 * 4096 * (8 * gather + 4 * 2))

    def test_what_frameworks_refuse_is_refused_with_the_reason(self):
        self.assertIn("do not divide", self.refused("cp=3"))
        self.assertIn("2 x 16 equal pieces", self.refused("cp=16", "data.tokens_per_sample=8200"))
        self.assertIn("flash_attention", self.refused("cp=2", "software.flash_attention=false"))
        self.assertIn("whole heads", self.refused("cp=16", "parallelism.cp_comm_type=a2a"))
        self.assertIn("a2a", self.refused("parallelism.cp_comm_type=tree"))
        self.assertIn("windows with all_gather and a2a", self.refused("cp=2", "model.llm.sliding_window=1024"))
        self.run_with("cp=2", "model.llm.sliding_window=1024", "parallelism.cp_comm_type=a2a")
        self.assertIn("optimus", self.refused("cp=2", "strategy=optimus"))
        self.assertIn("zero_stage 3", self.refused("parallelism.data_parallel_replicate_degree=2"))
        self.assertIn("zero_stage 3", self.refused("parallelism.reshard_after_forward=false"))
        self.assertIn("divisor", self.refused("strategy=fsdp", "parallelism.zero_stage=3",
                                              "parallelism.data_parallel_replicate_degree=3"))
        self.assertIn("DeepSpeed's", self.refused("strategy=fsdp", "parallelism.zero_stage=3", "parallelism.zero_hpz_partition_size=2",
                                                  "parallelism.reshard_after_forward=false"))
        self.assertIn("pipeline", self.refused("pp=2", "parallelism.zero_stage=3"))
        self.assertIn("scale blocks", self.refused("cluster=h100-8x400", "precision=mxfp8"))


if __name__ == "__main__":
    unittest.main()
