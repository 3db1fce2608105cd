"""A Slurm of its own on this machine: munged, slurmctld and slurmd with their own ports, keys and directory, started and
stopped by the test that needs them, also if that is killed. Works as root or not, without systemd, cgroups or a resolvable host name."""

import getpass
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

CONFIG = """
ClusterName=mllmsim-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
CredType=cred/munge
# A requeued task may start again after cred_expire seconds.
AuthInfo=socket={dir}/munge.socket,cred_expire=3
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=3
InactiveLimit=0
SchedulerParameters=sched_interval=2,batch_sched_delay=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=short Nodes=node1 Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise RuntimeError(f"the Slurm test needs {name}: apt-get install slurm-wlm munge (./test.sh does)")
    return found


# Runs the daemons for the test, and outlives it: when the pipe from the test closes, because it is done or because it was
# killed, whatever the daemons started ends too and the directory goes.
GUARD = """
import ctypes, json, os, pathlib, shutil, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what daemons leave behind becomes ours
daemons = []
for line in sys.stdin:
    command, output, environment = json.loads(line)
    with open(output, "w") as out:
        daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True))
def children():
    return [int(c) for c in pathlib.Path("/proc/self/task", str(os.getpid()), "children").read_text().split()]
for daemon in reversed(daemons):
    daemon.terminate()
for daemon in daemons:
    try:
        daemon.wait(timeout=10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
end = time.monotonic() + 10
while time.monotonic() < end and (left := children()):
    for child in left:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


class PrivateSlurm:
    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        self.guard = subprocess.Popen([sys.executable, "-c", GUARD, str(self.dir)], stdin=subprocess.PIPE, text=True,
                                      start_new_session=True)
        try:
            self.dir.chmod(0o755)
            for name in ["state", "spool"]:
                (self.dir / name).mkdir()
            key = self.dir / "munge.key"
            key.write_bytes(os.urandom(128))
            key.chmod(0o400)
            self.config = self.dir / "slurm.conf"
            self.config.write_text(CONFIG.format(host=socket.gethostname().split(".")[0], user=getpass.getuser(), dir=self.dir,
                                                 controller_port=free_port(), node_port=free_port()))
            # Without a mounted /sys/fs/cgroup slurmd would not find out which cgroups there are; it uses none of them.
            (self.dir / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={self.dir}/spool\n")
            self.environment = dict(os.environ) | {"SLURM_CONF": str(self.config)}
            self.start("munged", "--foreground", "--force", "--num-threads=1", f"--key-file={key}", f"--socket={self.dir}/munge.socket",
                       f"--pid-file={self.dir}/munge.pid", f"--log-file={self.dir}/munge.log", f"--seed-file={self.dir}/munge.seed")
            self.until(lambda: (self.dir / "munge.socket").exists(), "munged did not start")
            self.start("slurmctld", "-D", "-f", self.config)
            self.start("slurmd", "-D", "-f", self.config, "-N", "node1")
            self.until(lambda: self.ask("sinfo", "-h", "-o", "%T").strip() == "idle", "the node did not come up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.guard.stdin.close()
        self.guard.wait()

    def start(self, name, *arguments):
        command = [program(name), *map(str, arguments)]
        self.guard.stdin.write(json.dumps([command, str(self.dir / f"{name}.out"), dict(self.environment)]) + "\n")
        self.guard.stdin.flush()

    def ask(self, *command):
        done = subprocess.run([program(command[0]), *map(str, command[1:])], env=self.environment, capture_output=True, text=True)
        return done.stdout

    def until(self, holds, otherwise, seconds=90):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                logs = "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in sorted(self.dir.glob("*.[lo][ou][gt]")))
                raise RuntimeError(f"{otherwise}\n{logs}")
            time.sleep(0.1)
