"""A SLURM of one's own: one node, two pretended GPUs, a partition of either kind, daemons that end with the tests."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from workplace import Workplace

GPUS = 2
#: Seconds between looks at the queue; jobs here take less, and the files of this machine are seen at once.
IMPATIENT = ("--slurm-init-seconds-before-status-checks", "10", "--latency-wait", "5")
#: Seconds until something that a healthy cluster does at once counts as never.
PATIENCE = 180

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A job that is requeued waits until credentials of its first run have expired; by default for two minutes.
AuthInfo=socket={root}/munge.socket,cred_expire=5
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
TaskProlog={root}/prolog
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=1
KillWait=1
MinJobAge=3600
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES State=UP
PartitionName=gpu Nodes={host} State=UP
"""


def missing() -> list[str]:
    """The programs of SLURM that this machine lacks."""
    return [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sacct") if _program(name) is None]


def _program(name: str) -> str | None:
    """Daemons lie where only root looks."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


@dataclass
class Cluster:
    """The cluster and its daemons. Its files lie in ``root``, whose path is short: sockets have 108 characters."""

    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp")))
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return socket.gethostname().split(".")[0]

    @property
    def environment(self) -> dict[str, str]:
        """What makes sbatch, squeue and Snakemake talk to this cluster."""
        return {"SLURM_CONF": f"{self.root}/slurm.conf", "PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def start(self) -> None:
        """Configure it, start its daemons and wait until it takes jobs."""
        for name in ("state", "spool", "dev", "bin"):
            (self.root / name).mkdir()
        for index in range(GPUS):  # SLURM asks for a character device, and takes the number for CUDA_VISIBLE_DEVICES
            (self.root / f"dev/nvidia{index}").symlink_to("/dev/null")
        (self.root / "munge.key").write_bytes(os.urandom(1024))
        (self.root / "munge.key").chmod(0o400)
        devices = f"{self.root}/dev/nvidia[0-{GPUS - 1}]"
        (self.root / "gres.conf").write_text(f"NodeName={self.host} Name=gpu File={devices}\n")
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.root / "slurm.conf").write_text(
            CONFIGURATION.format(
                root=self.root, host=self.host, gpus=GPUS, user=pwd.getpwuid(os.getuid()).pw_name,
                controller_port=_free_port(), node_port=_free_port(),
            )
        )  # fmt: skip
        _executable(self.root / "prolog", f'echo "$SLURM_JOB_ID $CUDA_VISIBLE_DEVICES" >> {self.root}/devices')
        # Snakemake starts srun without any variable of SLURM's, so that it would look for the machine's own cluster.
        _executable(self.root / "bin/srun", f'SLURM_CONF={self.root}/slurm.conf exec {_program("srun")} "$@"')
        paths = [f"--{kind}-file={self.root}/munge.{kind}" for kind in ("key", "seed")]
        paths += [f"--{kind}-file={self.root}/munged.{kind}" for kind in ("pid", "log")]
        self._launch("munged", "--foreground", "--force", f"--socket={self.root}/munge.socket", *paths)
        self.until(lambda: (self.root / "munge.socket").exists(), "munge answers")
        self.start_controller()
        self._launch("slurmd", "-D", "-N", self.host)
        self.until(lambda: "idle" in self.call("sinfo", "-h", "-o", "%T", check=False), "the node is idle")

    def start_controller(self) -> None:
        """Start slurmctld where it was stopped, with the jobs it knew."""
        self._launch("slurmctld", "-D")
        self.until(lambda: "UP" in self.call("scontrol", "ping", check=False), "the controller answers")

    def kill_controller(self) -> None:
        """End slurmctld as a crash does."""
        self.daemons["slurmctld"].kill()
        self.daemons["slurmctld"].wait()

    def stop(self) -> None:
        """End all jobs, then all daemons that were started here, and remove the files."""
        if self.daemons.get("slurmctld") and self.daemons["slurmctld"].poll() is None:
            self.call("scancel", *self.call("squeue", "-h", "-o", "%A", check=False).split(), check=False)
            self.until(lambda: not self.call("squeue", "-h", check=False), "all jobs have ended")
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            daemon.wait(PATIENCE)
        shutil.rmtree(self.root)

    def submit(self, place: Workplace, **how) -> subprocess.Popen:
        """Start Snakemake by the shipped profile, as a user of the cluster starts it; ``how`` as Popen takes it."""
        command = [part for part in place.command() if part not in ("--cores", "2")]
        command += ["--workflow-profile", str(place.tree / "profiles/slurm"), *IMPATIENT]
        kept = {name: value for name, value in place.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
        return subprocess.Popen(command, env={**kept, **self.environment}, cwd=place.folder, **how)

    def call(self, *command: str, check: bool = True) -> str:
        """What a command says on its standard output. Fails the test if it fails and ``check``."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, done.stderr + self.logs()
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """All jobs since the start, oldest first, by the fields of ``scontrol show job``."""
        lines = self.call("scontrol", "show", "job", "--oneliner", "--details", check=False).splitlines()
        found = [dict(re.findall(r"(\w+(?:/\w+)?)=(\S*)", line)) for line in lines if "JobId=" in line]
        return sorted(found, key=lambda job: int(job["JobId"]))

    def devices(self) -> dict[str, str]:
        """Job → CUDA_VISIBLE_DEVICES as its tasks found it, "" if there was none."""
        return dict(line.partition(" ")[::2] for line in (self.root / "devices").read_text().splitlines())

    def steps(self, job: str) -> list[str]:
        """Numbers of the processes by which the node watches over a job's steps. While one lives, SLURM refuses to
        start the job there again, and drains the node."""
        found = subprocess.run(["pgrep", "-f", rf"^slurmstepd: \[{job}\."], capture_output=True, text=True, check=False)
        return found.stdout.split()

    def until(self, condition, what: str, seconds: float = PATIENCE) -> None:
        """Wait for something to come true; fail the test if it does not."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"it never came to pass that {what}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        """The last lines of every daemon's log."""
        logs = sorted(self.root.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)

    def _launch(self, name: str, *arguments: str) -> None:
        null, environment = subprocess.DEVNULL, {**os.environ, **self.environment}
        self.daemons[name] = subprocess.Popen(
            [_program(name), *arguments], env=environment, stdout=null, stderr=null, start_new_session=True
        )


def _executable(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
