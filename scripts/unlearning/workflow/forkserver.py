"""Fork server: jobs on this machine start as copies of a process that has imported the libraries already.

Importing torch takes seconds, and most jobs of a small study take less. So a run starts one server for jobs without
models and one for jobs with models. Snakemake asks for a fork (`workflow.snakemake_changes`), in which the job's script
runs as it would in a process of its own: same arguments, folder, environment, output and exit status. Its peak memory
includes what it shares with the server. No result depends on whether a job was forked.
"""

import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from unlearning.plugins.isolation import end_with_parent

#: Slow to import, and needed by jobs of every study. FIRST is imported before serving, because data jobs need it.
FIRST = ("numpy", "scipy.special", "pydantic", "snakemake.script")
LATER = ("pyarrow.parquet", "pyarrow.compute", "matplotlib.figure")

#: Modules that are slow to import and needed by some studies only.
SPECIAL = {
    "models": ("torch", "torch.func", "safetensors.torch"),
    "text": ("torch._dynamo", "transformers.modeling_utils", "transformers.models.gpt2.modeling_gpt2"),
    "vision": ("torchvision.models",),
    "privacy": ("unlearning.bank.private",),
    "rouge": ("rouge_score.rouge_scorer",),
    "art": ("art.attacks.inference.membership_inference", "art.estimators.classification"),
}

#: Scripts that import torch; a second server forks them, so that the first stays small and forks faster.
WITH_MODELS = ("pretrain", "train", "unlearn", "relearn", "generate", "forecast")

#: Environment variable; 0 disables the server.
SWITCH = "UNLEARNING_FORKSERVER"

#: Its value in forks.
FORKED = "forked"

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: Arrow's default allocator has a background thread, which does not survive a fork.
NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}

#: What a step of training allocates is kept for the next one, where the system would have to clear it anew (glibc).
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "30000000"}

#: Name of the folders of sockets among temporary ones.
PREFIX = "unlearning-"

#: Sockets of the server, and of the one for jobs with models.
DOORS = ("door", "models")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

#: Exit status after SIGINT, as shells have it.
INTERRUPTED = 130

SCRIPTS = Path(__file__).resolve().parents[2]

_server: subprocess.Popen | None = None


def start(special: Collection[str] = ("models",)) -> str | None:
    """Start the server of this run, which ends with this process; return the folder of its sockets, for `run`.

    ``special``: what of `SPECIAL` forks will need. Does nothing and returns None on systems other than Linux, where
    forks are not safe, where no folder can be written, and with UNLEARNING_FORKSERVER=0.
    """
    global _server
    if sys.platform != "linux" or os.environ.get(SWITCH) == "0":
        return None
    doors = {name: socket.socket(socket.AF_UNIX) for name in DOORS[: 1 + ("models" in special)]}
    _tidy()
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX)  # accessible to this user only
        with _short(folder) as short:
            for name, door in doors.items():
                door.bind(f"{short}/{name}")
    except OSError:
        return None
    for door in doors.values():
        door.listen(64)  # from now on requests are queued until the server is ready
    handles = [door.fileno() for door in doors.values()]
    program = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); from unlearning.workflow import forkserver; "
    _server = subprocess.Popen(
        [sys.executable, "-c", f"{program}forkserver.serve({handles!r}, {folder!r}, {[*special]!r})"],
        stdin=subprocess.PIPE, pass_fds=handles, env={**os.environ, **ONE_THREAD, **NO_THREAD, **KEPT_MEMORY},
    )  # fmt: skip
    for door in doors.values():
        door.close()
    return folder


def run(folder: str, door: str, arguments: list[str], environment: dict[str, str]) -> int | None:
    """Run a script, the first of ``arguments``, in a fork of the server at the socket ``door`` in ``folder``, and wait.

    ``environment`` is added to this process's own. Returns its exit status; None if there is no server.
    """
    added = {**environment, SWITCH: FORKED}
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": {**os.environ, **added}}
    with socket.socket(socket.AF_UNIX) as server:
        try:
            with _short(folder) as short:
                server.connect(f"{short}/{door}")
            text = json.dumps(request).encode()
            server.sendall(len(text).to_bytes(8, "big") + text)
        except OSError:
            return None
        try:
            answer = server.recv(1)
        except OSError:
            answer = b""
    if not answer:
        reason = "the job's process was killed, perhaps for want of memory"
        print(f"\n{arguments[0]}: {reason}\n", file=sys.stderr, flush=True)
    return answer[0] if answer else 1


def serve(doors: list[int], folder: str, special: list[str]) -> None:
    """Import what jobs need and fork for each request at ``doors``, file descriptors of sockets, until standard input
    is closed; the second belongs to a second server. Removes ``folder``.

    Of the library, servers import what the scripts import; scripts and plug-ins are read when a job starts.
    """
    end_with_parent()
    path = sys.path[2:]  # without the current folder and the library's
    for number in SIGNALS:  # signals are for the jobs; finished forks are reaped automatically
        signal.signal(number, signal.SIG_IGN)
    for module in FIRST:
        _take(module)
    scripts = [file.stem for file in SCRIPTS.glob("*.py")]
    if len(doors) > 1 and os.fork() == 0:
        end_with_parent()
        os.close(doors[0])
        needs = [module for need in special if need in ("models", "privacy") for module in SPECIAL[need]]
        # The slowest come last: all other jobs can start before.
        last = [module for need in special if need in ("text", "vision") for module in SPECIAL[need]]
        _serve(doors[1], [*needs, *WITH_MODELS, *last], scripts, path)
        os._exit(0)
    for door in doors[1:]:
        os.close(door)
    needs, last = (SPECIAL[name] if name in special else () for name in ("art", "rouge"))
    others = [name for name in scripts if name not in WITH_MODELS]
    try:
        _serve(doors[0], [*needs, *LATER, *others, *last], scripts, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(door: int, modules: list[str], scripts: list[str], path: list[str]) -> None:
    """Import ``modules`` and serve; requests that come during imports get a fork with what is imported so far."""
    with socket.socket(fileno=door) as listening:

        def open_for(seconds: float | None) -> bool:
            """Fork for each request that waits or comes within so many seconds; returns whether the run goes on."""
            while ready := select.select([listening, sys.stdin], [], [], seconds)[0]:
                if sys.stdin in ready:
                    return False
                client, _ = listening.accept()
                if os.fork() == 0:
                    listening.close()
                    _run(client, path)
                client.close()
            return True

        for module in modules:
            _take(module)
            for script in scripts:
                sys.modules.pop(script, None)  # a job reads its own
            if not open_for(0):
                return
        gc.freeze()  # forks skip these objects in garbage collection
        open_for(None)


def _tidy() -> None:
    """Remove folders of sockets that nobody listens at any more: of servers that were killed, and could not do it.
    Those of the last minute are kept, since another run may be about to listen there."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            about, young = folder.stat(), time.time() - 60
            if about.st_uid != os.getuid() or about.st_mtime > young or not (folder / DOORS[0]).exists():
                continue
            asked.setblocking(False)  # a suspended server answers nobody
            try:
                with _short(str(folder)) as short:
                    asked.connect(f"{short}/{DOORS[0]}")
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)


def _take(module: str) -> None:
    with suppress(Exception):  # a job that needs it fails with its own error
        import_module(module)


def _run(client: socket.socket, path: list[str]) -> None:
    """In the fork: take over the environment of the requesting process, run its script, send the exit status."""
    end_with_parent()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: _interrupted(client))
    code = 1
    try:
        size, text = int.from_bytes(client.recv(8), "big"), b""
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
        for library, seed in (("numpy.random", "seed"), ("torch", "seed")):  # else forks draw the same numbers
            if library in sys.modules:
                getattr(sys.modules[library], seed)()
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


@contextmanager
def _short(folder: str) -> Iterator[str]:
    """A short path to a folder: that of a socket may have 107 bytes."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
