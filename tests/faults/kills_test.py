"""kill -9 at any moment, full disks, and two processes on one directory: kills_test.py MLLMSIM FAIL_CALLS.so

A killed command leaves under final names only whole files, earlier or new ones; the same command again gives the bytes that an
undisturbed one writes, and no temporary file is left. Kills come at random moments, and before every call that changes a file.

Few kills by default, 200 of a sweep and of a merge with MLLMSIM_ALL_FAULTS=1.
"""

import pathlib
import random
import resource
import subprocess
import sys
import time
import unittest
import unittest.mock

from faulty import ALL, CASES, KILLED, RUNS, Case, Place, results, size_of, whole

SHIM = str(pathlib.Path(sys.argv.pop(2)).resolve())
PLACE = Place(sys.argv.pop(1))
KILLS = 200 if ALL else 8
POINTS = 100
VARY = ["--vary", f"gbs=1200..{1200 + 12 * (POINTS - 1)}+12"]
LONG = Case("long-sweep", ["sweep", RUNS / "given-times-1f1b.toml", *VARY, "-o", "out"])
MERGE = Case("long-merge", ["merge", "out"])
COUNTS = {}


def start(where, case):
    return subprocess.Popen([PLACE.program, *case.arguments], cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end(process):
    _, talk = process.communicate(timeout=120)
    return process.returncode, talk


def clean(found):
    """Without the temporary files that a killed process may leave."""
    return {name: data for name, data in found.items() if ".tmp-" not in name}


class Kills(unittest.TestCase):
    def killed_until(self, kills, case, before_of, expected):
        """Kills the command at random moments, over and over; when it gets to its end, begins anew."""
        chance = random.Random(20240801)
        done = finished = 0
        where = PLACE.fresh(case)
        before = before_of(where)
        started = time.monotonic()
        self.assertEqual(end(start(where, case))[0], 0)
        duration = time.monotonic() - started
        where = PLACE.fresh(case)
        before_of(where)
        while done < kills:
            process = start(where, case)
            time.sleep(chance.uniform(0, duration))
            process.kill()
            code, talk = end(process)
            self.assertIn(code, (0, KILLED), talk)
            done += code == KILLED
            found = clean(results(where / "out"))
            self.assertEqual(list(whole(found, before, expected)), [])
            if code == 0 or chance.random() < 0.2:  # to the end, and anew
                self.assertEqual(end(start(where, case)), (0, unittest.mock.ANY))
                self.assertEqual(results(where / "out"), expected)
                finished += 1
                where = PLACE.fresh(case)
                before_of(where)
        self.assertEqual(end(start(where, case))[0], 0)
        self.assertEqual(results(where / "out"), expected)
        print(f"{case.name}: {done} kills within {duration:.2f} s, {finished + 1} times continued to the end", flush=True)
        COUNTS["kills"] = COUNTS.get("kills", 0) + done

    def test_a_sweep_killed_at_random_moments(self):
        self.killed_until(KILLS, LONG, lambda where: {}, PLACE.expected(LONG))

    def test_a_merge_killed_at_random_moments(self):
        where = PLACE.fresh(MERGE)
        for i in (1, 2, 3):
            PLACE.call(where, ["sweep", RUNS / "given-times-1f1b.toml", *VARY, "--shard", f"{i}/3", "-o", "out"], check=True)
        shards = PLACE.dir / "shards"
        (where / "out").rename(shards)

        def before(place):
            (place / "out").rmdir()
            subprocess.run(["cp", "-r", shards, place / "out"], check=True)
            return results(place / "out")

        where = PLACE.fresh(MERGE)
        before(where)
        PLACE.call(where, MERGE.arguments, check=True)
        self.killed_until(KILLS, MERGE, before, results(where / "out"))

    def test_killed_before_every_call_that_changes_a_file(self):
        for case in CASES:
            expected = PLACE.expected(case)
            kills = 0
            for call in ["write", "fsync", "rename", "open"]:
                n = 0
                while ALL or n < 2:
                    n += 1
                    where = PLACE.fresh(case)
                    before = results(where / "out")
                    done = PLACE.call(where, case.arguments, LD_PRELOAD=SHIM, FAULT_UNDER=PLACE.dir, FAULT_CALL=call, FAULT_AT=n,
                                      FAULT_KILL=1)
                    if done.returncode == 0:
                        break  # it has fewer calls
                    what = f"{case.name}: killed before {call} {n}"
                    self.assertEqual(done.returncode, KILLED, f"{what}: {done.stderr}")
                    self.assertEqual(list(whole(clean(results(where / "out")), before, expected)), [], what)
                    again = PLACE.call(where, case.arguments)
                    self.assertEqual(again.returncode, 0, f"second try, {what}: {again.stderr}")
                    self.assertEqual(clean(results(where / "out")), expected, what)
                    kills += 1
            print(f"{case.name}: {kills} kills before calls", flush=True)
            COUNTS["kills"] = COUNTS.get("kills", 0) + kills

    def test_tables_of_two_runs_are_not_taken_for_one(self):
        run = CASES[0]
        where = PLACE.fresh(run)
        done = PLACE.call(where, run.arguments, LD_PRELOAD=SHIM, FAULT_UNDER=PLACE.dir, FAULT_CALL="rename", FAULT_AT=4, FAULT_KILL=1)
        self.assertEqual(done.returncode, KILLED)
        done = PLACE.call(where, ["trace", "out", "--out", "trace.json"])
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"out/\w+\.parquet: is of another run than runs.parquet")


class Limits(unittest.TestCase):
    def test_a_limit_on_the_size_of_files(self):
        for case in CASES:
            expected = PLACE.expected(case)
            for limit in (0, 100, 4096):
                where = PLACE.fresh(case)
                before = results(where / "out")
                done = subprocess.run([PLACE.program, *case.arguments], cwd=where, capture_output=True, text=True,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                what = f"{case.name}: files of at most {limit} bytes"
                self.assertEqual(done.returncode, 3, f"{what}: {done.stderr}")
                self.assertRegex(done.stderr, r"(?m)^error: cannot write out/.*File too large", what)
                self.assertEqual(results(where / "out"), before, what)
                PLACE.call(where, case.arguments, check=True)
                self.assertEqual(results(where / "out"), expected, what)

    def test_a_full_file_system(self):
        for case in CASES:
            expected = PLACE.expected(case)
            where = PLACE.fresh(case)
            before = results(where / "out")
            size = (size_of(before) + 8 * 4096) // 4096 * 4  # room for the earlier results, and little more
            script = 'mount -t tmpfs -o size="$1"k none disk || exit 77; cp -r out/. disk/; mount --bind disk out; shift; "$@"; code=$?; cp -r out/. seen/; exit $code'
            for directory in ("disk", "seen"):
                (where / directory).mkdir()
            done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(size), PLACE.program, *case.arguments], cwd=where,
                                  capture_output=True, text=True)
            if done.returncode == 77 or "unshare" in done.stderr:
                self.skipTest("no permission to mount a tmpfs")
            found = results(where / "seen")
            if done.returncode == 3:
                self.assertIn("No space left on device", done.stderr)
                self.assertEqual(found, before, case.name)
            else:
                self.assertEqual((done.returncode, found), (0, expected), done.stderr)
            print(f"{case.name}: a tmpfs of {size} KiB: exit {done.returncode}", flush=True)


class TwoAtOnce(unittest.TestCase):
    def test_sweeps(self):
        expected = PLACE.expected(LONG)
        for _ in range(10 if ALL else 2):
            where = PLACE.fresh(LONG)
            ends = [end(p) for p in [start(where, LONG), start(where, LONG)]]
            self.assertIn(sorted(code for code, _ in ends), ([0, 0], [0, 3]))
            for code, talk in ends:
                if code == 3:
                    self.assertIn("another sweep is writing to", talk)
            self.assertEqual(results(where / "out"), expected)

    def test_runs(self):
        run = CASES[0]
        other = Case("other", run.before)
        after = PLACE.expected(run)
        for _ in range(40 if ALL else 4):
            where = PLACE.fresh(run)
            before = results(where / "out")
            ends = [end(p) for p in [start(where, run), start(where, other), start(where, run)]]
            self.assertEqual([code for code, _ in ends], [0, 0, 0])
            self.assertIn(results(where / "out"), (before, after))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    print(f"{COUNTS.get('kills', 0)} kills")
    sys.exit(not program.result.wasSuccessful())
