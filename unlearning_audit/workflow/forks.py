"""The processes of the fork server (`workflow.forkserver`): servers that import, and the forks that run jobs."""

import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from unlearning_audit.plugins import registry, source
from unlearning_audit.plugins.isolation import end_with_parent

#: Slow to import, and needed by several servers; imported before serving, because data jobs need most of it.
FIRST = ("numpy", "scipy.special", "scipy.optimize", "pydantic", "snakemake.script")

#: Servers by the doors at which they are asked: the one that forks a server, and what this one imports besides. Each
#: is forked by one that has most of what it needs; no job asks at the door "compiler". Each fork copies the page tables
#: of its server, so a server has only what most of its jobs need. In seconds of a processor, a job is spared 1.8 by
#: "models", 3.4 more by "text", 2.1 by "vision", 1.5 by "privacy", 1.6 by "art" and .5 by "drawings", in the default
#: study of some 360 all in all 340, 75, 0, 72, 8 and 12. rouge_score (1.5) is needed by few and long jobs.
SERVERS = {
    "numbers": ("", ("pyarrow.parquet", "pyarrow.compute")),
    "drawings": (
        "numbers",
        ("matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_agg",
         "matplotlib.backends.backend_svg"),
    ),
    "models": ("numbers", ("torch", "torch.func", "safetensors.torch")),
    "compiler": ("models", ("torch._dynamo",)),  # takes most of importing the next three
    "vision": ("compiler", ("torchvision.models",)),
    "text": ("vision", ("transformers.modeling_utils", "transformers.models.gpt2.modeling_gpt2")),
    "privacy": ("compiler", ("unlearning_audit.bank.private",)),
    "art": (
        "models",
        ("pyarrow.parquet", "attack", "art.attacks.inference.membership_inference", "art.estimators.classification"),
    ),
}  # fmt: skip

#: Scripts that draw.
DRAWING = ("collect", "figures", "meta", "verdicts")

#: Stages whose jobs hold models, and take a card where there is one.
ON_CARDS = ("pretrain", "train", "tune", "unlearn", "signals")

#: Scripts that import torch.
WITH_MODELS = (*ON_CARDS, "forecast")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

#: Exit status after SIGINT, as shells have it.
INTERRUPTED = 130

SCRIPTS = source.SCRIPTS


def serve(doors: dict[str, int], folder: str) -> None:
    """Serve at ``doors``, file descriptors of sockets, until standard input is closed. Removes ``folder``.

    Of the library, servers import what the scripts import; scripts and plug-ins are read when a job starts.
    """
    end_with_parent()
    gc.disable()  # looking for garbage among what is imported, which stays, would take a third of all importing
    path = sys.path[3:]  # without the current folder, the scripts and the library, which each job finds anew
    for number in SIGNALS:  # signals are for the jobs; finished forks are reaped automatically
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for module in FIRST:
        _take(module)
    try:
        Server("numbers", {name: socket.socket(fileno=handle) for name, handle in doors.items()}, path).serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """One server: forks for each request at its own of ``doors``, and hands the others to further servers."""

    def __init__(self, name: str, doors: dict[str, socket.socket], path: list[str]) -> None:
        self.name, self.doors, self.path = name, doors, path

    def serve(self) -> None:
        """Import what jobs need, and serve until standard input is closed."""
        scripts = [file.stem for file in SCRIPTS.glob("*.py")]
        light = [name for name in scripts if name not in WITH_MODELS + DRAWING]
        modules = {"numbers": light, "drawings": DRAWING, "models": WITH_MODELS}
        for module in (*SERVERS[self.name][1], *modules.get(self.name, ())):
            _take(module)
            for script in scripts:
                sys.modules.pop(script, None)  # a job reads its own
            # A job that comes to these two meanwhile imports what it lacks; those of the others wait. The second is
            # begun at once, to import beside the first.
            if self.name in ("numbers", "models") and not self.answer({self.name, "models"}, 0):
                return
        if self.name == "numbers":
            _read_quantities()
        self.answer(SERVERS, None)

    def answer(self, names: Collection[str], seconds: float | None) -> bool:
        """Fork for each request that waits at these doors or comes within so many seconds (None: for ever). Returns
        whether the run goes on."""
        while ready := select.select([sys.stdin, *self.left(names).values()], [], [], seconds)[0]:
            if sys.stdin in ready:
                return False
            for name in [name for name, listening in self.left(names).items() if listening in ready]:
                if name == self.name:
                    self.fork()
                elif name in self.doors:
                    self.begin(next(server for server in line(name) if SERVERS[server][0] == self.name), name)
        return True

    def left(self, names: Collection[str]) -> dict[str, socket.socket]:
        """Those of the doors that were not handed to other servers."""
        return {name: self.doors[name] for name in names if name in self.doors}

    def fork(self) -> None:
        """Accept a request, and answer it in a fork; an announcement needs none."""
        client, _ = self.doors[self.name].accept()
        if not _is_closed(client) and _forked(client) == 0:
            self.close(self.doors)
            _run(client, self.path)
        client.close()

    def begin(self, name: str, door: str) -> None:
        """Fork a server, which takes its own door over, and those of the servers that it forks; somebody asked at one
        of these, ``door``."""
        handed = {door for door in self.doors if name in line(door)}
        child = _forked(self.doors[door])
        if child is None:
            return
        if child == 0:
            end_with_parent()
            try:
                self.close(self.doors.keys() - handed)
                Server(name, self.doors, self.path).serve()
            finally:
                os._exit(0)
        self.close(handed)

    def close(self, names: Collection[str]) -> None:
        """Leave doors to others."""
        for name in list(names):
            self.doors.pop(name).close()


def line(name: str) -> Iterator[str]:
    """A server, and those that it is forked from, up to the first."""
    while name:
        yield name
        name = SERVERS[name][0]


def _forked(door_or_client: socket.socket) -> int | None:
    """What os.fork returns; None where the system has no process to give. The job then fails, and no other: that of a
    client, or whose request waits at a door."""
    try:
        return os.fork()
    except OSError as error:
        why = f"the system has no process left for a job ({error.strerror})"
        print(f"\n{why}; run again with fewer --cores\n", file=sys.stderr, flush=True)
    with suppress(OSError):
        is_door = door_or_client.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        client = door_or_client.accept()[0] if is_door else door_or_client
        client.sendall(b"\1")
        client.close()
    return None


def _is_closed(client: socket.socket) -> bool:
    """Whether who asked has closed the connection without a word."""
    try:
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _take(module: str) -> None:
    with suppress(Exception):  # a job that needs it fails with its own error
        import_module(module)


def _read_quantities() -> None:
    """Read what metrics declare, which every job that displays needs; a fork reads again what was edited since."""
    for name in registry.names("metrics"):
        with suppress(Exception):  # a job that needs it fails with its own error
            registry.quantities(name)


def _run(client: socket.socket, path: list[str]) -> None:
    """In the fork: take over the environment of the requesting process, run its script, send the exit status."""
    end_with_parent()
    gc.freeze()  # only what the job makes is looked at
    gc.enable()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: _interrupted(client))
    code = 1
    try:
        head, outputs, _, _ = socket.recv_fds(client, 8, 2)
        for number, handle in enumerate(outputs, 1):
            os.dup2(handle, number)
            os.close(handle)
        size, text = int.from_bytes(head, "big"), b""
        while len(text) < size and (part := client.recv(1 << 16)):
            text += part
        if not text or len(text) < size:  # the requesting process has ended
            sys.exit(1)
        request = json.loads(text)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # standard input of the server signals the end of the run
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        script = request["arguments"][0]
        sys.argv, sys.path[:] = request["arguments"], [str(Path(script).parent), *path]
        tempfile.tempdir = None  # that of the job's environment
        for library, generator in (("numpy", "random"), ("torch", "default_generator")):
            if library in sys.modules:
                getattr(sys.modules[library], generator).seed()  # else forks draw the same numbers
        threading.Thread(target=_end_with, args=(client,), daemon=True).start()
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            client.sendall(bytes([code & 255]))
        os._exit(code & 255)


def _interrupted(client: socket.socket) -> None:
    """End by SIGINT, wherever this process is, without the traceback of a KeyboardInterrupt."""
    with suppress(OSError):
        client.sendall(bytes([INTERRUPTED]))
    os._exit(INTERRUPTED)


def _end_with(client: socket.socket) -> None:
    """Kill this process when the requesting one ends."""
    if not client.recv(1):
        os.kill(os.getpid(), signal.SIGKILL)
