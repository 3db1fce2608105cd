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
WORDS = ["run", "strategy", "scenario_hash", "model", "cluster", "work", "calibration_hash", "granularity", "reason"]
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
        done = self.run_mllmsim(A100, "--raw", self.raw, "--plot", "a.svg")
        self.assertIn("gemm, all", done.stdout)
        self.assertIn("wrote a.svg", done.stderr)
        svg = xml.etree.ElementTree.parse(self.dir / "a.svg")
        texts = " ".join("".join(t.itertext()).strip() for t in svg.iter("{http://www.w3.org/2000/svg}text"))
        for text in ["measured time (us)", "predicted time (us)", "GEMM (3)", "point to point (1)", "predicted = measured"]:
            self.assertIn(text, texts)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_png_in_the_size_it_promises(self):
        self.run_mllmsim(A100, "--raw", self.raw, self.raw, "--plot", "a.png")
        png = (self.dir / "a.png").read_bytes()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), (1200, 800))

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
        for text in ["forward, LLM", "bubble pp_warmup", "pp communication"]:
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
    def test_a_sweep(self):
        tables = [pandas.read_parquet(self.dir / r / "runs.parquet").assign(**{"cluster.nodes": n}) for r in "ab" for n in [4, 8]]
        table = pyarrow.Table.from_pandas(pandas.concat(tables), preserve_index=False)
        words = [pyarrow.field(f.name, pyarrow.string() if f.name in WORDS else f.type) for f in table.schema]
        (self.dir / "sweep").mkdir()
        pyarrow.parquet.write_table(table.cast(pyarrow.schema(words)), self.dir / "sweep/runs.parquet")
        self.plot("sweep", "sweep", "--y", "mfu")
        for text in ["mfu over cluster.nodes", "baseline", "balanced", "4", "8"]:
            self.assertIn(text, self.texts("sweep/sweep.svg"))
        self.assertIn("there are run, strategy", self.plot("sweep", "sweep", "--y", "joy", code=2).stderr)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_packs(self):
        (self.dir / "lengths.csv").write_text("vit_num,token_num\n" + "".join(f"{1 + i % 7},{100 + 37 * i % 900}\n" for i in range(200)))
        subprocess.run([MLLMSIM, "pack", "lengths.csv", "--algorithm", "isf", "-o", "packs.parquet"], cwd=self.dir, check=True, capture_output=True)
        self.plot("packing", "packs.parquet", "-o", "p.svg")
        for text in ["tiles a micro-batch", "tokens a micro-batch", "before: random micro-batches", "after: packs"]:
            self.assertIn(text, self.texts("p.svg"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_validation(self):
        rows = [{"id": "x", "source": "y", "metric": "iteration_s", "predicted": p, "published": 2.0, "relative_error": p / 2 - 1} for p in [2.1, 3.0]]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.dir / "validation.parquet")
        self.plot("validation", ".", "-o", "v.svg")
        self.assertIn("1 of 2 predictions within 10 % of what was published", self.texts("v.svg"))

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
        self.assertIn("box,pp_other,", (self.dir / "none.csv").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
