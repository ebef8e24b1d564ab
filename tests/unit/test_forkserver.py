"""A script that runs in a fork of the server is the same script: output, ending, place, and nobody is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.script import PythonScript

from unlearning.workflow import forkserver, snakemake_changes

#: A process that starts a server as a run does, and waits until all is imported.
RUN = f"""
import json, os, sys, time
sys.path.append({str(forkserver.SCRIPTS)!r})
from types import SimpleNamespace
from snakemake.script import PythonScript
from unlearning.workflow import forkserver, snakemake_changes

def script(name, **changed):
    plain = dict.fromkeys(("conda_env", "container_img", "env_modules", "shadow_dir", "bench_record"))
    PythonScript.execute_script(SimpleNamespace(**{{**plain, "threads": 1, "resources": {{}}, **changed}}), name)

BEFORE
snakemake_changes.run_scripts_in_forks(SPECIAL)
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
LIGHT = [("ready.py", "unlearning.adversary.scoring")]
READY = [*LIGHT, ("ready.train.py", "unlearning.workflow.open_bank")]

#: What a run with one server does that many tests use: it is told where and what, line by line.
FURTHER = """
for line in sys.stdin:
    folder, told = json.loads(line)
    os.chdir(folder)
    exec(told)
    print("done", flush=True)
"""


def program(told: str, ready=READY, special: str = "", before: str = "") -> str:
    """A run that does what it is told once its server is ready; ``before``: what it does before that is started."""
    return RUN.replace("BEFORE", before).replace("(SPECIAL)", f"({special})").replace("READY", repr(ready)) + told


def said(folder: Path, told: str) -> list[str]:
    """The lines that a program says after its server's number."""
    run = subprocess.run(
        [sys.executable, "-c", told], cwd=folder, text=True, env=environment(), capture_output=True, check=True
    )
    return run.stdout.splitlines()[1:]


class Run:
    """A run in ``folder``: ``told`` is what it does once its server is ready."""

    def __init__(self, folder: Path, told: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program(told)], cwd=folder, text=True, env=environment(),
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
        self.complaints, self.known = folder / "complaints", 0
        own = {**environment(), "TMPDIR": str(folder)}
        with self.complaints.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program(FURTHER)], cwd=folder, text=True, env=own,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
            )  # fmt: skip
        self.server = int(self.process.stdout.readline())

    def begin(self, folder: Path, told: str) -> None:
        """Have it do something in a folder."""
        print(json.dumps([str(folder), told]), file=self.process.stdin, flush=True)

    def ended(self) -> tuple[str, str]:
        """What it said until it had done that, and of what it complained since the last time."""
        out = ""
        while not out.endswith("done\n"):
            out += self.process.stdout.readline()
            assert out.endswith("\n"), f"the run has ended: {self.complaints.read_text()}"
        return out.removesuffix("done\n"), self.complained()

    def does(self, folder: Path, told: str) -> tuple[str, str]:
        self.begin(folder, told)
        return self.ended()

    def complained(self) -> str:
        new = self.complaints.read_text()[self.known :]
        self.known += len(new)
        return new


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One run for all tests that leave it alive; it ends well and says nothing but what tests have seen."""
    run = Shared(tmp_path_factory.mktemp("shared"))
    yield run
    time.sleep(1)
    run.process.stdin.close()
    assert (run.process.stdout.read(), run.complained(), run.process.wait()) == ("", "", 0)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != forkserver.SWITCH}


def living(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def gone(pid: int) -> bool:
    """Whether a process ends within half a minute."""
    for _ in range(3000):
        if not living(pid):
            return True
        time.sleep(0.01)
    return False


pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has the server: elsewhere forks are not safe, and jobs start as ever"
)


@pytest.mark.parametrize("name", ["job.py", "job.train.py"])
def test_a_script_is_itself_in_a_fork(shared, tmp_path, name):
    text = "import os, sys, tempfile; print(os.getppid(), os.getcwd(), sys.argv, __name__, os.environ['OF_THE_JOB'], "
    (tmp_path / name).write_text(f"{text}'torch' in sys.modules, tempfile.gettempdir(), sys.stdin.read())")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    told = f"script({name!r}, resources={{'tmpdir': {str(elsewhere)!r}}})"
    out, err = shared.does(tmp_path, f"os.environ['OF_THE_JOB'] = 'a value'\n{told}")
    server, *rest = out.split(maxsplit=1)
    with_models = name == "job.train.py"
    assert (parent(int(server)) if with_models else int(server)) == shared.server
    assert rest == [f"{tmp_path} [{name!r}] __main__ a value {with_models} {elsewhere} \n"]
    assert err == ""


def test_a_script_that_needs_more_than_a_fork_starts_as_ever(tmp_path):
    by_itself = "PythonScript.execute_script = lambda self, fname, edit=False: print('as ever', fname)"
    special = ("threads=2", "resources={'gpu': 1}", "shadow_dir='there'", "conda_env='here'", "bench_record=1")
    told = "".join(f"print({one!r})\nscript('job.py', {one})\n" for one in special)
    found = said(tmp_path, program(told, LIGHT, "()", before=by_itself))
    assert found == [line for one in special for line in (one, "as ever job.py")]


def test_without_models_nothing_imports_torch(tmp_path):
    names = ("torch", "unlearning.adversary.scoring")
    (tmp_path / "job.py").write_text(f"import sys; print(*(name in sys.modules for name in {names}))")
    assert said(tmp_path, program("script('job.py')", LIGHT, "()")) == ["False True"]


def test_nothing_changes_where_the_server_is_switched_off(monkeypatch):
    before = PythonScript.execute_script
    monkeypatch.setenv(forkserver.SWITCH, "0")
    forkserver.start()
    assert PythonScript.execute_script is before
    assert forkserver._server is None


def test_a_script_starts_as_ever_where_nobody_answers(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(PythonScript, "execute_script", lambda self, fname, edit=False: started.append(fname))
    snakemake_changes.lead_scripts_to(str(tmp_path))
    plain = dict.fromkeys(("conda_env", "container_img", "env_modules", "shadow_dir", "bench_record"))
    PythonScript.execute_script(SimpleNamespace(**plain, threads=1, resources={}), "job.py")
    assert started == ["job.py"]


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [("sys.exit(3)", 3, ""), ("sys.exit('why')", 1, "why"), ("1 / 0", 1, "ZeroDivisionError"), ("pass", 0, ""),
     ("import os; os.kill(os.getpid(), 9)", 1, "was killed")],
)  # fmt: skip
def test_a_script_ends_as_it_would_by_itself(shared, tmp_path, end, code, words):
    (tmp_path / "job.py").write_text(f"import sys\nprint('said')\nsys.stdout.flush()\n{end}")
    told = "import subprocess\ntry:\n    script('job.py')\nexcept subprocess.CalledProcessError as error:\n"
    out, err = shared.does(tmp_path, f"{told}    print(error.returncode)")
    assert out == "said\n" + (f"{code}\n" if code else "")
    assert words in err


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_takes_server_and_jobs_along(tmp_path, how):
    (tmp_path / "job.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    run = Run(tmp_path, "script('job.py')")
    fork = int(run.process.stdout.readline())
    assert parent(fork) == run.server
    others = [int(pid) for pid in Path(f"/proc/{run.server}/task/{run.server}/children").read_text().split()]
    assert len(others) == 2  # the fork, and the server of jobs with models
    run.process.send_signal(how)
    run.ended()
    assert all(gone(pid) for pid in (run.server, *others))


@pytest.mark.parametrize("doing", ["time.sleep(600)", "exec('import told')"])
def test_an_interrupted_job_ends_without_a_traceback(shared, tmp_path, doing):
    (tmp_path / "told.py").write_text("import time\ntime.sleep(600)")
    (tmp_path / "job.py").write_text(f"import os, time; print(os.getpid(), flush=True); {doing}")
    told = "import subprocess\ntry:\n    script('job.py')\nexcept subprocess.CalledProcessError as error:\n"
    shared.begin(tmp_path, f"{told}    print(error.returncode)")
    os.kill(int(shared.process.stdout.readline()), signal.SIGINT)
    assert shared.ended() == ("130\n", "")


def test_a_request_that_breaks_off_leaves_no_fork(shared, tmp_path):
    (tmp_path / "job.py").touch()
    told = """
import glob, socket, tempfile
children = f"/proc/{forkserver._server.pid}/task/{forkserver._server.pid}/children"
known = open(children).read().split()
os.chdir(glob.glob(tempfile.gettempdir() + "/unlearning-*")[0])
for sent in (b"", bytes(7) + b"9", bytes(7) + b"9" + b"{"):
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect("door")
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
    assert shared.does(tmp_path, told)[0] == "0\n"


def test_a_run_that_ends_leaves_nothing(tmp_path):
    told = "import glob, tempfile\nprint(*glob.glob(tempfile.gettempdir() + '/unlearning-*/door'), sep='\\n')"
    run = Run(tmp_path, told)
    doors = run.ended()[0].split()
    assert gone(run.server)
    assert doors
    assert any(not Path(door).parent.exists() for door in doors)


def test_no_two_forks_draw_the_same_from_what_nobody_seeded(shared, tmp_path):
    (tmp_path / "job.train.py").write_text("import random, numpy, torch; print(random.random(), numpy.random.rand(), "
                                     "float(torch.rand(())))")  # fmt: skip
    out, _ = shared.does(tmp_path, "script('job.train.py')\nscript('job.train.py')")
    one, two = (line.split() for line in out.splitlines())
    assert all(a != b for a, b in zip(one, two, strict=True))


def test_a_library_that_cannot_be_imported_leaves_the_server_alive(tmp_path):
    (tmp_path / "a_broken_module.py").write_text("raise RuntimeError('no')")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(forkserver.SCRIPTS)!r}]\n"
    code += "from unlearning.workflow import forkserver\nforkserver._take('a_broken_module')\nprint('lives')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "lives\n"


def test_a_fork_has_what_scripts_import_and_no_modules_of_their_names(shared, tmp_path):
    names = "[name for name in ('unlearning.bank.bank', 'train', 'job', 'data') if name in sys.modules]"
    (tmp_path / "job.train.py").write_text(f"import sys; print({names})")
    assert shared.does(tmp_path, "script('job.train.py')")[0] == "['unlearning.bank.bank']\n"


def test_servers_have_one_thread_so_that_forks_are_safe(tmp_path):
    kinds = {"job.py": ["art.estimators.classification"],
             "job.train.py": ["transformers.models.gpt2.modeling_gpt2", "unlearning.bank.private"]}  # fmt: skip
    for name, modules in kinds.items():
        text = "import os, sys; print(len(os.listdir(f'/proc/{os.getppid()}/task')), "
        (tmp_path / name).write_text(f"{text}all(one in sys.modules for one in {modules}))")
    ready = [(name.replace("job", "ready"), one) for name, modules in kinds.items() for one in modules]
    told = "".join(f"script({name!r})\n" for name in kinds)
    assert said(tmp_path, program(told, [*LIGHT, *ready], "[*forkserver.SPECIAL]")) == ["1 True", "1 True"]
