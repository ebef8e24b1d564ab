"""A script that runs in a fork of the server is the same script: output, ending, place, and nobody is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unlearning import forkserver

SCRIPTS = str(Path(forkserver.__file__).parents[1])
PREAMBLE = f"import sys; sys.path.append({SCRIPTS!r})\nfrom unlearning import forkserver\nforkserver.hand_over()\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    before = dict(os.environ)
    os.environ.pop(forkserver.DOOR, None)
    forkserver.start()
    if forkserver._server is None:
        pytest.skip("this is not Linux")
    ready(tmp_path_factory.mktemp("ready"))
    yield forkserver._server
    forkserver._server.stdin.close()
    forkserver._server.wait()
    os.environ.clear()
    os.environ.update(before)


def begin(folder: Path, text: str) -> subprocess.Popen:
    """Start a script that hands over and then does ``text``."""
    path = folder / "job.py"
    path.write_text(PREAMBLE + text)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(path), "one", "two"], cwd=folder, text=True, **streams)


def ready(folder: Path) -> None:
    """Wait until the server has imported all."""
    for _ in range(200):
        if begin(folder, "print('safetensors.torch' in sys.modules)").communicate()[0] == "True\n":
            return
    pytest.fail("the server never imported what it should")


def living(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_a_script_is_itself_in_a_fork(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_JOB", "a value")
    said = "import os; print(os.getpid(), os.getppid(), 'torch' in sys.modules, os.getcwd(), sys.argv, __name__, "
    job = begin(tmp_path, f"{said}os.environ['OF_THE_JOB'])")
    out, err = job.communicate()
    pid, ppid, *rest = out.split(maxsplit=3)
    assert int(pid) != job.pid
    assert int(ppid) == server.pid
    assert rest == ["True", f"{tmp_path} ['{tmp_path}/job.py', 'one', 'two'] __main__ a value\n"]
    assert (job.returncode, err) == (0, "")


def test_without_a_server_or_with_that_of_another_interpreter_a_script_runs_where_it_is(tmp_path, monkeypatch):
    for door in ("", "0", f"{sys.prefix}:{tmp_path}/nowhere", f"/another/python:{tmp_path}"):
        monkeypatch.setenv(forkserver.DOOR, door)
        job = begin(tmp_path, "import os; print(os.getpid(), 'torch' in sys.modules)")
        assert job.communicate() == (f"{job.pid} False\n", "")


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [("sys.exit(3)", 3, ""), ("sys.exit('why')", 1, "why"), ("1 / 0", 1, "ZeroDivisionError"), ("pass", 0, ""),
     ("import os; os.kill(os.getpid(), 9)", 1, "was killed")],
)  # fmt: skip
def test_a_script_ends_as_it_would_by_itself(server, tmp_path, end, code, words):
    job = begin(tmp_path, f"print('said')\nsys.stdout.flush()\n{end}")
    out, err = job.communicate()
    assert (out, job.returncode) == ("said\n", code)
    assert words in err


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_script_takes_its_fork_along(server, tmp_path, how):
    job = begin(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    fork = int(job.stdout.readline())
    assert parent(fork) == server.pid
    job.send_signal(how)
    job.communicate()
    for _ in range(1000):
        if not living(fork):
            break
        time.sleep(0.01)
    assert not living(fork)


def test_a_job_reads_our_files_as_they_are_when_it_starts(server, tmp_path):
    said = "print([name for name in sys.modules if name.startswith('unlearning')])"
    job = begin(tmp_path, f"import unlearning.keyed\n{said}")
    names = job.communicate()[0]
    assert "unlearning.keyed" in names
    assert "unlearning.bank" not in names


def test_the_server_has_one_thread_so_that_forks_are_safe(server, tmp_path):
    begin(tmp_path, "").communicate()  # its imports are done
    assert len(list(Path(f"/proc/{server.pid}/task").iterdir())) == 1


def test_the_server_ends_with_the_process_that_started_it(tmp_path):
    text = f"import sys; sys.path.append({SCRIPTS!r})\nfrom unlearning import forkserver as f\nf.start()\n"
    text += "import os; print(f._server.pid, os.environ[f.DOOR].rpartition(':')[2], flush=True)\nimport time\n"
    environment = {name: value for name, value in os.environ.items() if name != forkserver.DOOR}
    run = subprocess.Popen(
        [sys.executable, "-c", f"{text}time.sleep(600)"], stdout=subprocess.PIPE, text=True, env=environment
    )
    line = run.stdout.readline()
    if not line:
        pytest.skip("this is not Linux")
    pid, folder = line.split()
    assert living(int(pid))
    run.kill()
    run.communicate()
    for _ in range(3000):
        if not living(int(pid)):
            break
        time.sleep(0.01)
    assert not living(int(pid))
    assert not Path(folder).exists()
