"""Sweeps on a real Slurm that the test starts for itself: slurm_test.py MLLMSIM."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from private_slurm import PrivateSlurm

MLLMSIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "scenarios" / "runs"
BATCH = "parallelism.global_batch_size"
SHORT = [RUNS / "internvl-6b-20b-a100x32.toml", "--vary", "cluster.nodes=2,4,8", "--strategies", "balanced,baseline"]
# Some hundred points of some ten milliseconds, so that there is a middle to interrupt.
LONG = [RUNS / "given-times-1f1b.toml", "--vary", f"{BATCH}=12000..12900+6"]


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = cls.enterClassContext(PrivateSlurm())
        cls.environment = cls.slurm.environment

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)
        self.addCleanup(self.empty_queue)

    def empty_queue(self):
        self.slurm.ask("scancel", "--state=PENDING,RUNNING", "--partition=short")
        self.slurm.until(lambda: not self.slurm.ask("squeue", "-h").strip(), "jobs did not end")

    def run_mllmsim(self, *arguments, code=0):
        done = subprocess.run([MLLMSIM, *map(str, arguments)], cwd=self.dir, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def same(self, a, b):
        for table in ["runs", "stages"]:
            self.assertEqual((self.dir / a / f"{table}.parquet").read_bytes(), (self.dir / b / f"{table}.parquet").read_bytes(), table)

    def jobs(self, out):
        return (self.dir / out / "slurm/jobs").read_text().split()[:2]

    def wait_for_points(self, out, shard):
        journal = self.dir / out / f"shard-{shard}-of-2/sweep.journal"
        self.slurm.until(lambda: journal.exists() and journal.stat().st_size > 5_000, "no point was finished")

    def test_an_array_and_a_merge_give_the_bytes_of_one_sweep(self):
        done = self.run_mllmsim("sweep", *SHORT, "--out", "s", "--launch", "slurm", "--shards", 3, "--partition", "short")
        self.assertRegex(done.stderr, r"submitted Slurm jobs \d+ \(3 shards\) and \d+ \(merge\)")
        self.assertIn("6 points: 6 fit", done.stdout)
        self.run_mllmsim("sweep", *SHORT, "--out", "whole")
        self.same("s", "whole")

    def test_a_requeued_task_continues_and_the_same_command_waits_again(self):
        launch = ["sweep", *LONG, "--out", "s", "--launch", "slurm", "--shards", 2]
        self.run_mllmsim(*launch, "--detach")
        array, _ = self.jobs("s")
        self.wait_for_points("s", 1)
        self.slurm.ask("scontrol", "requeue", f"{array}_1")
        done = self.run_mllmsim(*launch)
        self.assertIn(f"found running: Slurm jobs {array} ", done.stderr)
        log = (self.dir / f"s/slurm/shard-{array}_1.log").read_text()
        self.assertRegex(log, r"[1-9]\d* of 76 points were finished before")
        self.run_mllmsim("sweep", *LONG, "--out", "whole")
        self.same("s", "whole")

    def test_a_failed_shard_is_reported_and_continued(self):
        launch = ["sweep", *LONG, "--out", "s", "--launch", "slurm", "--shards", 2]
        self.run_mllmsim(*launch, "--detach")
        array, _ = self.jobs("s")
        self.wait_for_points("s", 2)
        self.slurm.ask("scancel", f"{array}_2")
        failed = self.run_mllmsim(*launch, code=3)
        self.assertIn("shard 2 of 2 did not finish", failed.stderr)
        self.assertIn("the same command continues", failed.stderr)
        self.assertFalse((self.dir / "s/runs.parquet").exists())
        self.run_mllmsim(*launch)
        self.run_mllmsim("sweep", *LONG, "--out", "whole")
        self.same("s", "whole")

    def test_ctrl_c_leaves_the_jobs_running(self):
        launch = ["sweep", *LONG, "--out", "s", "--launch", "slurm", "--shards", 2]
        process = subprocess.Popen([MLLMSIM, *map(str, launch)], cwd=self.dir, env=self.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.wait_for_points("s", 1)
        process.send_signal(signal.SIGINT)
        self.assertIn("scancel", process.communicate()[1])
        self.assertEqual(process.returncode, 130)
        self.assertIn("another sweep", self.run_mllmsim(*launch, "seed=2", code=3).stderr)

    def test_what_slurm_refuses_is_said(self):
        error = self.run_mllmsim("sweep", *SHORT, "--launch", "slurm", "--partition", "no-such", code=3).stderr
        self.assertIn("invalid partition", error)
        self.assertIn("--launch", self.run_mllmsim("sweep", *SHORT, "--detach", code=2).stderr)
        # A scenario that is wrong is refused before it is submitted.
        self.run_mllmsim("sweep", *SHORT, "--vary", "cluster.cards=1", "--launch", "slurm", "--out", "s", code=2)
        self.assertFalse((self.dir / "s").exists())


class KilledTest(unittest.TestCase):
    SCRIPT = "import time, private_slurm\nwith private_slurm.PrivateSlurm() as slurm:\n  print(slurm.dir, flush=True)\n  time.sleep(600)"

    @staticmethod
    def processes(directory):
        """Those that have the directory on their command line."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if directory.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:  # it has gone
                pass
        return found

    def test_leaves_no_daemon_behind(self):
        for how in [signal.SIGKILL, signal.SIGTERM]:
            test = subprocess.Popen([sys.executable, "-B", "-c", self.SCRIPT], cwd=pathlib.Path(__file__).parent,
                                    stdout=subprocess.PIPE, text=True)
            directory = test.stdout.readline().strip()
            self.assertGreaterEqual(len(self.processes(directory)), 3, "munged, slurmctld, slurmd")
            test.send_signal(how)
            test.communicate()
            end = time.monotonic() + 60
            while time.monotonic() < end and (self.processes(directory) or pathlib.Path(directory).exists()):
                time.sleep(0.1)
            self.assertEqual(self.processes(directory), [], how)
            self.assertFalse(pathlib.Path(directory).exists(), how)


if __name__ == "__main__":
    unittest.main()
