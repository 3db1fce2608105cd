"""Every C++ and CUDA file is as clang-format 14 and .clang-format leave it; another version formats differently, so
this one is called by name. Without it the test is skipped (exit 77). Comments, which it leaves as they are so that
equations keep their columns, end within the 100."""

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import includes

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "clang-format-14"


def complaints(*arguments, **options):
    return subprocess.run([PROGRAM, "--dry-run", "-Werror", *arguments], cwd=ROOT, text=True,
                          stderr=subprocess.PIPE, **options).stderr


class Format(unittest.TestCase):
    def test_this_tree(self):
        found = complaints(*map(str, includes.sources(ROOT)))
        lines = [line for line in found.splitlines() if " error: " in line]
        self.assertEqual("", "\n".join(lines[:20]), f"{len(lines)} in all; mend with {PROGRAM} -i FILE")

    def test_comments_end_in_time(self):
        long = [f"{file}:{number}" for file in includes.sources(ROOT)
                for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
                if len(line) > 100 and line.lstrip().startswith("//")]
        self.assertEqual([], long)

    def test_what_is_not_formatted_is_named(self):
        found = complaints("--assume-filename=sim/base/fake.hpp", input="int  two_spaces;\n")
        self.assertIn("sim/base/fake.hpp:1:4: error", found)


if __name__ == "__main__":
    if not shutil.which(PROGRAM):
        print(f"skipped: {PROGRAM} not found (./setup.sh tests installs it)")
        sys.exit(77)
    unittest.main()
