"""Jobs on this machine start in a copy of one process that has imported the large libraries already.

Importing torch takes seconds, and most jobs of a small study take less. So a run starts one server, which imports and
waits; a job's script asks it for a fork of itself, in which the script then runs as it would by itself: with its own
arguments, folder, environment, output, time and memory. Where there is no server, or none that fits, a script runs
where it is. Nothing that a job computes can depend on this.
"""

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
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

#: Slow to import, and read by many jobs. Nothing of ours: a job reads our files as they are when it starts.
OF_NUMBERS = ("snakemake.script", "numpy", "pydantic", "scipy.special", "matplotlib.figure")
OF_MODELS = ("torch", "torch.func", "safetensors.torch")

#: The environment variable that tells scripts where the server listens, and for which interpreter.
DOOR = "UNLEARNING_FORKSERVER"

#: Its value in a fork.
FORKED = "forked"

_server: subprocess.Popen | None = None


def start(models: bool = True) -> None:
    """Start the server of this run, and tell scripts by the environment; it ends with this process.

    ``models``: whether jobs have any; without, torch is not imported. Does nothing on systems other than Linux,
    where forks are not safe, or where no folder can be written. UNLEARNING_FORKSERVER=0 prevents it. Not for jobs that
    use a GPU.
    """
    global _server
    if sys.platform != "linux" or os.environ.get(DOOR) == "0":
        return
    door = socket.socket(socket.AF_UNIX)
    try:
        folder = tempfile.mkdtemp(prefix="unlearning-")  # nobody else may enter
        with _short(folder) as short:
            door.bind(f"{short}/door")
    except OSError:
        return
    door.listen(64)  # from now on nobody is turned away, though the first ones wait
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from unlearning import forkserver; "
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    _server = subprocess.Popen(
        [sys.executable, "-c", f"{program}forkserver.serve({door.fileno()}, {folder!r}, {models!r})"],
        stdin=subprocess.PIPE, pass_fds=[door.fileno()], env={**os.environ, **one},
    )  # fmt: skip
    door.close()
    os.environ[DOOR] = f"{sys.prefix}:{folder}"


def serve(door: int, folder: str, models: bool) -> None:
    """Import the libraries, and fork for everyone who asks at ``door``, a socket's handle, until standard input is
    closed. Who comes early gets a fork with what is there. Removes ``folder``."""
    path = sys.path[2:]  # without the current folder and ours
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the jobs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks vanish by themselves
    with socket.socket(fileno=door) as listening:

        def open_for(seconds: float | None) -> bool:
            """Fork for everyone who is waiting, or comes within so many seconds; whether the run goes on."""
            while ready := select.select([listening, sys.stdin], [], [], seconds)[0]:
                if sys.stdin in ready:
                    return False
                client, _ = listening.accept()
                if os.fork() == 0:
                    listening.close()
                    _run(client, path)
                client.close()
            return True

        for library in (*OF_NUMBERS, *(OF_MODELS if models else ())):
            with suppress(ImportError):  # a job that needs it will say so
                import_module(library)
            if not open_for(0):
                break
        else:
            open_for(None)
    shutil.rmtree(folder, ignore_errors=True)


def hand_over() -> None:
    """Let a fork of the server run this script, wait for it and end as it ended; return if there is no server."""
    prefix, _, folder = os.environ.get(DOOR, "").rpartition(":")
    if prefix != sys.prefix:
        return
    request = {"arguments": sys.argv, "folder": os.getcwd(), "environment": {**os.environ, DOOR: FORKED}}
    server = socket.socket(socket.AF_UNIX)
    try:
        with _short(folder) as short:
            server.connect(f"{short}/door")
        text = json.dumps(request).encode()
        socket.send_fds(server, [len(text).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(text)
    except OSError:
        server.close()
        return
    try:
        answer = server.recv(1)
    except OSError:
        answer = b""
    if not answer:
        print(f"\n{sys.argv[0]}: the job's process was killed, perhaps for want of memory\n", file=sys.stderr)
    sys.stderr.flush()
    os._exit(answer[0] if answer else 1)


def _run(client: socket.socket, path: list[str]) -> None:
    """In the fork: become the process that asked, run its script, tell how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        size, streams, _, _ = socket.recv_fds(client, 8, 3)
        text = b""
        while len(text) < int.from_bytes(size, "big"):
            text += client.recv(1 << 16)
        request = json.loads(text)
        for own, stream in enumerate(streams):
            os.dup2(stream, own)
            os.close(stream)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        script = request["arguments"][0]
        sys.argv, sys.path[:] = request["arguments"], [str(Path(script).parent), *path]
        for name in [name for name in sys.modules if name.partition(".")[0] == "unlearning"]:
            del sys.modules[name]
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


def _end_with(client: socket.socket) -> None:
    """Kill this process when the one that asked for it has gone."""
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
