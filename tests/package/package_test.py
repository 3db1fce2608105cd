"""The installed package as somebody else's project meets it: find_package, build, run.

    package_test.py BUILD_DIRECTORY
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        prefix = scratch / "moved"
        run("cmake", "--install", sys.argv[1], "--prefix", scratch / "installed")
        (scratch / "installed").rename(prefix)  # a package may be moved
        run("cmake", "-G", "Ninja", "-S", HERE, "-B", scratch / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
        run("cmake", "--build", scratch / "build")
        needed = run("readelf", "-d", scratch / "build" / "predict")
        assert "arrow" not in needed and "parquet" not in needed, needed
        lines = run(scratch / "build" / "predict", cwd=scratch).splitlines()
        print("\n".join(lines))
        assert len(lines) == 3, lines
        for line in lines:
            assert re.fullmatch(r" *\d+ GPUs: +[\d.]+ GPU-days, OmniBal +[\d.]+: [\d.]+ times as fast", line), line
        assert (prefix / "bin" / "mllmsim").exists()
        headers = list((prefix / "include" / "mllmsim").rglob("*.hpp"))
        assert len(headers) <= 36, len(headers)  # what mllmsim.hpp reaches, no more


if __name__ == "__main__":
    main()
