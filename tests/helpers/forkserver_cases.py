"""Runs with a fork server, for the tests of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from unlearning_audit.workflow import forkserver

#: Of tests that need a server.
on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has the server: elsewhere forks are not safe, and jobs start as ever"
)

#: A process that starts a server as a run does, and waits until all is imported.
RUN = f"""
import json, os, sys, time
sys.path.append({str(forkserver.SCRIPTS)!r})
from types import SimpleNamespace
from snakemake.script import PythonScript
from unlearning_audit.workflow import forkserver, snakemake_changes

def script(name, **changed):
    plain = dict.fromkeys(("conda_env", "container_img", "env_modules", "shadow_dir", "bench_record"))
    plain |= {{"threads": 1, "resources": {{}}, "params": {{}}, "log": ()}}
    PythonScript.execute_script(SimpleNamespace(**{{**plain, **changed}}), name)

BEFORE
folder = forkserver.start()
forkserver.announce(folder, KINDS)
snakemake_changes.run_scripts_in_forks(folder)
for name, module in READY:
    with open(name, "w") as file:
        file.write("import sys; sys.exit(" + repr(module) + " not in sys.modules)")
    while True:
        try:
            script(name)
            break
        except Exception:
            time.sleep(0.05)
print(forkserver._server.pid, flush=True)
"""
LIGHT = [("ready.py", "unlearning_audit.adversary.scoring")]
READY = [*LIGHT, ("ready.train.py", "unlearning_audit.workflow.open_bank")]

#: What a run with one server does that many tests use: it is told where and what, line by line.
FURTHER = """
for line in sys.stdin:
    folder, told = json.loads(line)
    os.chdir(folder)
    exec(told)
    print("done", flush=True)
"""


def program(code: str, ready=READY, kinds: tuple | None = (), before: str = "") -> str:
    """A run that does what it is told once its server is ready; ``before``: what it does before that is started;
    ``kinds``: of which other servers it announces jobs, None for a run without models."""
    announced = () if kinds is None else ("models", *kinds)
    parts = {"BEFORE": before, "KINDS": repr(announced), "READY": repr(ready)}
    text = RUN
    for name, value in parts.items():
        text = text.replace(name, value)
    return text + code


def printed_lines(folder: Path, code: str) -> list[str]:
    """The lines that a program says after its server's number."""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, text=True, env=environment(), capture_output=True, check=True
    )
    return run.stdout.splitlines()[1:]


class Run:
    """A run in ``folder``: ``code`` is what it does once its server is ready."""

    def __init__(self, folder: Path, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program(code)], cwd=folder, text=True, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.server = int(self.process.stdout.readline())

    def ended(self) -> tuple[str, str]:
        """What it said until its end, and of what it complained."""
        out, err = self.process.stdout.read(), self.process.stderr.read()
        self.process.wait()
        return out, err


class Shared:
    """A run that does one thing after another; its temporary files lie in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.complaints, self.position = folder / "complaints", 0
        settings = {**environment(), "TMPDIR": str(folder)}
        with self.complaints.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program(FURTHER)], cwd=folder, text=True, env=settings,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
            )  # fmt: skip
        self.server = int(self.process.stdout.readline())

    def begin(self, folder: Path, code: str) -> None:
        """Have it do something in a folder."""
        print(json.dumps([str(folder), code]), file=self.process.stdin, flush=True)

    def ended(self) -> tuple[str, str]:
        """What it said until it had done that, and of what it complained since the last time."""
        out = ""
        while not out.endswith("done\n"):
            out += self.process.stdout.readline()
            assert out.endswith("\n"), f"the run has ended: {self.complaints.read_text()}"
        return out.removesuffix("done\n"), self.complained()

    def does(self, folder: Path, code: str) -> tuple[str, str]:
        self.begin(folder, code)
        return self.ended()

    def complained(self) -> str:
        new = self.complaints.read_text()[self.position :]
        self.position += len(new)
        return new


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != forkserver.SWITCH}
