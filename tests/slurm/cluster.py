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
#: Seconds until something that a healthy cluster does at once counts as never. Where twenty processes share a core,
#: half a minute of its time takes ten.
PATIENCE = 900

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
# By default a node that is silent for five minutes is down, and its jobs are given up; a busy machine is no such node.
SlurmdTimeout=3600
MessageTimeout=90
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
        self.start_node()
        self.until(self.node_is_idle, "the node is idle")

    def start_controller(self) -> None:
        """Start slurmctld where it was stopped, with the jobs it knew."""
        self._launch("slurmctld", "-D")
        self.until(lambda: "UP" in self.call("scontrol", "ping", check=False), "the controller answers")

    def start_node(self) -> None:
        """Start slurmd, which knows of no job but by the steps that it finds."""
        self._launch("slurmd", "-D", "-N", self.host)

    def write_down(self, job: str) -> None:
        """Have slurmctld save its state, as it does some seconds after every change: here of a comment on a job."""
        saved, now = self.root / "state/job_state", time.time()

        def is_saved() -> bool:
            self.call("scontrol", "update", f"JobId={job}", "AdminComment=written")
            return saved.exists() and saved.stat().st_mtime > now

        self.until(is_saved, "the controller has taken notes")

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
        variables = {name: value for name, value in place.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
        return subprocess.Popen(command, env={**variables, **self.environment}, cwd=place.folder, **how)

    def call(self, *command: str, check: bool = True) -> str:
        """What a command says on its standard output. Fails the test if it fails and ``check``."""
        environment = {**os.environ, **self.environment}
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert process.returncode == 0 or not check, process.stderr + self.logs()
        return process.stdout

    def jobs(self) -> list[dict[str, str]]:
        """All jobs since the start, oldest first, by the fields of ``scontrol show job``."""
        lines = self.call("scontrol", "show", "job", "--oneliner", "--details", check=False).splitlines()
        jobs = [dict(re.findall(r"(\w+(?:/\w+)?)=(\S*)", line)) for line in lines if "JobId=" in line]
        return sorted(jobs, key=lambda job: int(job["JobId"]))

    def devices(self) -> dict[str, str]:
        """Job → CUDA_VISIBLE_DEVICES as its tasks found it, "" if there was none."""
        return dict(line.partition(" ")[::2] for line in (self.root / "devices").read_text().splitlines())

    def steps(self, job: str) -> list[str]:
        """What is left of a job's steps on the node: sockets by which slurmd knows them, and their processes.

        While slurmd knows one, it refuses to start the job again and the controller drains the node.
        """
        sockets = [path.name for path in (self.root / "spool").glob(f"*_{job}.*")]
        search = subprocess.run(
            ["pgrep", "-f", rf"^slurmstepd: \[{job}\."], capture_output=True, text=True, check=False
        )
        assert search.returncode in (0, 1), search.stderr  # 1: no process
        return sockets + search.stdout.split()

    def take_node_down(self, job: str) -> None:
        """Take the node away from a running job, which then waits in the queue; held, for see `bring_node_back`."""
        self.call("scontrol", "update", f"NodeName={self.host}", "State=DOWN", "Reason=test")
        self.until(lambda: self.state(job)[0] == "PENDING", "the job has lost its node")
        self.call("scontrol", "hold", job)

    def bring_node_back(self, job: str) -> None:
        """Start the node anew and let a held job run there again.

        slurmd remembers a job until it has cleared up after it, seconds after the last step has ended, and refuses to
        start it again meanwhile; the controller, which forgets the steps of a node that is down, then drains the node.
        So slurmd is started anew, as when a node comes back, and the job is let go when controller and node agree that
        the node is idle: "IDLE" without a flag or a star is said only of a node that has answered since.
        """
        self.until(lambda: not self.steps(job), "the node has ended what was left of the job")
        self.daemons["slurmd"].kill()
        self.daemons["slurmd"].wait()
        self.start_node()
        self.call("scontrol", "update", f"NodeName={self.host}", "State=RESUME")
        self.until(lambda: self.node_is_idle() and not self.steps(job), "the node is idle")
        self.call("scontrol", "release", job)

    def node_is_idle(self) -> bool:
        """Whether the node answers, nothing runs or ends there, and the controller knows of no step."""
        description = self.call("scontrol", "show", "node", self.host, "--oneliner", check=False)
        steps = self.call("scontrol", "show", "step", "--oneliner", check=False)
        return re.findall(r"\bState=(\S+)", description) == ["IDLE"] and "StepId=" not in steps

    def job(self, number: str) -> dict[str, str]:
        """What the controller says of a job, by the fields of ``scontrol show job``."""
        (job,) = (job for job in self.jobs() if job["JobId"] == number)
        return job

    def state(self, number: str) -> tuple[str, str]:
        """(state, restarts) of a job."""
        job = self.job(number)
        return job["JobState"], job["Restarts"]

    def until(self, condition, event: str, seconds: float = PATIENCE) -> None:
        """Wait for something to come true; fail the test if it does not."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"it never came to pass that {event}\n{self.logs()}"
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
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
