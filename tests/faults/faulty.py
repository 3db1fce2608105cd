"""What the tests of faults share: commands that leave results, calls that fail, and what must hold after a failure."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
ALL = bool(os.environ.get("MLLMSIM_ALL_FAULTS"))  # ./test.sh --all
KILLED = -9


def results(directory):
    """Size and hash of each file by name, but for the journal, which only the next sweep reads."""
    files = [p for p in sorted(directory.rglob("*")) if p.is_file() and p.suffix != ".journal"]
    return {str(p.relative_to(directory)): (p.stat().st_size, hashlib.sha256(p.read_bytes()).hexdigest()[:16]) for p in files}


def size_of(found):
    return sum(size for size, _ in found.values())


class Case:
    """A command that writes to the directory `out`, from inputs in `given`, where results of another command lie already."""

    def __init__(self, name, arguments, before=None):
        self.name, self.arguments, self.before = name, list(map(str, arguments)), before and list(map(str, before))


CASES = [
    Case("run", ["run", RUNS / "given-times-1f1b.toml", "-o", "out"],
         ["run", RUNS / "given-times-1f1b.toml", "gbs=24", "-o", "out"]),
    Case("sweep", ["sweep", RUNS / "given-times-1f1b.toml", "--vary", "gbs=12..36+12", "-j", 1, "-o", "out"],
         ["sweep", RUNS / "given-times-1f1b.toml", "--vary", "gbs=12,48", "-j", 1, "-o", "out"]),
    Case("merge", ["merge", "given/shards", "-o", "out"],
         ["sweep", RUNS / "given-times-1f1b.toml", "--vary", "gbs=12,48", "-j", 1, "-o", "out"]),
    Case("report", ["report", "given/run", "--out", "out/report.html"], ["report", "given/other", "--out", "out/report.html"]),
    Case("trace", ["trace", "given/run", "--out", "out/trace.json.gz"], ["trace", "given/other", "--out", "out/trace.json.gz"]),
]


class Place:
    """A directory with what the commands read, made once; `fresh` gives a copy with earlier results."""

    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.temporary = tempfile.TemporaryDirectory(prefix="faults-")
        self.dir = pathlib.Path(self.temporary.name).resolve()
        template = self.dir / "template"
        template.mkdir()
        first = RUNS / "given-times-1f1b.toml"
        for arguments in [["run", first, "-o", "given/run"], ["run", first, "gbs=24", "-o", "given/other"],
                          *(["sweep", first, "--vary", "gbs=12..36+12", "--shard", f"{i}/2", "-o", "given/shards"] for i in (1, 2))]:
            self.call(template, arguments, check=True)
        self.template = template

    def call(self, where, arguments, check=False, **settings):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=where, capture_output=True, text=True, errors="replace",
                              env={**os.environ, **{k: str(v) for k, v in settings.items()}}, timeout=120)
        assert not check or done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stderr}"
        return done

    def fresh(self, case):
        """The directory to work in, and its `out` with earlier results."""
        where = self.dir / "work"
        shutil.rmtree(where, ignore_errors=True)
        prepared = self.dir / f"prepared-{case.name}"
        if not prepared.exists():
            shutil.copytree(self.template, prepared)
            (prepared / "out").mkdir()
            if case.before:
                self.call(prepared, case.before, check=True)
        shutil.copytree(prepared, where)
        return where

    def expected(self, case):
        """What `out` holds after the command has done its work."""
        where = self.fresh(case)
        self.call(where, case.arguments, check=True)
        return results(where / "out")


def whole(found, before, after):
    """Complaints about files that are neither what was there before nor what the command writes."""
    for name, data in found.items():
        if ".tmp-" in name:
            yield f"{name} was left behind"
        elif data not in (before.get(name), after.get(name)):
            yield f"{name} is half written"
    for name in before.keys() - found.keys():
        yield f"{name} is gone"
