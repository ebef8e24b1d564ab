"""Fork server: jobs on this machine start as copies of a process that has imported the libraries already.

Importing torch takes seconds, and most jobs of a small study take less. So a run starts a server for jobs without
models, and that forks one for jobs with models and one for each kind of job that needs more.
Snakemake asks for a fork (`workflow.snakemake_changes`), in which the job's script runs as it would in a process of its
own: same arguments, folder, environment, output and exit status. Its peak memory includes what it shares with the
server. No result depends on whether a job was forked.
"""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unlearning_audit.plugins import registry, source
from unlearning_audit.workflow import interruption
from unlearning_audit.workflow.forks import DRAWING, INTERRUPTED, SCRIPTS, SERVERS, WITH_MODELS

#: Library that a plug-in declares in LIBRARIES → the server that has it.
DOORS = {"transformers": "text", "torchvision": "vision", "art": "art"}

#: Environment variable; 0 disables the server, and the folder of servers that another process has started, of the same
#: library, lets runs share these.
SWITCH = "UNLEARNING_FORKSERVER"

#: Its value in forks.
FORKED = "forked"

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: Arrow's default allocator has a background thread, which does not survive a fork.
NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}

#: What a step of training allocates is kept for the next one, where the system would have to clear it anew (glibc).
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "30000000"}

#: File in the folder of sockets that names the scripts whose library the servers have imported.
LIBRARY = "library"

#: Name of the folders of sockets among temporary ones.
PREFIX = "unlearning-"

_server: subprocess.Popen | None = None

#: The connections of the jobs that run now.
_jobs: set[socket.socket] = set()
_lock = threading.Lock()


def door_for(script: str, settings: dict) -> str:
    """The server that has what a job needs; ``settings`` are those that its rule gives to its script."""
    if script in DRAWING:
        return "drawings"
    if script not in WITH_MODELS:
        plugins = [
            (kind, choice["name"]) for kind in ("metrics", "attacks") for choice in settings.get(kind, {}).values()
        ]
        return next((door for plugin in plugins if (door := _door_of(*plugin))), "numbers")
    default = "privacy" if settings.get("recipe", {}).get("dp") else "models"
    return _door_of("models", settings.get("model", "")) or default


def _door_of(kind: str, name: str) -> str:
    """The server that has what a plug-in of the library declares; "" without any, and for a user's own."""
    libraries = registry.declared(kind, name, None, "LIBRARIES") if name in registry.names(kind) else ()
    return next((DOORS[library] for library in libraries if library in DOORS), "")


def start() -> str | None:
    """Start the servers of this run, which end with this process; return the folder of their sockets, for `run`.

    Does nothing and returns None on systems other than Linux, where forks are not safe, where no folder can be written,
    and with UNLEARNING_FORKSERVER=0. Where that names the folder of servers, returns it.
    """
    global _server
    if sys.platform != "linux" or os.environ.get(SWITCH) == "0":
        return None
    if _shared(os.environ.get(SWITCH, "")):
        return os.environ[SWITCH]
    doors = {name: socket.socket(socket.AF_UNIX) for name in SERVERS}
    _tidy()
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX)  # accessible to this user only
        Path(folder, LIBRARY).write_text(str(SCRIPTS))
        with _short(folder) as short:
            for name, listening in doors.items():
                listening.bind(f"{short}/{name}")
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    for listening in doors.values():
        listening.listen(64)  # from now on requests are queued until the server is ready
    handles = {name: listening.fileno() for name, listening in doors.items()}
    program = f"from unlearning_audit.workflow import forks; forks.serve({handles!r}, {folder!r})"
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # servers ignore it as soon as they can
    try:
        _server = subprocess.Popen(
            [sys.executable, "-c", f"{source.FIND}{program}"],
            stdin=subprocess.PIPE, pass_fds=[*handles.values()],
            env={**os.environ, **ONE_THREAD, **NO_THREAD, **KEPT_MEMORY},
        )  # fmt: skip
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for listening in doors.values():
        listening.close()
    atexit.register(stop, folder)
    return folder


def stop(folder: str) -> None:
    """End the servers, and remove the folder of their sockets; nothing is done twice, nor to servers of others."""
    if folder == os.environ.get(SWITCH):
        return
    if _server is not None:
        _server.kill()
        _server.wait()
    shutil.rmtree(folder, ignore_errors=True)


def announce(folder: str, doors: Collection[str]) -> None:
    """Let the servers at ``doors``, of which there will be jobs (`door_for`), import before one asks."""
    for door in doors:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as server, _short(folder) as short:
            server.connect(f"{short}/{door}")


def run(folder: str, door: str, arguments: list[str], environment: dict[str, str], name: str = "") -> int | None:
    """Run a script, the first of ``arguments``, in a fork of the server at the socket ``door`` in ``folder``, and wait.

    ``environment`` is added to this process's own; ``name`` is what the job is called if it is killed. Returns its exit
    status; None if there is no server.
    """
    added = {**environment, SWITCH: FORKED}
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": {**os.environ, **added}}
    with socket.socket(socket.AF_UNIX) as server, _open(server):
        try:
            with _short(folder) as short:
                server.connect(f"{short}/{door}")
            text = json.dumps(request).encode()
            # Servers that runs share write elsewhere.
            socket.send_fds(server, [len(text).to_bytes(8, "big")], [1, 2])
            server.sendall(text)
        except OSError:
            return None
        if interruption.noticed():  # before the connection was there
            return INTERRUPTED
        try:
            answer = server.recv(1)
        except OSError:
            answer = b""
    if answer:
        return answer[0]
    if interruption.noticed(interruption.GRACE):
        return INTERRUPTED
    reason = "the job's process was killed, perhaps for want of memory"
    print(f"\n{name or arguments[0]}: {reason}\n", file=sys.stderr, flush=True)
    return 1


def end_jobs() -> None:
    """Kill the jobs of this run that run in forks; those that are about to start then end as soon as they do."""
    with _lock:
        for server in _jobs:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def process_id() -> int | None:
    """The number of the process of this run's servers; None without any."""
    return _server.pid if _server else None


@contextmanager
def _open(server: socket.socket) -> Iterator[None]:
    """While this lasts, the job at this connection is one that `end_jobs` ends."""
    with _lock:
        _jobs.add(server)
    try:
        yield
    finally:
        with _lock:
            _jobs.discard(server)


def _shared(folder: str) -> bool:
    """Whether ``folder`` is that of servers which have imported this library."""
    try:
        return os.path.isabs(folder) and Path(folder, LIBRARY).read_text() == str(SCRIPTS)
    except OSError:
        return False


def _tidy() -> None:
    """Remove folders of sockets without a server: it was killed before it could remove its own.
    Those of the last minute are kept, since another run may be about to listen there."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            about, young = folder.stat(), time.time() - 60
            if about.st_uid != os.getuid() or about.st_mtime > young or not (folder / "numbers").exists():
                continue
            probe.setblocking(False)  # a suspended server answers nobody
            try:
                with _short(str(folder)) as short:
                    probe.connect(f"{short}/numbers")
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _short(folder: str) -> Iterator[str]:
    """A short path to a folder: that of a socket may have 107 bytes."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
