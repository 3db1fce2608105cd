"""clang-tidy 14 with .clang-tidy finds nothing in the library and the programs. $BUILD is a build directory, whose
compile_commands.json says what is compiled: each folder as one unit (MLLMSIM_UNITS), so that what most files include
is looked through once per folder, not once per file. Without clang-tidy-14 the test is skipped (exit 77).

    BUILD=build/release tidy_test.py [WORD...]     only units whose path has one of these words in it"""

import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "clang-tidy-14"
KEPT = ("-D", "-I", "-std")  # of g++'s arguments; its warnings are not clang's


def units(build):
    """(file, arguments) of what is compiled, without tests, CUDA and the precompiled header itself."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        here = file.relative_to(build if file.is_relative_to(build) else ROOT).as_posix()
        if here.startswith("tests/") or "/cuda/" in here or "cmake_pch" in here or file.suffix == ".cu":
            continue
        words = shlex.split(entry["command"])
        system = [f"-isystem{words[i + 1]}" for i, word in enumerate(words) if word == "-isystem"]
        yield here, file, [word for word in words if word.startswith(KEPT)] + system


def findings(file, arguments):
    done = subprocess.run([PROGRAM, "--quiet", f"--config-file={ROOT}/.clang-tidy", "--warnings-as-errors=*", str(file), "--", *arguments], cwd=ROOT,
                          text=True, capture_output=True)
    if done.returncode == 0:
        return ""
    return done.stdout or done.stderr


def self_test():
    """A file with a fault is refused: the rest would pass also if nothing were looked at."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "fault.cpp"
        file.write_text("#include <string>\n#include <utility>\n"
                        "std::size_t f(std::string a) { std::string b = std::move(a); return a.size() + b.size(); }\n")
        found = findings(file, ["-std=c++20"])
    return "bugprone-use-after-move" in found


def main():
    build, words = Path(os.environ["BUILD"]).resolve(), sys.argv[1:]
    if not self_test():
        sys.exit("tidy_test.py: a use after move was not found")
    wanted = [unit for unit in units(build) if not words or any(word in unit[0] for word in words)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, _, _), found in zip(wanted, pool.map(lambda unit: findings(*unit[1:]), wanted)):
            if found:
                failed += 1
                print(f"{name}:\n{found}")
    print(f"{len(wanted)} units, {failed} with findings")
    sys.exit(1 if failed or not wanted else 0)


if __name__ == "__main__":
    if not shutil.which(PROGRAM):
        print(f"skipped: {PROGRAM} not found (./setup.sh tests installs it)")
        sys.exit(77)
    main()
