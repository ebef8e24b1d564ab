"""A script that runs in a fork of the server is the same script: output, ending, place, and nobody is left behind."""

import os
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.script import PythonScript
from unlearning_audit.workflow import forks, forkserver, interruption, snakemake_changes

from forkserver_cases import LIGHT, Run, Shared, on_linux, printed_lines, program


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One run for all tests that leave it alive; it ends well and says nothing but what tests have seen."""
    run = Shared(tmp_path_factory.mktemp("shared"))
    yield run
    time.sleep(1)
    run.process.stdin.close()
    assert (run.process.stdout.read(), run.complained(), run.process.wait()) == ("", "", 0)


def living(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def ends(pid: int) -> bool:
    """Whether a process ends within half a minute."""
    for _ in range(3000):
        if not living(pid):
            return True
        time.sleep(0.01)
    return False


pytestmark = on_linux


#: Sends SIGINT to all children of this process for two seconds, as a terminal does once.
INTERRUPTS = """
import signal, threading
from contextlib import suppress

def interrupt(end=time.monotonic() + 2):
    while time.monotonic() < end:
        with open(f"/proc/self/task/{os.getpid()}/children") as file, suppress(ProcessLookupError):
            for child in file.read().split():
                os.kill(int(child), signal.SIGINT)
        time.sleep(0.002)

interrupts = threading.Thread(target=interrupt)
interrupts.start()
"""


def test_servers_that_still_start_leave_an_interrupt_to_the_run(tmp_path):
    (tmp_path / "job.py").write_text("print('done')")
    code = program("interrupts.join()\nscript('job.py')", ready=[], before=INTERRUPTS)
    assert printed_lines(tmp_path, code) == ["done"]


@pytest.mark.parametrize("name", ["job.py", "job.train.py"])
def test_a_script_is_itself_in_a_fork(shared, tmp_path, name):
    text = "import os, sys, tempfile; print(os.getppid(), os.getcwd(), sys.argv, __name__, os.environ['OF_THE_JOB'], "
    (tmp_path / name).write_text(f"{text}'torch' in sys.modules, tempfile.gettempdir(), sys.stdin.read())")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    snippet = f"script({name!r}, resources={{'tmpdir': {str(elsewhere)!r}}})"
    out, err = shared.does(tmp_path, f"os.environ['OF_THE_JOB'] = 'a value'\n{snippet}")
    server, *rest = out.split(maxsplit=1)
    with_models = name == "job.train.py"
    assert (parent(int(server)) if with_models else int(server)) == shared.server
    assert rest == [f"{tmp_path} [{name!r}] __main__ a value {with_models} {elsewhere} \n"]
    assert err == ""


def test_a_script_that_needs_more_than_a_fork_starts_as_ever(tmp_path):
    by_itself = "PythonScript.execute_script = lambda self, fname, edit=False: print('as ever', fname)"
    special = ("threads=2", "resources={'gpu': 1}", "shadow_dir='there'", "conda_env='here'", "bench_record=1")
    snippet = "".join(f"print({option!r})\nscript('job.py', {option})\n" for option in special)
    output = printed_lines(tmp_path, program(snippet, LIGHT, None, before=by_itself))
    assert output == [line for option in special for line in (option, "as ever job.py")]


def test_without_models_nothing_imports_torch(tmp_path):
    names = ("torch", "unlearning_audit.adversary.scoring")
    (tmp_path / "job.py").write_text(f"import sys; print(*(name in sys.modules for name in {names}))")
    assert printed_lines(tmp_path, program("script('job.py')", LIGHT, None)) == ["False True"]


def test_nothing_changes_where_the_server_is_switched_off(monkeypatch):
    before = PythonScript.execute_script
    monkeypatch.setenv(forkserver.SWITCH, "0")
    forkserver.start()
    assert PythonScript.execute_script is before
    assert forkserver._server is None


def test_a_script_starts_as_ever_where_nobody_answers(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(PythonScript, "execute_script", lambda self, fname, edit=False: started.append(fname))
    snakemake_changes.run_scripts_in_forks(str(tmp_path))
    plain = dict.fromkeys(("conda_env", "container_img", "env_modules", "shadow_dir", "bench_record"))
    PythonScript.execute_script(SimpleNamespace(**plain, threads=1, resources={}, params={}, log=()), "job.py")
    assert started == ["job.py"]


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [("sys.exit(3)", 3, ""), ("sys.exit('why')", 1, "why"), ("1 / 0", 1, "ZeroDivisionError"), ("pass", 0, ""),
     ("import os; os.kill(os.getpid(), 9)", 1, "was killed")],
)  # fmt: skip
def test_a_script_ends_as_it_would_by_itself(shared, tmp_path, end, code, words):
    (tmp_path / "job.py").write_text(f"import sys\nprint('said')\nsys.stdout.flush()\n{end}")
    snippet = "import subprocess\ntry:\n    script('job.py')\nexcept subprocess.CalledProcessError as error:\n"
    out, err = shared.does(tmp_path, f"{snippet}    print(error.returncode)")
    assert out == "said\n" + (f"{code}\n" if code else "")
    assert words in err


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_takes_server_and_jobs_along(tmp_path, how):
    (tmp_path / "job.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    run = Run(tmp_path, "script('job.py')")
    fork = int(run.process.stdout.readline())
    assert parent(fork) == run.server
    children = [int(pid) for pid in Path(f"/proc/{run.server}/task/{run.server}/children").read_text().split()]
    assert len(children) == 2  # the fork, and the server of jobs with models
    run.process.send_signal(how)
    run.ended()
    assert all(ends(pid) for pid in (run.server, *children))


@pytest.mark.parametrize("doing", ["time.sleep(600)", "exec('import told')"])
def test_an_interrupted_job_ends_without_a_traceback(shared, tmp_path, doing):
    (tmp_path / "told.py").write_text("import time\ntime.sleep(600)")
    (tmp_path / "job.py").write_text(f"import os, time; print(os.getpid(), flush=True); {doing}")
    snippet = "import subprocess\ntry:\n    script('job.py')\nexcept subprocess.CalledProcessError as error:\n"
    shared.begin(tmp_path, f"{snippet}    print(error.returncode)")
    os.kill(int(shared.process.stdout.readline()), signal.SIGINT)
    assert shared.ended() == ("130\n", "")


def test_a_request_that_breaks_off_leaves_no_fork(shared, tmp_path):
    (tmp_path / "job.py").touch()
    snippet = """
import glob, socket, tempfile
children = f"/proc/{forkserver._server.pid}/task/{forkserver._server.pid}/children"
known = open(children).read().split()
os.chdir(glob.glob(tempfile.gettempdir() + "/unlearning-*")[0])
for sent in (b"", bytes(7) + b"9", bytes(7) + b"9" + b"{"):
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect("numbers")
        asking.sendall(sent)
os.chdir(folder)
script("job.py")  # is served after them
for _ in range(1000):
    left = [child for child in open(children).read().split() if child not in known]
    if not left:
        break
    time.sleep(0.01)
print(len(left))
for child in left:
    os.kill(int(child), 9)
"""
    assert shared.does(tmp_path, snippet)[0] == "0\n"


def test_a_run_that_ends_leaves_nothing(tmp_path):
    snippet = "import glob, tempfile\nprint(*glob.glob(tempfile.gettempdir() + '/unlearning-*/numbers'), sep='\\n')"
    run = Run(tmp_path, snippet)
    doors = run.ended()[0].split()
    assert ends(run.server)
    assert doors
    assert any(not Path(door).parent.exists() for door in doors)


def test_a_fork_looks_for_garbage_among_what_it_makes(shared, tmp_path):
    (tmp_path / "job.py").write_text("import gc; print(gc.isenabled(), gc.get_freeze_count() > 50_000, "
                                     "len(gc.get_objects()) < 50_000)")  # fmt: skip
    assert shared.does(tmp_path, "script('job.py')") == ("True True True\n", "")


def test_no_two_forks_draw_the_same_from_what_nobody_seeded(shared, tmp_path):
    (tmp_path / "job.train.py").write_text("import random, numpy, torch; print(random.random(), numpy.random.rand(), "
                                     "float(torch.rand(())))")  # fmt: skip
    out, _ = shared.does(tmp_path, "script('job.train.py')\nscript('job.train.py')")
    first, second = (line.split() for line in out.splitlines())
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_a_fork_has_what_scripts_import_and_no_modules_of_their_names(shared, tmp_path):
    names = "[name for name in ('unlearning_audit.bank.bank', 'train', 'job', 'data') if name in sys.modules]"
    (tmp_path / "job.train.py").write_text(f"import sys; print({names})")
    assert shared.does(tmp_path, "script('job.train.py')")[0] == "['unlearning_audit.bank.bank']\n"


def test_no_job_starts_once_the_run_is_to_end(tmp_path, monkeypatch):
    """The connections that are to be closed then may not be there yet."""
    monkeypatch.setattr(interruption, "noticed", lambda seconds=0: True)
    statuses = []
    with socket.socket(socket.AF_UNIX) as door:
        with forkserver._short(str(tmp_path)) as short:
            door.bind(f"{short}/numbers")
        door.listen()
        program = (str(tmp_path), "numbers", ["job.py"], {})
        job = threading.Thread(target=lambda: statuses.append(forkserver.run(*program)), daemon=True)
        job.start()
        job.join(60)
    assert statuses == [forks.INTERRUPTED]


def test_a_start_that_fails_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(forkserver.SWITCH, raising=False)

    def refused(self, path):
        raise OSError("no sockets here")

    monkeypatch.setattr(socket.socket, "bind", refused)
    assert forkserver.start() is None
    assert not [*tmp_path.iterdir()]
