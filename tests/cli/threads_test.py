"""What has threads: a sweep, a pass over a data set, two runs at once, published runs and what would help a run, with four
threads and with one: the same bytes. tsan runs this: threads_test.py MLLMSIM."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
SWEEP = ["sweep", "llama-3-8b-a100x8", "--vary", "tp=1,2", "--vary", "mbs=1,2", "--strategies", "baseline,zero3"]
PASS = ["run", "internvl-1.2m-a100x32", "strategy.name=omnibal", "strategy.simulated=2", "data.steps=2"]
TWO = ["run", "llama-3-8b-a100x8", "gpt3-175b-a100x1024"]
PUBLISHED = ["validate", "korthikanti-table5"]
EXPLAIN = ["explain", "llama-3-8b-a100x8"]


class Threads(unittest.TestCase):
    def files(self, *arguments, threads):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([MLLMSIM, *arguments, "--threads", str(threads)], cwd=directory, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            files = {p.relative_to(directory): p.read_bytes() for p in pathlib.Path(directory).rglob("*.parquet")}
            return files, done.stdout

    def test_same_bytes(self):
        for command in (SWEEP, PASS, TWO, PUBLISHED, EXPLAIN):
            with self.subTest(command=command):
                one = self.files(*command, threads=1)
                self.assertNotEqual(one[1], "")
                self.assertEqual(self.files(*command, threads=4), one)


if __name__ == "__main__":
    unittest.main()
