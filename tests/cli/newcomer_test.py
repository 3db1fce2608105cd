"""The README's way from a clone to the answer for a model of one's own, run as it is written. newcomer_test.py MLLMSIM."""

import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
README = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text()
SECTION = README.split("## Your own model\n")[1].split("\n## ")[0]


BLOCKS = dict(re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.S | re.M))


def block(language):
    return BLOCKS[language]


@unittest.skipUnless(shutil.which("git"), "needs git")
class Newcomer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name)
        # What is cloned: a run.sh whose program is built already.
        repository = self.dir / "REPOSITORY"
        repository.mkdir()
        script = repository / "run.sh"
        script.write_text(f'#!/bin/sh\nexec "{MLLMSIM}" "$@"\n')
        script.chmod(0o755)
        for command in (["init", "-q"], ["add", "run.sh"],
                        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
            subprocess.run(["git", *command], cwd=repository, check=True)

    def test_ten_lines_and_three_commands(self):
        self.assertLessEqual(len(block("toml").splitlines()), 10)
        self.assertEqual(len(block("").splitlines()), 3)

    def test_it_works_as_written(self):
        clone, *commands = block("").splitlines()
        self.assertTrue(clone.endswith("&& cd mllmsim"))
        subprocess.run(clone, shell=True, cwd=self.dir, check=True, capture_output=True)
        folder = self.dir / "mllmsim"
        (folder / "mine.toml").write_text(block("toml"))
        head, *rows = block("csv").splitlines()
        tiles = [int(row.split(",")[0]) for row in rows]
        seeded = random.Random(1)
        lines = [f"{t},{729 * t + seeded.randint(20, 600)}" for t in seeded.choices(tiles, k=3000)]
        (folder / "lengths.csv").write_text("\n".join([head, *rows, *lines]) + "\n")
        run, explain = (subprocess.run(c, shell=True, cwd=folder, capture_output=True, text=True) for c in commands)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("8.05 B parameters, on 16 GPUs of h100-8x400", run.stdout)
        self.assertRegex(run.stdout, r"GPU-days +[0-9.]+ for 3.00 k samples")
        self.assertIn("measure first", run.stdout)
        self.assertEqual(explain.returncode, 0, explain.stderr)
        self.assertIn("what would help", explain.stdout)


if __name__ == "__main__":
    unittest.main()
