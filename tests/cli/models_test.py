"""Models of today through the front door: models_test.py PATH_OF_MLLMSIM"""
import json
import pathlib
import re
import sqlite3
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

    def test_records_of_conversations_count_by_their_bytes(self):
        said = [{"from": "human", "value": "a" * 20}, {"from": "gpt", "value": "b" * 380}]
        rows = [{"image": "a.jpg", "height": 448, "width": 448, "conversations": said},
                {"height_list": [448, 448], "width_list": [448, 448],
                 "messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "b" * 400}]}]}]
        (self.dir / "sizes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows * 32))
        stated = [{"text_tokens": 100, "images": [[448, 448]]}, {"text_tokens": 100, "images": [[448, 448]] * 2}]
        by_bytes = self.run_it()
        (self.dir / "sizes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in stated * 32))
        self.assertEqual(by_bytes["iteration_s"], self.run_it()["iteration_s"])

    def test_videos_may_give_their_seconds(self):
        # 10 seconds at 2 frames each are 20 frames
        def at(video):
            (self.dir / "sizes.jsonl").write_text((json.dumps({"text_tokens": 9, "videos": [video]}) + "\n") * 64)
            return self.run_it()["iteration_s"]
        size = {"height": 280, "width": 280}
        self.assertEqual(at({"seconds": 10.2, **size}), at({"frames": 20, **size}))
        self.assertLess(at({"seconds": 10, **size}), at({"seconds": 20, **size}))

    def energon(self, metadata=True):
        """A WebDataset's index as `energon prepare` writes it: pictures of 448 x 448 and 400 bytes of text."""
        path = self.dir / "index.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as db:
            db.execute("create table samples (tar_file_id integer not null, sample_key text not null unique, "
                       "sample_index integer not null, byte_offset integer, byte_size integer)")
            db.execute("create table sample_parts (tar_file_id integer, sample_index integer, part_name text, "
                       "content_byte_offset integer, content_byte_size integer)")
            db.execute("create table media_metadata (entry_key text primary key, metadata_type text not null, "
                       "metadata_json text not null)")
            for i in range(64):
                db.execute("insert into samples values (?, ?, ?, 0, 0)", (i // 16, f"{i:04}", i % 16))
                for offset, (name, size) in enumerate([("jpg", 50_000), ("json", 400), ("cls", 3)]):
                    db.execute("insert into sample_parts values (?, ?, ?, ?, ?)", (i // 16, i % 16, name, offset, size))
                if metadata:
                    db.execute("insert into media_metadata values (?, 'image', ?)", (
                        f"{i:04}.jpg", json.dumps({"width": 448, "height": 448, "format": "JPEG", "mode": "RGB"})))
        db.close()

    def test_the_index_of_a_webdataset(self):
        self.energon()
        (self.dir / "sizes.jsonl").write_text('{"text_tokens": 100, "images": [[448, 448]]}\n' * 64)
        stated = self.run_it()
        index = 'data = { set = "index.sqlite" }\n'
        self.assertEqual(self.run_it(data=index)["iteration_s"], stated["iteration_s"])
        self.assertGreater(self.run_it("data.bytes_per_token=1", data=index)["iteration_s"], stated["iteration_s"])

    def test_an_index_without_sizes_of_pictures_is_refused(self):
        index = 'data = { set = "index.sqlite" }\n'
        self.energon(metadata=False)
        self.assertIn("index.sqlite: sample 1: 0000.jpg: has no size in the index; `energon prepare",
                      self.run_it(data=index, code=2))
        (self.dir / "index.sqlite").write_text("not a database" * 100)
        self.assertIn("index.sqlite: not an index of Energon: file is not a database", self.run_it(data=index, code=2))


class Qwen3Vl(unittest.TestCase):
    """30B-A3B, pictures of real sizes, under every strategy: each runs, or says what it needs."""

    def run_it(self, strategy, *arguments, code=0):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([MLLMSIM, "run", "qwen3-vl-30b-a3b-h100x32", f"strategy.name={strategy}", "--json",
                                   *arguments], cwd=directory, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)["runs"][0] if code == 0 else done.stderr

    def test_every_strategy(self):
        done = subprocess.run([MLLMSIM, "list", "strategies"], capture_output=True, text=True)
        names = {m[1] for m in re.finditer(r"^  (\S+)  ", done.stdout, re.MULTILINE)}
        sharded = {"zero3", "fsdp"}
        self.assertEqual(names, sharded | {"baseline", "balanced", "omnibal", "optimus", "omnibal+optimus"})
        took = {}
        for name in sorted(names):
            with self.subTest(name):
                if name in sharded:
                    self.assertIn(f"pipeline_model_parallel_size: {name} needs 1, found 2", self.run_it(name, code=2))
                run = self.run_it(name, *(["tp=1", "pp=1", "ep=1", "etp=1", "parallelism.sequence_parallel=false",
                                           "parallelism.zero_stage=3", "mbs=1"] if name in sharded else []))
                self.assertTrue(run["fits"])
                self.assertAlmostEqual(run["parameters"] / 31070754032, 1, delta=0.005)
                took[name] = run["gpu_days"]
        self.assertLess(took["omnibal"], took["baseline"])
        self.assertLess(took["optimus"], took["baseline"])

    def test_a_cut_through_deepstack_is_told(self):
        said = [subprocess.run([MLLMSIM, "run", "qwen3-vl-30b-a3b-h100x32", "strategy={name='baseline',partition='given',"
                                f"layers_per_stage={cut}}}", "data.steps=1", "--json", "-o", "x"], cwd=tempfile.gettempdir(),
                               capture_output=True, text=True).stderr for cut in ([29, 46], [30, 45])]
        self.assertIn("DeepStack's features travel to block 2 of the LLM", said[0])
        self.assertNotIn("DeepStack", said[1])


if __name__ == "__main__":
    unittest.main()
