"""The built program as tests of the front door start it. Its path is the first word of a test's command line."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())


def run(directory, arguments, code):
    done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=directory, capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}: {done.stderr}")
    return done


class InItsOwnDirectory(unittest.TestCase):
    """A new directory for each test."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name)

    def mllmsim(self, *arguments, code=0):
        return run(self.dir, arguments, code)


class InOneDirectory(unittest.TestCase):
    """One directory for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.dir = pathlib.Path(temporary.name)

    @classmethod
    def mllmsim(cls, *arguments, code=0):
        return run(cls.dir, arguments, code)
