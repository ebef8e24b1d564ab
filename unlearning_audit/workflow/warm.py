"""A warm process whose forks run the jobs on this machine, because importing torch takes longer than most small jobs.

In Snakemake's `onstart:`, `start` begins the server. `shell.prefix` then gets a shell function with the name of this
Python, so that Snakemake's own call of a script requests a fork. A job in a conda environment or a container calls
another Python and starts normally; so does a job with several threads, and any job after the server has ended. No
result depends on whether a job was forked. Forks are safe on Linux only.
"""

import json
import os
import signal
import socket
import sys

#: Environment variable: 0 switches the server off; the name of a running server lets several runs share it.
SWITCH = "UNLEARNING_WARM"

#: Environment of the server: one thread, also in Arrow's allocator, because only one survives a fork. Memory of a
#: training step is kept for the next one; otherwise the system would clear it each time.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_MMAP_THRESHOLD_": "30000000",
}


def possible() -> bool:
    """Return whether this system can run a server and it has not been switched off."""
    return sys.platform == "linux" and os.environ.get(SWITCH) != "0"


def start(modules: list[str]) -> str:
    """Start a server in a process of its own, and return its name.

    The server ends with this process. ``modules``: names of modules, and files, that it imports in advance, in this
    order.
    """
    import secrets
    import subprocess

    name = f"unlearning-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")  # no file, so that nothing is left however the server ends
        listening.listen(64)  # from now on requests wait until it is ready
        subprocess.Popen(
            [sys.executable, "-P", __file__, "--serve", str(listening.fileno()), str(os.getpid()), *modules],
            env={**os.environ, **ENVIRONMENT}, pass_fds=[listening.fileno()], stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    return name


def prefix(name: str) -> str:
    """Return the value of Snakemake's `shell.prefix` (text before every shell command) with which jobs request forks
    from the server ``name``."""
    # The text defines a shell function whose name is the path of this Python, so that Snakemake's calls of Python call
    # the function. In it, "command" calls the real Python to run this file, and -IS lets that start without site
    # packages. Fourfold braces become double ones here, and single ones when Snakemake formats the text again.
    return f'set -euo pipefail; {sys.executable}() {{{{ command {sys.executable} -IS {__file__} {name} "$@"; }}}}; '


def ask(name: str, arguments: list[str]) -> int | None:
    """Run a script in a fork of the server ``name``, and return its exit status; None if no fork is available, or if
    the job may use several threads, of which only one would survive a fork.

    The status of a killed fork is that of SIGKILL.

    The fork has the folder, environment and output of this process, and ends with it.

    Parameters
    ----------
    arguments
        The script's path and its arguments.
    """
    text = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(f"\0{name}")
            if not is_own(server) or os.environ.get("OMP_NUM_THREADS") != "1":
                return None
            # 0, 1 and 2 are standard input, output and error of this process, which the fork then has too.
            socket.send_fds(server, [len(text).to_bytes(8, "big")], [0, 1, 2])
            server.sendall(text)
        except OSError:
            return None
        try:
            answer = server.recv(1)
        except ConnectionResetError:  # the server was killed before it read the request
            answer = b""
    if not answer:
        print(f"\n{arguments[0]}: the job was killed, perhaps because memory ran out\n", file=sys.stderr)
    return answer[0] if answer else 128 + signal.SIGKILL  # the one byte of the answer is the exit status


def is_own(connection: socket.socket) -> bool:
    """Return whether the process at the other end of a connection belongs to this user."""
    # Twelve bytes: three integers, the process, its user and its group.
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(peer[4:8], sys.byteorder) == os.getuid()  # bytes 4 to 7 are the user


def serve(listening: socket.socket, parent: int, modules: list[str]) -> None:
    """Answer requests on ``listening``: run each requested script in a fork of this process. The server ends with its
    ``parent``.

    Before and between requests, ``modules`` are imported one after the other, so that forks have them already. Requests
    by other users are ignored.
    """
    import contextlib
    import gc
    import importlib
    import runpy
    import select

    end_with_parent()
    if os.getppid() != parent:
        sys.exit()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    gc.disable()  # what is imported stays
    path = sys.path[:]
    while True:
        if modules:
            with contextlib.suppress(Exception):  # a job that needs it fails with its own error
                name = modules.pop(0)
                runpy.run_path(name) if name.endswith(".py") else importlib.import_module(name)
            if not select.select([listening], [], [], 0)[0]:  # [0]: sockets that can be read; no request is waiting
                continue
        client, _address = listening.accept()
        with contextlib.suppress(OSError, ValueError):  # who asked has gone, or the system has no process left
            # Eight bytes, the length of the request, and three open files: standard input, output and error.
            head, files, *_ = socket.recv_fds(client, 8, 3)
            request = json.loads(client.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
            if is_own(client) and os.fork() == 0:  # 0 is returned in the fork, which ends in `run`
                listening.close()
                gc.freeze()
                gc.enable()
                run(client, files, path, *request)
            for file in files:
                os.close(file)
        client.close()


def run(
    client: socket.socket,
    files: list[int],
    path: list[str],
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
) -> None:
    """Run a script in this fork, send its exit status to ``client`` and end.

    The fork and its children also end when the process that requested it ends.

    Parameters
    ----------
    files
        The standard input, output and error of the process that requested the fork.
    path
        Where Python looks for modules.
    arguments
        The script and its arguments.
    folder
        The working directory of the process that requested the fork.
    environment
        The environment variables of the process that requested the fork.
    """
    import fcntl
    import runpy
    import select
    import tempfile
    import traceback

    code = 1
    try:
        end_with_parent()
        # The fork and its children are a group of processes. The system sends SIGIO, which ends it, to the whole group
        # when the other end of ``client`` is closed.
        os.setpgid(0, 0)
        fcntl.fcntl(client, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(client, fcntl.F_SETFL, os.O_ASYNC)
        # [0]: sockets that can be read. The client sends nothing more, so this means that its end is closed.
        if select.select([client], [], [], 0)[0]:
            os._exit(1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # the environment may name another folder of temporary files
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()  # else forks draw the same numbers
        sys.argv, sys.path[:] = arguments, [os.path.dirname(arguments[0]), *path]
        runpy.run_path(arguments[0], run_name="__main__")
        sys.stdout.flush()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:  # at once, since taking torch apart would take half a second
        try:
            client.send(bytes([code & 255]))
        finally:
            os._exit(code & 255)


def end_with_parent() -> None:
    """Let the system kill this process when its parent dies."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]), sys.argv[4:])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # to end without a traceback
    status = ask(sys.argv[1], sys.argv[2:])
    if status is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    sys.exit(status)
