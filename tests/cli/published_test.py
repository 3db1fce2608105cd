"""Every shipped family meets its target, or is listed below with what it reaches: published_test.py PATH_OF_MLLMSIM

The tables that are not shipped are checked too if MLLMSIM_PUBLISHED names the directory of their CSV files."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
README = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text()

# Sources that miss their target today: the median |error| measured. A family that gets better or worse by more than 2
# percentage points must be entered anew; one that meets its target must be taken out.
KNOWN_MISSES = {
    # Gathers matrix by matrix, views and copies for each rank and what backwards gather again leave 4 to 18 %.
    "Megatron SC'21 Table 2 (ZeRO-3)": 0.128,
    # A bias of these runs, not of their software: EasyLLM's own benchmark (easyllm-llama2-70b) is within 6 % up to 32,768 tokens. Pipelines take 1.1 to 1.6 times as long as predicted; speed-ups
    # come out within 6 % in the median, layers per stage within 2, GPU-days do not. The baseline's free memory is what its allocator leaves after shapes of all sizes.
    "OmniBal": 0.232,
    "OmniBal free memory": 0.703,
    # Balanced is 4 and 9 % too quick: which of the many cuts that the paper's formula leaves open was taken is not said. Others are within 6 %.
    "Optimus (ATC 2025), strong scaling": 0.034,
    # FSDP is predicted to be the fastest; the other three are within 8 %.
    "Optimus (ATC 2025), small job": 0.063,
    # Warm-up is longer and waits between passes are shorter than predicted; the job's virtual stages are not stated.
    "Optimus (ATC 2025), bubbles": 0.188,
    # Moonlight with one micro-batch a step takes 3.3 times as long as predicted, 17 ms for a layer: the CPU's time, of which more is lost than launches explain. Exchanges across nodes hide
    # less than predicted, and tensor parallelism over 8 GPUs loses more.
    "Megatron-Bridge, one change at a time (times)": 0.210,
    # 1.7B and 177B are 12 and 10 % too quick, 16B is 11 % too slow; 70B and 462B are within 6 %.
    "Megatron-Core README (H100)": 0.102,
    # Not shipped. Pre-training is within 20 % but for gpt-oss (half) and Nemotron 3.5 on H100; of fine-tuning, Nemotron 3's long packs and Qwen3 30B-A3B with adapters take 2.5 times as long as
    # predicted, the others 1.15 to 1.75 times.
    "Megatron-Bridge's verification cards": 0.211,
    # Device-grouped tokens: the mixture stands for five sets that are not public.
    "OmniBal data ratios": 0.019,
    # Not shipped. Runs of Nemotron 3 on long packs, gpt-oss and Qwen3 30B-A3B with adapters take 2 to 2.5 times as long as predicted; the cards call most of them sanity checks, not tuned.
    "Megatron-Bridge's verification cards": 0.202,
    # Not shipped. Rows that name their GPU (H20) are within 21 %; the others take 1.4 to 2.8 times as long as on the A100s that the documentation speaks of, dense, experts and ZeRO-3
    # alike, in the right order, and recompute costs what it should (1.14 predicted, 1.13 noted). One of them repeats a run of an H20 in as many seconds: they may be of H20 too.
    "ms-swift's example scripts (time)": 0.435,
    # Not shipped. What the backward of attention by PyTorch's operators works with, gradients of scores in fp32, is not counted.
    "Megatron-LM's CI (peak memory of LLaVA)": 0.064,
    # Not shipped. Runs without full recompute are within 2 %; the five with it, on Megatron-Core, took 6 to 14 GiB more than predicted, dense and experts, with an optimizer, with it on the CPU and with
    # adapters alone, so neither gradients nor optimizer; no cause was found.
    "ms-swift's scripts (memory)": 0.167,
}
# Their medians are met, the order is not quite (0.935, 0.947): NVFP4 is 17 to 23 % too slow on GB300 and 5 % too fast on GB200.
# The cards' runs of Nemotron 3 on long packs and of Qwen3 30B-A3B with adapters take 2.5 times as long as predicted, gpt-oss twice: their makers call them sanity checks, not tuned.
# Qwen3 30B-A3B on H100, and one sequence per micro-batch on B200, took 1.4 to 2.7 times as long: the CPU's time, of which more is lost than launches explain.
# BLOOM's equal runs of different days differ by 5 %, and some with 12 or 14 heads of 128 values on a GPU took 20 % longer than with others.
# Of ms-swift's seven rows five are 6 to 14 GiB too small, those with full recompute.
WRONG_ORDER = {"Megatron-Bridge performance summary (Qwen3 30B-A3B)", "BLOOM (prequel runs)", "Megatron-Bridge performance summary (Llama 3 8B)", "Megatron-Bridge performance summary (Llama 3 70B)",
               "Megatron-Bridge's verification cards", "ms-swift's scripts (memory)",
               "Megatron-Bridge performance summary (25.09, two precisions in a cell)",  # two of its five rows are 4 % apart
               "Megatron-LM's CI (peak memory with Mamba layers)",  # of its four rows three are equal to the byte, whatever the GPU
               "Megatron-LM's CI (peak memory of T5)", "Megatron-LM's CI (peak memory of BERT)"}  # three configurations each, on GPUs and with libraries that differ by 1 %
RANK = 0.95
# Runs that ran and are said not to fit.
KNOWN_MISFITS = {}
# Yes-or-no figures that are wrong: one of BLOOM's 62 runs ran out of memory and is said to need 79.2 GiB of 80.
KNOWN_WRONG = {"BLOOM's first runs (memory)": 1}


class Published(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            arguments = ["--csv-dir", os.environ["MLLMSIM_PUBLISHED"]] if "MLLMSIM_PUBLISHED" in os.environ else []
            done = subprocess.run([MLLMSIM, "validate", "--json", *arguments], cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cls.report = json.loads(done.stdout)
        cls.sources = {s["source"]: s for s in cls.report["summary"]["sources"]}

    def test_every_source_meets_its_target_or_is_a_known_miss(self):
        for name, source in self.sources.items():
            with self.subTest(name):
                if name in KNOWN_MISSES:
                    self.assertNotEqual(source["missed"], "", "no longer a miss")
                    self.assertAlmostEqual(source["median"], KNOWN_MISSES[name], delta=0.02)
                else:
                    self.assertEqual(source["missed"], "")

    def test_the_order_of_runs_is_predicted(self):
        for name, source in self.sources.items():
            if source["rank_correlation"] is not None and name not in KNOWN_MISSES and name not in WRONG_ORDER:
                self.assertGreaterEqual(source["rank_correlation"], RANK, name)

    def test_what_ran_fits_and_what_did_not_does_not(self):
        for name, source in self.sources.items():
            self.assertEqual(source["said_not_to_fit"], KNOWN_MISFITS.get(name, []), name)
            self.assertEqual(source["yes_no"] - source["yes_no_right"], KNOWN_WRONG.get(name, 0), name)

    @unittest.skipIf("MLLMSIM_PUBLISHED" in os.environ, "of what is cloned")
    def test_the_readme_says_what_a_clone_predicts(self):
        every = self.report["summary"]["all"]
        said = f"As cloned it predicts {every['rows']} of them, median |error| {100 * every['median']:.1f} %, p90 {100 * every['p90']:.1f} %"
        self.assertIn(said, README)

    def test_gpt3_175b_on_1024_a100_within_five_percent(self):
        row, = [r for r in self.report["rows"] if r["source"] == "Megatron-LM README (A100)"]
        self.assertLess(abs(row["relative_error"]), 0.05)


if __name__ == "__main__":
    unittest.main()
