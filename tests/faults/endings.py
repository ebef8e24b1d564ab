"""Runs that wait in a job until somebody lets them go on: what a signal does then rests on no time."""

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from workplace import TINY, Workplace

#: Seconds in which a run that does not hang has come as far as a test waits for, on any machine.
PATIENCE = 300
#: Seconds after the end of a run at which none of its processes may be alive.
AFTER = 2.0
#: Mark of all processes of a run: an environment variable.
MARK = "UNLEARNING_TEST"

#: Data whose job waits until the file ``go`` is there; the file ``waiting`` says which process it is.
WAITS = """
import os, time
from pathlib import Path
import numpy as np
from unlearning_audit.data import Source
from unlearning_audit.plugins.settings import Settings

class Options(Settings):
    pass

def load(options, root):
    while not Path(FOLDER, "go").exists():
        Path(FOLDER, "new").write_text(str(os.getppid()))
        Path(FOLDER, "new").rename(Path(FOLDER, "waiting"))
        time.sleep(0.05)
    x = np.random.default_rng(0).normal(size=(340, 8)).astype(np.float32)
    return Source(x, (x[:, 0] > 0).astype(np.int64), (np.arange(340) >= 240).astype(np.uint8), 2)
"""


def alive(mark: str) -> list[int]:
    """Processes of a run that still are, zombies excepted."""
    processes = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            belongs = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if belongs and state not in "ZX":
            processes.append(int(folder.name))
    return processes


def left(mark: str) -> list[str]:
    """What `AFTER` seconds after a run's end is still alive: its command; it is killed then."""
    end = time.monotonic() + AFTER
    while (processes := alive(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    commands = []
    for process in processes:
        try:
            commands.append(Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")[:200])
            os.kill(process, signal.SIGKILL)
        except OSError:
            continue
    return commands


class Waiting:
    """A run in ``place`` whose first job waits; ``command`` is audit's or Snakemake's own."""

    def __init__(self, place: Workplace, command: list[str], **environment: str) -> None:
        self.place, self.mark = place, secrets.token_hex(8)
        place.folder.joinpath("waits.py").write_text(WAITS.replace("FOLDER", repr(str(place.folder))))
        place.folder.joinpath("waiting").unlink(missing_ok=True)
        place.write({**TINY, "defaults": {**TINY["defaults"], "data": {"name": "mine", "file": "waits.py"}}})
        self.process = subprocess.Popen(
            command, env={**place.environment, **environment, MARK: self.mark}, cwd=place.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_as_in_a_terminal,
        )  # fmt: skip

    def waits(self) -> "Waiting":
        """Wait until the job does."""
        last = time.monotonic() + PATIENCE
        while not self.place.folder.joinpath("waiting").exists():
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < last, "no job has started"
            time.sleep(0.05)
        return self

    def send(self, number: int, everybody: bool) -> "Waiting":
        """A signal to the process that was started, or to all that belong to it, as a terminal sends it."""
        (os.killpg if everybody else os.kill)(self.process.pid, number)
        return self

    def job(self) -> int:
        """The process of the job."""
        return int(self.place.folder.joinpath("waiting").read_text())

    def unread(self) -> "Waiting":
        """Read what was said, and leave: the run writes on, and nobody reads."""
        select.select([self.process.stdout], [], [], PATIENCE)
        os.read(self.process.stdout.fileno(), 1 << 16)
        self.process.stdout.close()
        self.process.stdout = open(os.devnull)  # noqa: SIM115 (closed with the process)
        return self

    def end(self) -> tuple[int, str]:
        """The exit status and what was said since; nobody is left."""
        try:
            output = self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"the run hangs: {self.process.communicate()[0][-2000:]}") from None
        assert left(self.mark) == []
        return self.process.returncode, output


def audit() -> list[str]:
    """The command, with what a user types."""
    return [sys.executable, "-m", "unlearning_audit.command", "run", "study.yaml", "--cores", "2"]


def _as_in_a_terminal() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
