"""Plots as a user meets them: plot_test.py MLLMSIM runs the built binary and looks at the files it leaves."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import pandas
import pyarrow
import pyarrow.parquet

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "scenarios" / "runs" / "internvl-6b-20b-a100x32.toml"
MEGATRON = "parallelism.use_tp_pp_dp_mapping=false"  # ranks: tp fastest, then dp, then pp
WORDS = ["run", "strategy", "scenario_hash", "model", "cluster", "work", "calibration_hash", "granularity", "reason",
         "event_digest"]
A100 = ROOT / "cost_models" / "calibrations" / "a100-sxm4-80g.json"


class Plot(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)
        # A GPU that runs every GEMM at 200 TFLOP/s after 5 us.
        lines = [{"part": "gemm", "m": s, "n": s, "k": s, "pass": "forward", "us": 5 + 2 * s**3 / 200e6} for s in [512, 1024, 4096]]
        lines += [{"part": "p2p", "same_node": True, "bytes": 1 << 20, "us": 20}]
        self.raw = self.dir / "raw.jsonl"
        self.raw.write_text("\n".join(map(json.dumps, [{"header": {"gpu": "A100"}}, *lines])) + "\n")

    def run_mllmsim(self, *arguments, code=0, **environment):
        done = subprocess.run([MLLMSIM, "calibrate", "show", *map(str, arguments)], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_measured_against_predicted(self):
        subprocess.run([MLLMSIM, "plot", "calibration", "a100-sxm4-80g", "--raw", self.raw, "-o", "named.svg"], cwd=self.dir, check=True)
        done = self.run_mllmsim(A100, "--raw", self.raw, "--plot", "a.svg")
        self.assertIn("gemm, all", done.stdout)
        self.assertIn("wrote a.svg", done.stderr)
        svg = xml.etree.ElementTree.parse(self.dir / "a.svg")
        texts = " ".join("".join(t.itertext()).strip() for t in svg.iter("{http://www.w3.org/2000/svg}text"))
        for text in ["measured time (us)", "predicted / measured", "GEMM, 3, median error", "point to point, 1, median error", "predicted = measured"]:
            self.assertIn(text, texts)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_png_in_the_size_it_promises(self):
        self.run_mllmsim(A100, "--raw", self.raw, self.raw, "--plot", "a.png")
        png = (self.dir / "a.png").read_bytes()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), (1200, 600))

    def test_a_calibration_alone_has_nothing_to_plot(self):
        self.assertIn("--raw", self.run_mllmsim(A100, "--plot", "a.png", code=2).stderr)
        self.assertIn("--plot", self.run_mllmsim(A100, "--raw", self.raw, code=2).stderr)

    def test_mistakes_leave_no_file(self):
        self.assertIn(".svg, .png or .pdf", self.run_mllmsim(A100, "--raw", self.raw, "--plot", "a.bmp", code=2).stderr)
        self.run_mllmsim(A100, A100, "--raw", self.raw, "--plot", "a.png", code=2)
        self.run_mllmsim(A100, "--raw", "nothing.csv", "--plot", "a.png", code=2)
        self.run_mllmsim(A100, "--raw", self.raw, "--nic-gb-per-s", 0, "--plot", "a.png", code=2)
        self.assertEqual(list(self.dir.iterdir()), [self.raw])

    def test_without_gnuplot_it_says_what_to_install(self):
        error = self.run_mllmsim(A100, "--raw", self.raw, "--plot", "a.png", code=3, PATH=str(self.dir)).stderr
        self.assertIn("gnuplot-nox", error)
        self.assertEqual(list(self.dir.iterdir()), [self.raw])

    def test_help(self):
        self.assertIn("--plot", self.run_mllmsim("--help").stdout)


class PlotRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.temporary.name)
        for name, strategy in [("a", "baseline"), ("b", "balanced")]:
            subprocess.run([MLLMSIM, "run", str(RUN), MEGATRON, "-s", strategy, "-o", name], cwd=cls.dir, check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def plot(self, *arguments, code=0, **environment):
        done = subprocess.run([MLLMSIM, "plot", *map(str, arguments)], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def texts(self, name):
        svg = xml.etree.ElementTree.parse(self.dir / name)
        return ["".join(t.itertext()).strip() for t in svg.iter("{http://www.w3.org/2000/svg}text")]

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_two_strategies_one_above_the_other(self):
        self.plot("timeline", "a", "b", "-o", "t.svg")
        texts = self.texts("t.svg")
        self.assertEqual(texts.count("stage 0"), 2)
        for text in ["forward, LLM", "pipeline warm-up", "transfer between stages"]:
            self.assertEqual(texts.count(text), 1, text)
        for text in ["(balanced)", "time (s)"]:
            self.assertEqual(sum(text in t for t in texts), 1, text)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_pictures_are_left_beside_the_run(self):
        for kind in ["timeline", "bubbles", "memory"]:
            self.assertIn(f"wrote a/{kind}.svg", self.plot(kind, "a").stderr)
            self.assertIn("internvl-6b-20b-a100x32 (baseline)", " ".join(self.texts(f"a/{kind}.svg")))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_ranks_and_zoom(self):
        self.plot("timeline", "a", "--ranks", "8-15", "--zoom", "0.5:0.9", "--data", "z.csv", "-o", "z.svg")
        self.assertIn("time (ms)", self.texts("z.svg"))
        self.assertEqual([t for t in self.texts("z.svg") if t.startswith("stage")], ["stage 1"])
        boxes = [line.split(",") for line in (self.dir / "z.csv").read_text().splitlines() if ",box," in line]
        self.assertTrue(all(500 <= float(b[-4]) <= float(b[-2]) <= 900 for b in boxes), boxes)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_speedup_of_two_runs(self):
        self.plot("speedup", "a", "b", "-o", "s.svg")
        days = [pandas.read_parquet(self.dir / r / "runs.parquet").gpu_days[0] for r in "ab"]
        self.assertIn(f"{days[0] / days[1]:.2f} x", self.texts("s.svg"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_runs_of_one_strategy_have_names_and_the_first_is_the_baseline(self):
        shutil.copytree(self.dir / "a", self.dir / "twin")
        table = pyarrow.parquet.read_table(self.dir / "twin/runs.parquet")
        days = table["gpu_days"][0].as_py()
        half = table.set_column(table.column_names.index("gpu_days"), "gpu_days", pyarrow.array([days / 2]))
        pyarrow.parquet.write_table(half, self.dir / "twin/runs.parquet")
        self.plot("speedup", "a", "twin", "-o", "t.svg")
        texts = self.texts("t.svg")
        for text in ["a", "twin", "1.00 x", "2.00 x", "run (strategy)"]:
            self.assertIn(text, texts)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_a_sweep(self):
        tables = [pandas.read_parquet(self.dir / r / "runs.parquet").assign(**{"cluster.nodes": n}) for r in "ab" for n in [4, 8]]
        table = pyarrow.Table.from_pandas(pandas.concat(tables), preserve_index=False)
        words = [pyarrow.field(f.name, pyarrow.string() if f.name in WORDS else f.type) for f in table.schema]
        (self.dir / "sweep").mkdir()
        pyarrow.parquet.write_table(table.cast(pyarrow.schema(words)), self.dir / "sweep/runs.parquet")
        self.plot("sweep", "sweep", "--y", "mfu")
        for text in ["internvl-6b-20b: MFU over nodes", "MFU (share of peak)", "baseline", "balanced", "4", "8"]:
            self.assertIn(text, self.texts("sweep/sweep.svg"))
        self.assertIn("there are run, strategy", self.plot("sweep", "sweep", "--y", "joy", code=2).stderr)

    def many_lines(self, strategies):
        """A sweep of so many strategies over 2 sizes of a pipeline and 3 clusters."""
        run = pandas.read_parquet(self.dir / "a/runs.parquet")
        key = "parallelism.pipeline_model_parallel_size"
        tables = [run.assign(strategy=f"s{s}", gpu_days=10.0 + s + n, **{key: p, "cluster.nodes": n})
                  for s in range(strategies) for p in [2, 4] for n in [4, 8, 16]]
        table = pyarrow.Table.from_pandas(pandas.concat(tables), preserve_index=False)
        words = [pyarrow.field(f.name, pyarrow.string() if f.name in WORDS else f.type) for f in table.schema]
        (self.dir / "many").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(table.cast(pyarrow.schema(words)), self.dir / "many/runs.parquet")

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_a_sweep_of_many_lines_has_a_panel_for_each_value(self):
        self.many_lines(5)
        self.plot("sweep", "many", "-o", "many.svg")
        texts = self.texts("many.svg")
        for text in ["nodes 4", "nodes 8", "nodes 16", "s0", "s4", "internvl-6b-20b: GPU-days over pipeline-parallel size"]:
            self.assertEqual(texts.count(text), 1, text)
        self.assertEqual(texts.count("pipeline-parallel size"), 3)
        self.plot("speedup", "many", "-o", "faster.svg")
        self.assertIn("nodes 16", self.texts("faster.svg"))

    def test_too_many_lines_for_panels_names_the_choices(self):
        self.many_lines(13)
        error = self.plot("sweep", "many", "-o", "many.svg", code=2).stderr
        self.assertIn("39 lines are too many", error)
        self.assertIn("cluster.nodes=4, 8 or 16", error)
        self.assertIn("strategy=s0, s1,", error)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_memory_is_a_stack_for_each_stage(self):
        self.plot("memory", "a", "--data", "m.csv", "-o", "m.svg")
        texts = self.texts("m.svg")
        for text in ["stage 0", "stage 3", "weights", "optimizer states", "activations", "what a GPU has", "peak of all steps, as reserved"]:
            self.assertEqual(texts.count(text), 1, text)
        stage = pandas.read_parquet(self.dir / "a/stages.parquet").loc[0]
        rows = pandas.read_csv(self.dir / "m.csv")
        own = rows[rows.panel == "stage 0"]
        self.assertAlmostEqual(own[own.name == "weights"].y.max(), stage.weights_bytes / 2**30, places=3)
        peak = pandas.read_parquet(self.dir / "a/memory.parquet").query("replica == 0 and stage == 0").memory_bytes.max()
        on_top = own[own.name.isin(["a backward's own", "copies of gradients"])]
        self.assertAlmostEqual(on_top.y.max(), peak / 2**30, places=3)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_hatches_are_wide_and_an_svg_knows_the_dark(self):
        self.plot("bubbles", "a", "-o", "b.svg")
        svg = (self.dir / "b.svg").read_text()
        self.assertIn("prefers-color-scheme: dark", svg)
        self.assertIn("stroke:rgb(112,112,112)", svg.replace(" ", ""))
        self.assertIn('stroke-width="2.00"', svg)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_kernels_of_encoder_and_llm_differ(self):
        for strategy in ["baseline", "omnibal", "optimus"]:
            subprocess.run([MLLMSIM, "run", str(ROOT / "scenarios/runs/vit-3b-gpt-11b-a100x8.toml"), "granularity=kernel", "-s", strategy, "-o", "k"],
                           cwd=self.dir, check=True, capture_output=True)
            self.plot("timeline", "k", "-o", "k.svg")
            texts = self.texts("k.svg")
            for text in ["forward, encoder", "forward, LLM", "backward, encoder", "backward, LLM"]:
                self.assertIn(text, texts, strategy)
            self.assertNotIn("forward", texts)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_packs(self):
        (self.dir / "lengths.csv").write_text("vit_num,token_num\n" + "".join(f"{1 + i % 7},{100 + 37 * i % 900}\n" for i in range(200)))
        subprocess.run([MLLMSIM, "pack", "lengths.csv", "--algorithm", "isf", "-o", "packs.parquet"], cwd=self.dir, check=True, capture_output=True)
        self.plot("packing", "packs.parquet", "-o", "p.svg")
        for text in ["tiles per micro-batch", "tokens per micro-batch", "before: random micro-batches", "after: packs"]:
            self.assertIn(text, self.texts("p.svg"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_validation(self):
        rows = [{"id": "x", "source": "y", "metric": "iteration_s", "predicted": p, "published": 2.0, "relative_error": p / 2 - 1} for p in [2.1, 3.0]]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.dir / "validation.parquet")
        self.plot("validation", ".", "-o", "v.svg")
        self.assertIn("1 of 2 predictions within 10 % of what was published", self.texts("v.svg"))
        rows += [{**rows[0], "metric": "gpu_days", "predicted": 20.0, "published": 20.0}]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.dir / "validation.parquet")
        self.plot("validation", ".", "-o", "v.svg")
        for text in ["step time (s)", "2, median error 27.5 %", "GPU-days", "1, median error 0.0 %"]:
            self.assertIn(text, self.texts("v.svg"))
        self.assertEqual(self.texts("v.svg").count("published"), 2)

    def test_mistakes_say_what_exists(self):
        self.plot("packing", "a", "b", code=2)
        self.assertIn("timeline, bubbles", self.plot("pie", "a", code=2).stderr)
        self.assertIn("there is 0", self.plot("timeline", "a", "--step", 5, code=2).stderr)
        self.assertIn("ranks 0-31", self.plot("timeline", "a", "--ranks", 32, code=2).stderr)
        self.assertIn("0.5:1.2", self.plot("timeline", "a", "--zoom", "later", code=2).stderr)
        self.assertIn("no-such-run", self.plot("timeline", "no-such-run", code=2).stderr)
        self.plot("timeline", code=2)
        self.plot(code=2)

    def test_without_gnuplot_the_data_is_still_written(self):
        error = self.plot("bubbles", "a", "-o", "none.png", code=3, PATH=str(self.dir)).stderr
        self.assertIn("gnuplot-nox", error)
        self.assertFalse((self.dir / "none.png").exists())
        self.assertIn("box,waiting for a neighbour stage,", (self.dir / "none.csv").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
