"""What the program does when its streams are full, closed or left, and with hostile names and absurd quantities:
streams_test.py MLLMSIM. Results are complete on disk, terminals get no escape codes, and nothing ends in an abort."""

import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pandas
import pyarrow
import pyarrow.parquet

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = "llama-3-8b-a100x8"
SWEEP = ["sweep", RUN, "--vary", "parallelism.micro_batch_size=1,2", "--out", "swept"]
CALIBRATION = ROOT / "cost_models" / "calibrations" / "a100-sxm4-80g.json"
READER_GONE = 141


class Cli(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def run_mllmsim(self, *arguments, code=0):
        done = subprocess.run([MLLMSIM, *arguments], cwd=self.dir, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode()

    def run_shell(self, *arguments, redirect):
        """With a shell's redirections; words are passed whole."""
        return subprocess.run(["bash", "-c", f'"$@" {redirect}', "bash", MLLMSIM, *arguments], cwd=self.dir,
                              capture_output=True, text=True, timeout=120)

    def tables_in(self, directory):
        return sorted(p.name for p in (self.dir / directory).glob("*.parquet"))

    def change(self, file, column=None, value=None, metadata=None):
        """Sets a column of a Parquet file, or some of its metadata."""
        table = pyarrow.parquet.read_table(file)
        if column:
            at = table.schema.get_field_index(column)
            field = table.schema.field(at)
            table = table.set_column(at, field, pyarrow.array([value] * len(table), field.type))
        table = table.replace_schema_metadata({**table.schema.metadata, **(metadata or {})})
        pyarrow.parquet.write_table(table, file)


class StandardOutput(Cli):
    COMMANDS = [["--help"], ["--version"], ["list"], ["run", "--help"], ["run", RUN, "--out", "ran"],
                ["run", RUN, "--out", "ran", "--json"], ["compare", "ran"], ["compare", "ran", "--csv"],
                ["explain", RUN], ["pack", "internvl-1.2m", "--algorithm", "best-fit"], SWEEP,
                ["calibrate", "show", str(CALIBRATION)], ["calibrate", "scale", str(CALIBRATION), "--gemm", "2"],
                ["calibrate", "gaps", RUN], ["calibrate", "--help"]]

    def test_full_or_closed_it_is_an_error_of_the_machine(self):
        for redirect, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            for command in self.COMMANDS:
                with self.subTest(command=command, redirect=redirect):
                    done = self.run_shell(*command, redirect=redirect)
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertIn(f"error: cannot write to standard output: {reason}\n", done.stderr)

    def test_that_nobody_reads_loses_no_results(self):
        kept = {"ran": ["run", RUN, "--out", "ran"], "swept": SWEEP, "shown": ["validate", "--out", "shown/v.parquet"]}
        read, write = os.pipe()
        os.close(read)
        self.addCleanup(os.close, write)
        for directory, command in kept.items():
            with self.subTest(command=command):
                done = subprocess.run([MLLMSIM, *command], cwd=self.dir, stdout=write, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, READER_GONE, done.stderr)
                self.assertNotIn("error", done.stderr)
        self.assertEqual(self.tables_in("ran"), ["gaps.parquet", "memory.parquet", "plan.parquet", "runs.parquet",
                                                 "spans.parquet", "stages.parquet", "steps.parquet"])
        self.assertEqual(len(pandas.read_parquet(self.dir / "swept/runs.parquet")), 2)
        self.assertEqual(self.tables_in("shown"), ["v.parquet"])

    def test_piped_to_head(self):
        done = self.run_shell(*SWEEP, redirect="| head -1")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 1))
        self.assertEqual(self.tables_in("swept"), ["runs.parquet", "stages.parquet"])


class StandardError(Cli):
    def test_closed_streams_do_not_become_our_files(self):
        for redirect in ("2>&-", "<&- 2>&-", "2>/dev/full"):
            with self.subTest(redirect=redirect):
                out = f"out{len(redirect)}"
                self.assertEqual(self.run_shell(*SWEEP[:-1], out, redirect=redirect).returncode, 0)
                # What is in the journal is found again, untouched by progress text.
                self.assertIn("2 of 2 points were finished before", self.run_mllmsim(*SWEEP[:-1], out))

    def test_a_mistake_has_its_exit_code_without_it(self):
        for redirect in ("2>&-", "2>/dev/full"):
            self.assertEqual(self.run_shell("run", "nothing", redirect=redirect).returncode, 2)

    def talk_on_a_terminal(self, *words):
        reader, writer = os.openpty()
        with subprocess.Popen([MLLMSIM, *words], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=writer) as running:
            os.close(writer)
            talk = b""
            try:
                while chunk := os.read(reader, 4096):
                    talk += chunk
            except OSError:  # how a terminal ends
                pass
        os.close(reader)
        self.assertEqual(running.returncode, 0, talk)
        return talk

    def test_a_long_plan_says_how_far_it_is_on_a_terminal_only(self):
        words = ["run", "vit-3b-gpt-11b-a100x8", "gbs=512", "--out", "out"]
        done = subprocess.run([MLLMSIM, *words], cwd=self.dir, capture_output=True, text=True, timeout=600)
        self.assertNotIn("steps of planning", done.stderr)
        self.assertIn(b"17 of 17 steps of planning", self.talk_on_a_terminal(*words))

    def test_a_long_search_for_what_fits_says_how_far_it_is(self):
        # 192 layers do not fit; each change is planned and simulated kernel by kernel.
        talk = self.talk_on_a_terminal("run", "internvl-6b-20b-a100x32", "strategy=optimus", "model.llm.num_hidden_layers=192",
                                       "--out", "out")
        self.assertRegex(talk, rb"\d+ of \d+ remedies")


class Names(Cli):
    WRONG = ["../../x", "/tmp/x", "", ".", "..", ".x", "a\\b", "a\u001b[31mb", "a\nb", "a\u0085b", "x" * 121]

    def scenario(self, name):
        escaped = "".join(f"\\u{ord(c):04x}" for c in name)
        file = self.dir / "run.toml"
        file.write_text(f'# a comment\nname = "{escaped}"\n' + (ROOT / f"scenarios/runs/{RUN}.toml").read_text())
        return str(file)

    def test_lead_nowhere_else(self):
        for name in self.WRONG:
            with self.subTest(name=name):
                error = self.run_mllmsim("run", self.scenario(name), code=2)
                self.assertIn("run.toml:2:", error)
                self.assertIn(": name: ", error)
                self.assertEqual(error.count("\n"), 1)
                self.assertEqual([c for c in error if ord(c) < 32 and c != "\n"], [])
        self.run_mllmsim("run", RUN, b"name=a\xffb", code=2)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["run.toml"])

    def test_may_have_blanks_and_letters_of_any_language(self):
        self.run_mllmsim("run", self.scenario("Größe 7B, v1.2+fp8"))
        self.assertTrue((self.dir / "results/runs/Größe 7B, v1.2+fp8/runs.parquet").exists())

    def test_of_files_are_names_too(self):
        source = (ROOT / f"scenarios/runs/{RUN}.toml").read_text()
        (self.dir / "...toml").write_text(source)  # whose stem is ".."
        self.assertIn('missing: the file\'s ".." is no name', self.run_mllmsim("run", "...toml", code=2))

    def test_of_overrides_stay_within_the_directory(self):
        self.run_mllmsim("run", RUN, "description=../../\x1b[31m" + "x" * 300)
        (found,) = (self.dir / "results/runs").iterdir()
        self.assertTrue(found.name.startswith(f"{RUN}+description=.._.._"), found.name)
        self.assertTrue(found.name.isprintable())
        self.assertLess(len(found.name), 256)

    def test_reach_a_terminal_escaped(self):
        hostile = "\x1b]0;owned\x07"
        for command in (["run", hostile], ["run", RUN, f"a{hostile}=1"], ["list", hostile], [hostile], ["compare", hostile],
                        ["calibrate", "show", hostile], ["run", RUN, f"--{hostile}"]):
            with self.subTest(command=command):
                error = self.run_mllmsim(*command, code=2)
                self.assertIn("\\x1b]0;owned\\x07", error)
                self.assertNotIn("\x1b", error)
        self.run_mllmsim("run", RUN, "--out", "ran")
        self.change(self.dir / "ran/runs.parquet", "run", hostile)
        self.change(self.dir / "ran/runs.parquet", "strategy", hostile)
        shown = self.run_shell("compare", "ran", redirect="").stdout
        self.assertIn("\\x1b]0;owned", shown)
        self.assertNotIn("\x1b", shown)


class Mistakes(Cli):
    def test_words_that_no_file_can_have_as_name(self):
        (self.dir / "loop").symlink_to("loop")
        (self.dir / "loop=1").symlink_to("loop=1")
        for word in ("x" * 300, "x" * 300 + "=1", "loop", "loop=1"):
            for command in (["run"], ["sweep"], ["explain"], ["validate"], ["pack"], ["compare"], ["merge", "--out", "m"],
                            ["calibrate", "show"], ["calibrate", "import", "nccl"], ["calibrate", "fit", "--out", "m"]):
                with self.subTest(command=command, word=word[:10]):
                    self.assertIn("command line" if "=" in word and command[0] in ("run", "sweep", "explain") else word[:10],
                                  self.run_mllmsim(*command, word, code=2))
            for command in (["plot", "timeline"], ["plot", "sweep"], ["report"], ["trace", "--out", "t.json"]):
                with self.subTest(command=command, word=word[:10]):
                    self.assertIn("expected the directory of a run", self.run_mllmsim(*command, word, code=2))
            for command in (["plot", "validation"], ["plot", "packing"]):
                with self.subTest(command=command, word=word[:10]):
                    self.assertIn(word[:10], self.run_mllmsim(*command, word, code=2))

    def test_directories_as_calibrations(self):
        for command in (["show"], ["fit", "--out", "x"], ["import", "nccl"], ["import", "kineto"], ["scale"]):
            self.assertIn("error: .: is a directory, not a file", self.run_mllmsim("calibrate", *command, ".", code=2))

    def test_what_is_no_file_is_not_waited_for(self):
        os.mkfifo(self.dir / "fifo")
        commands = [["run"], ["run", RUN, "calibration=./{}"], ["run", RUN, "data.set={}"], ["sweep", "--vary", "tp=1,2"], ["validate"],
                    ["pack"], ["compare"], ["rerun"], ["trace", "--out", "t.json"], ["report"], ["calibrate", "show"],
                    ["calibrate", "import", "nccl"], ["calibrate", "import", "kineto"], ["calibrate", "fit", "--out", "m"],
                    ["plot", "timeline"], ["plot", "packing"], ["plot", "validation"], ["plot", "calibration", str(CALIBRATION), "--raw"]]
        for command in commands:
            for file in ("fifo", "/dev/zero"):
                with self.subTest(command=command, file=file):
                    words = [word.format(file).replace(".//", "/") for word in command]
                    self.assertIn(file, self.run_mllmsim(*words, *([] if words != command else [file]), code=2))

    def test_much_nonsense_is_refused_at_its_start(self):
        (self.dir / "x").write_bytes(b"\x01{[,;\n\n" * (8 << 20))  # 56 MB
        for name, command in (("x.toml", ["run"]), ("x.toml", ["validate"]), ("x.json", ["pack"]), ("x.csv", ["pack"]),
                              ("x.json", ["calibrate", "show"]), ("x.log", ["calibrate", "import", "nccl"]),
                              ("x.json", ["calibrate", "import", "kineto"]), ("x.jsonl", ["calibrate", "fit", "--out", "m"]),
                              ("x.csv", ["calibrate", "fit", "--out", "m"])):
            with self.subTest(command=command, name=name):
                if not (self.dir / name).exists():
                    (self.dir / name).hardlink_to(self.dir / "x")
                error = self.run_mllmsim(*command, name, code=2)
                self.assertIn(name, error)
                self.assertLess(error.count("\n"), 3)

    def test_times_that_no_clock_holds(self):
        reason = "a step would take longer than 292 years"
        for run, change in (("vit-22b-gpt-175b-h100x3072", "cluster.nic_bandwidth=1 b/s"),
                            (RUN, "software.host_time_per_kernel=1000000 s")):
            self.assertRegex(self.run_mllmsim("run", run, change, code=2), rf"error: .*{pathlib.Path(run).stem}\.toml: {reason}")
        for part in ("gemm", "attention", "memory_bound", "collectives"):
            for factor in ("1e12", "1e300"):
                with self.subTest(part=part, factor=factor):
                    self.run_mllmsim("calibrate", "scale", str(CALIBRATION), f"--{part}", factor, "--out", "big.json")
                    error = self.run_mllmsim("run", RUN, "calibration=" + str(self.dir / "big.json"), code=2)
                    self.assertIn(reason, error)
        self.assertFalse((self.dir / "results").exists())

    def test_one_absurd_point_of_a_sweep_is_a_row_with_its_reason(self):
        self.run_mllmsim("sweep", RUN, "--vary", "software.host_time_per_kernel=8 us,1000000 s", "--out", "swept")
        rows = pandas.read_parquet(self.dir / "swept/runs.parquet")
        self.assertEqual(list(rows["fits"]), [True, False])
        self.assertIn("longer than 292 years", rows.loc[1, "reason"])

    def test_merging_what_no_sweep_wrote(self):
        self.run_mllmsim(*SWEEP)
        runs, stages = self.dir / "swept/runs.parquet", self.dir / "swept/stages.parquet"
        good = {f: f.read_bytes() for f in (runs, stages)}
        for points in (b"", b"x", b"-1", b"1", b"9" * 30):
            with self.subTest(points=points):
                self.change(runs, metadata={b"points": points})
                self.assertIn("swept: is not the result of a sweep", self.run_mllmsim("merge", "swept", "--out", "m", code=2))
        for point in (-1, 2, 1 << 62):
            with self.subTest(point=point):
                runs.write_bytes(good[runs])
                self.change(stages, "point", point)
                self.assertIn("swept: has stages of", self.run_mllmsim("merge", "swept", "--out", "m", code=2))
                self.change(runs, "point", point)
                self.assertIn("swept: is not", self.run_mllmsim("merge", "swept", "--out", "m", code=2))
        self.assertFalse((self.dir / "m").exists())

    def test_drawing_what_is_not_a_number(self):
        self.run_mllmsim("run", RUN, "--out", "ran")
        self.change(self.dir / "ran/stages.parquet", "bubble_pp_warmup_s", math.inf)
        for command in (["plot", "bubbles", "ran"], ["report", "ran"]):
            self.assertIn("a value of the table is infinite or not a number", self.run_mllmsim(*command, code=2))
        self.run_mllmsim(*SWEEP)
        self.change(self.dir / "swept/runs.parquet", "gpu_days", math.nan)
        self.assertIn("nothing to draw", self.run_mllmsim("plot", "sweep", "swept", code=2))
        self.change(self.dir / "swept/runs.parquet", "gpu_days", -1.0)
        self.assertIn("nothing to draw", self.run_mllmsim("plot", "speedup", "swept", code=2))


if __name__ == "__main__":
    unittest.main()
