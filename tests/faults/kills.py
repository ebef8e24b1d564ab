"""Ends runs of the tiny study in every way there is; the next run must end with the same bytes, and nobody lives on.

Ends follow each other in one folder until a run reaches its end; then what it made is compared with what an undisturbed
run makes, and the folder is emptied. So the moments are spread over the whole run, and a difference is told by the try
that finds it.
"""

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from workplace import Workplace

#: Seconds until a run that was asked to stop counts as hanging.
PATIENCE = 600
#: Seconds after the end of a run at which none of its processes may be alive.
AFTER = 2.0
#: Mark of all processes of a run: an environment variable.
MARK = "UNLEARNING_CAMPAIGN"


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


def _group(run: subprocess.Popen, number: int) -> None:
    os.killpg(run.pid, number)


def _stop(run: subprocess.Popen, mark: str, rng: np.random.Generator) -> None:
    """Sleep for some seconds, all of it, and wake."""
    _group(run, signal.SIGSTOP)
    time.sleep(float(rng.uniform(1, 4)))
    _group(run, signal.SIGCONT)


def _job(run: subprocess.Popen, mark: str, rng: np.random.Generator) -> None:
    """One process of the run, but Snakemake itself."""
    children = [process for process in alive(mark) if process != run.pid]
    if children:
        os.kill(int(rng.choice(children)), signal.SIGKILL)


def _twice(run: subprocess.Popen, mark: str, rng: np.random.Generator) -> None:
    _group(run, signal.SIGINT)
    time.sleep(float(rng.uniform(0.05, 1)))
    _group(run, signal.SIGINT)


#: What may happen to a run.
ENDS: dict[str, Callable[[subprocess.Popen, str, np.random.Generator], None]] = {
    "SIGKILL to all": lambda run, mark, rng: _group(run, signal.SIGKILL),
    "SIGKILL to Snakemake": lambda run, mark, rng: run.kill(),
    "SIGKILL to one process": _job,
    "SIGTERM to all": lambda run, mark, rng: _group(run, signal.SIGTERM),
    "SIGTERM to Snakemake": lambda run, mark, rng: run.terminate(),
    "SIGINT to all": lambda run, mark, rng: _group(run, signal.SIGINT),
    "SIGINT twice": _twice,
    "SIGSTOP and SIGCONT": _stop,
}


def attempt(place: Workplace, whole: dict[str, bytes], rng: np.random.Generator, number: int) -> tuple[str, str]:
    """(what happened to a run, what was wrong with what came of it). ``whole``: the bytes that must come out.

    The moment is any time from the start, or after the next one to four new files.
    """
    end = list(ENDS)[number % len(ENDS)]
    mark, log = secrets.token_hex(8), place.folder / "said.txt"
    count = len(place.find("**/*"))
    with log.open("w") as file:
        run = subprocess.Popen(
            place.command("--nolock"), env={**place.environment, MARK: mark}, cwd=place.folder, stdout=file,
            stderr=file, start_new_session=True,
        )  # fmt: skip
    files = int(rng.integers(5))
    while files and run.poll() is None and len(place.find("**/*")) < count + files:
        time.sleep(0.02)
    time.sleep(float(rng.uniform(0, 0.4 if files else 3.0)))
    if run.poll() is None:
        ENDS[end](run, mark, rng)
    try:
        code = run.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _group(run, signal.SIGKILL)
        run.wait()
        return end, f"{number}: {end}: the run hangs: {log.read_text()[-600:]}"
    wrong = [f"still there: {command}" for command in left(mark)]
    text = log.read_text(errors="replace")
    if "Traceback" in text and "SIGINT" not in end:  # Python's own, where nothing had begun
        wrong.append(f"a traceback: {text[text.index('Traceback') :][:600]}")
    if code == 0:
        wrong += _differences(place.contents(), whole)
        wrong += [f"half a file: {path}" for path in place.find("**/*.part")]
        shutil.rmtree(place.folder / "results")
        shutil.rmtree(place.folder / ".snakemake")
    return end, f"{number}: {end}: {'; '.join(wrong)}" if wrong else ""


def _differences(contents: dict[str, bytes], whole: dict[str, bytes]) -> list[str]:
    names = sorted(name for name in contents.keys() | whole.keys() if contents.get(name) != whole.get(name))
    return [f"{name} differs" for name in names[:5]]
