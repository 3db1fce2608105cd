"""Each source compiles by itself: what it uses it includes. Folders are compiled as one unit (MLLMSIM_UNITS), where a file may
lean on its neighbours' includes without anybody noticing; here each is parsed alone, as the preset dev compiles it, with the
precompiled header of $BUILD, a build directory.

    BUILD=build/release alone_test.py [WORD...]     only files whose path has one of these words in it"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMBER = re.compile(r'^#include "(.*)"$', re.M)


def arguments(entry):
    """How the unit is compiled, without its name and its result."""
    words = shlex.split(entry["command"])
    return words[: words.index("-o")] + ["-fsyntax-only"]


def sources(build):
    """(path from the root, arguments, directory) of each file that a unit is made of."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = Path(entry["file"])
        if unit.parent.name != "Unity":
            continue
        for member in MEMBER.findall(unit.read_text()):
            yield Path(member).relative_to(ROOT).as_posix(), arguments(entry), entry["directory"]


def problem(file, compiler, directory):
    done = subprocess.run([*compiler, str(file)], cwd=directory, text=True, capture_output=True)
    return "" if done.returncode == 0 else done.stderr


def self_test(compiler, directory):
    """A file that leans on another is refused: the rest would pass also if nothing were parsed."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "leaning.cpp"
        file.write_text("static_assert(mllmsim::can_be_grouped(4, 2, 2));\n")
        return "has not been declared" in problem(file, compiler, directory)


def main():
    build, words = Path(os.environ["BUILD"]).resolve(), sys.argv[1:]
    wanted = [s for s in sources(build) if not words or any(word in s[0] for word in words)]
    if not wanted:
        print("skipped: a build without units, which compiles each source alone")
        sys.exit(77)
    if not self_test(*wanted[0][1:]):
        sys.exit("alone_test.py: a name that was not included was found all the same")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, _, _), found in zip(wanted, pool.map(lambda s: problem(ROOT / s[0], *s[1:]), wanted)):
            if found:
                failed += 1
                print(f"{name}:\n{found}")
    print(f"{len(wanted)} sources, {failed} that do not compile alone")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
