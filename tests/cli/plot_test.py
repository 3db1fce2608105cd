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

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
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
        self.run_mllmsim(A100, "--raw", "nothing.csv", "--plot", "a.png", code=3)
        self.run_mllmsim(A100, "--raw", self.raw, "--nic-gb-per-s", 0, "--plot", "a.png", code=2)
        self.assertEqual(list(self.dir.iterdir()), [self.raw])

    def test_without_gnuplot_it_says_what_to_install(self):
        error = self.run_mllmsim(A100, "--raw", self.raw, "--plot", "a.png", code=3, PATH=str(self.dir)).stderr
        self.assertIn("gnuplot-nox", error)
        self.assertEqual(list(self.dir.iterdir()), [self.raw])

    def test_help(self):
        self.assertIn("--plot", self.run_mllmsim("--help").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
