"""What a card holds, through the front door: sharding, 8-bit states, offload, recompute of modules, the allocator's settings."""

import unittest

import pandas

from program import InItsOwnDirectory

GIB = 2**30
DENSE = """
model = "llama-3-8b"
cluster = { base = "h100-8x400", gpu_memory = "400 GiB" }
[parallelism]
zero_stage = 1
global_batch_size = 32
[data]
samples = 1e6
tokens_per_sample = 8192
"""
EXPERTS = """
cluster = { base = "h100-8x400", gpus = 64, gpu_memory = "400 GiB" }
[parallelism]
zero_stage = 1
tensor_model_parallel_size = 2
expert_model_parallel_size = 32
expert_tensor_parallel_size = 1
sequence_parallel = true
global_batch_size = 64
[model]
base = "deepseek-v3"
[model.llm]
num_hidden_layers = 6
[data]
samples = 1e6
tokens_per_sample = 4096
"""
LAYER = 2 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096)  # Llama 3 8B's, in bf16


class Memory(InItsOwnDirectory):
    def setUp(self):
        super().setUp()
        (self.dir / "dense.toml").write_text(DENSE)
        (self.dir / "experts.toml").write_text(EXPERTS)

    def stage(self, *keys):
        self.mllmsim("run", *keys, "--out", "out")
        return pandas.read_parquet(self.dir / "out" / "stages.parquet").iloc[0]

    def test_parameters_that_stay_gathered_take_their_memory(self):
        """FSDP2: with reshard_after_forward at most the layer that runs and the next are whole; without, nearly all 32 are when
        the backward begins."""
        fsdp = ["dense.toml", "strategy.name=fsdp", "parallelism.zero_stage=3"]
        more = (self.stage(*fsdp, "parallelism.reshard_after_forward=false").peak_activations_bytes
                - self.stage(*fsdp).peak_activations_bytes)
        self.assertGreater(more, 28 * LAYER)
        self.assertLess(more, 33 * LAYER + 2 * 2 * 128256 * 4096)

    def test_eight_bit_states_take_half_of_fp32_ones(self):
        """Master weights in fp32 and two moments of a byte: 6 bytes a parameter where Adam has 12."""
        self.assertEqual(self.stage("dense.toml", "software.optimizer_bytes_per_parameter=6").optimizer_bytes * 2,
                         self.stage("dense.toml").optimizer_bytes)
        self.assertEqual(self.stage("dense.toml", "software.optimizer_offload_fraction=1").optimizer_bytes, 0)

    def test_blocks_whose_activations_are_on_the_cpu_take_none_here(self):
        """Of 32 like blocks 16, one or two of which are on their way."""
        all_here, half = (self.stage("dense.toml", f"software.cpu_offloading_num_layers={n}").saved_activations_bytes for n in (0, 16))
        self.assertGreater(half / all_here, 16 / 33)
        self.assertLess(half / all_here, 19 / 32)

    def test_each_module_that_runs_again_saves_what_it_keeps(self):
        def saved(*modules):
            recompute = ["recompute=selective", f"recompute_modules={list(modules)}".replace("'", '"')] if modules else []
            return self.stage("experts.toml", *recompute).saved_activations_bytes
        none = saved()
        alone = {m: none - saved(m) for m in ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")}
        for module, bytes_ in alone.items():
            self.assertGreater(bytes_, 0, module)
        self.assertGreater(alone["moe"], alone["moe_act"])  # which is within it, as shared experts are
        self.assertGreater(alone["moe"], alone["shared_experts"])
        self.assertEqual(none - saved("mla_up_proj", "mlp"), alone["mla_up_proj"] + alone["mlp"])  # apart from each other
        said = self.mllmsim("run", "dense.toml", "recompute=selective", 'recompute_modules=["mla_up_proj"]', code=2).stderr
        self.assertIn("mla_up_proj needs latent attention", said)

    def test_the_allocators_settings_change_what_is_reserved_alone(self):
        plain = self.stage("dense.toml")
        expandable = self.stage("dense.toml", "software.expandable_segments=true")
        whole = self.stage("dense.toml", "software.max_split_size=20 MiB")
        for other in (expandable, whole):
            self.assertEqual(other.peak_allocated_bytes, plain.peak_allocated_bytes)
            self.assertGreaterEqual(other.peak_reserved_bytes, other.peak_allocated_bytes)
        self.assertLess(expandable.peak_reserved_bytes - expandable.peak_allocated_bytes, 0.1 * GIB)
        # A fifth of the card is too little, and the reason says what PyTorch may take: 80 of 400 GiB.
        self.mllmsim("run", "dense.toml", "software.per_process_memory_fraction=0.2", "--out", "out")
        run = pandas.read_parquet(self.dir / "out" / "runs.parquet").iloc[0]
        self.assertFalse(run.fits)
        self.assertIn("of which PyTorch may take 80.0 (per_process_memory_fraction)", run.reason)


if __name__ == "__main__":
    unittest.main()
