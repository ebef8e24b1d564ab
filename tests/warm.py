"""Snakemake without the second that importing it takes: runs as forks of a process that has imported it, and what it
imports later for itself, so that each begins where ``python -m snakemake`` is after its first line; and without the two
seconds that a warm process for its jobs takes: runs share one."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from unlearning_audit.study.schema import DISPLAYS, STAGES
from unlearning_audit.workflow import jobs, warm

#: What the process does: it imports what ``python -m snakemake`` imports before it reads its arguments and, of others'
#: modules, while it reads a workflow; then it forks for each request, and sends the status back. It ends with the one
#: that asks.
SERVER = """
import json, os, runpy, signal, socket, sys
import snakemake.cli, snakemake.profiles, snakemake.report.html_reporter, snakemake.storage, smart_open, yte

snakemake.cli.get_argument_parser()  # which lists the plug-ins that are installed
asking = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, handles, _, _ = socket.recv_fds(asking, 1 << 20, 1)
    if not text:
        break
    wanted = json.loads(text)
    child = os.fork()
    if not child:
        asking.close()
        for number in (1, 2):
            os.dup2(handles[0], number)
        os.close(handles[0])
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        sys.argv = ["snakemake", *wanted["arguments"]]
        sys.path[0] = wanted["folder"]
        runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
        sys.exit()
    os.close(handles[0])
    asking.sendall(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]).to_bytes(4, "big", signed=True))
"""

#: Variables that Python or a library reads when it is imported: with others, a process of its own is started.
EARLY = ("PYTHON", "LC_", "LANG", "OMP_", "XDG_", "TZ", "UNLEARNING_WARM", "LD_")

#: What jobs import later.
LATER = ("matplotlib.backends.backend_svg", "transformers.models.gpt2.modeling_gpt2")

_warm: dict[str, socket.socket] = {}
_servers: dict[Path, str] = {}


def server(scripts: Path) -> str:
    """The name of a warm process (`unlearning_audit.workflow.warm`) that has imported what ``scripts`` import, for all
    runs of this process to share. It ends with it."""
    if scripts not in _servers:
        files = [scripts / "library.py", *map(jobs.file_of, (*STAGES, *DISPLAYS, "report", "failures"))]
        _servers[scripts] = warm.start(["numpy", "snakemake.script", *map(str, files), *LATER])
    return _servers[scripts]


def run(arguments: list[str], environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess:
    """``python -m snakemake`` with ``arguments``, to its end; ``stdout`` holds all it says."""
    early = json.dumps(sorted((name, value) for name, value in environment.items() if name.startswith(EARLY)))
    if early not in _warm:
        _warm[early] = _start(environment)
    with os.fdopen(os.memfd_create("said"), "r", encoding="utf-8") as output:
        request = {"arguments": arguments, "environment": environment, "folder": str(folder)}
        socket.send_fds(_warm[early], [json.dumps(request).encode()], [output.fileno()])
        code = int.from_bytes(_warm[early].recv(4), "big", signed=True)
        output.seek(0)
        return subprocess.CompletedProcess([sys.executable, "-m", "snakemake", *arguments], code, output.read(), None)


def _start(environment: dict[str, str]) -> socket.socket:
    parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with child:
        subprocess.Popen(
            [sys.executable, "-c", SERVER, str(child.fileno())], env=environment, pass_fds=[child.fileno()],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    return parent
