"""Models of today through the front door: models_test.py PATH_OF_MLLMSIM"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())

# Qwen2.5-VL 7B as its authors publish it.
QWEN = {"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "use_sliding_window": False,
        "sliding_window": 32768, "max_window_layers": 28, "tie_word_embeddings": False,
        "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                          "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
                          "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2}}

RUN = """
cluster = { base = "h100-8x400", nodes = 1 }
recompute = "full"
[model]
hf_config = "config.json"
[parallelism]
tensor_model_parallel_size = 2
sequence_parallel = true
global_batch_size = 32
"""


class Models(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name)
        self.config(QWEN)
        (self.dir / "sizes.jsonl").write_text("".join(
            json.dumps({"text_tokens": 50 + i % 100, "images": [[280 + 28 * (i % 30), 560]] * (i % 3)}) + "\n"
            for i in range(640)))

    def config(self, values):
        (self.dir / "config.json").write_text(json.dumps(values))

    def run_it(self, *arguments, data='data = { set = "sizes.jsonl" }\n', code=0):
        (self.dir / "run.toml").write_text(data + RUN)
        done = subprocess.run([MLLMSIM, "run", "run.toml", "--json", *arguments], cwd=self.dir, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)["runs"][0] if code == 0 else done.stderr

    def test_a_whole_model_from_its_config(self):
        run = self.run_it()
        self.assertAlmostEqual(run["parameters"] / 8292166656, 1, delta=0.005)
        self.assertGreater(run["mfu"], 0.05)

    def test_larger_pictures_cost_more(self):
        small, large = (self.run_it(f"model.encoders.0.image.max_pixels={pixels}") for pixels in (200704, 1003520))
        self.assertLess(small["iteration_s"], large["iteration_s"])

    def test_a_tile_must_be_known_where_samples_are_alike(self):
        uniform = "data = { samples = 1000, tokens_per_sample = 1024, tiles_per_sample = 1 }\n"
        self.assertIn("takes pictures of any size", self.run_it(data=uniform, code=2))
        self.run_it("model.encoders.0.image_size=448", data=uniform)

    def test_what_is_not_modelled_is_refused(self):
        self.config({**QWEN, "num_experts": 64})
        self.assertIn("config.json: num_experts: changes what layers cost", self.run_it(code=2))

    def test_adapters_need_less_memory_than_all_weights(self):
        full = self.run_it()
        lora = self.run_it("model.llm.lora.rank=16")
        self.assertLess(lora["peak_memory_bytes"], 0.5 * full["peak_memory_bytes"])
        self.assertLess(lora["iteration_s"], full["iteration_s"])
        self.assertIn("trained instead", self.run_it("model.llm.lora.rank=16", "model.llm.trained=true", code=2))

    def test_a_frozen_llm_is_asked_about(self):
        (self.dir / "run.toml").write_text('data = { set = "sizes.jsonl" }\n' + RUN)
        said = [subprocess.run([MLLMSIM, "run", "run.toml", "--json", f"model.llm.{key}"], cwd=self.dir,
                               capture_output=True, text=True).stderr for key in ("trained=false", "lora.rank=8")]
        self.assertIn("model.llm.trained is false", said[0])
        self.assertNotIn("trained is false", said[1])

    def test_lengths_of_another_encoder_are_refused(self):
        (self.dir / "lengths.csv").write_text("vit_num,token_num\n" + "5,1400\n" * 64)
        text = self.run_it("model={base='llava-1.5-7b'}", data='data = { set = "lengths.csv" }\n', code=2)
        self.assertIn("sample 1 has 5 tiles but 1400 tokens", text)
        text = self.run_it("model={base='llava-1.5-7b'}", data='data = { set = "internvl-1.2m" }\n', code=2)
        self.assertIn("counts 256 LLM tokens for a tile", text)

    def test_wrong_records_are_told_by_line(self):
        (self.dir / "sizes.jsonl").write_text('{"text_tokens": 5}\n{"text_tokens": 5, "images": [[100]]}\n')
        self.assertIn("line 2: images: expected [height, width], found [100]", self.run_it(code=2))


if __name__ == "__main__":
    unittest.main()
