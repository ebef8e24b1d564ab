"""A script that runs in a fork of the warm process is the same script: output, ending, place; and nobody is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from unlearning_audit.workflow import warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the server")


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> str:
    """The name of a server that has imported a module, tried a file that fails, and run another."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "train.py").write_text("import colorsys")
    (folder / "broken.py").write_text("1 / 0")
    name = warm.start(["numpy", str(folder / "broken.py"), str(folder / "train.py")])
    for _ in range(3):  # at least one is imported before each request
        run(name, folder, "pass")
    return name


def command(name: str, script: Path, *arguments: str) -> list[str]:
    """What Snakemake does for ``script:``."""
    call = f"{warm.prefix(name)} {sys.executable} {script} {' '.join(arguments)}"
    return ["bash", "-c", call.replace("{{", "{").replace("}}", "}")]


ENVIRONMENT = {**os.environ, **warm.ENVIRONMENT}


def run(name: str, folder: Path, text: str, **further: str) -> subprocess.CompletedProcess:
    """A script with this ``text``, run as Snakemake does."""
    script = folder / "tmp1234.train.py"
    script.write_text(text)
    return subprocess.run(
        command(name, script), cwd=folder, env=ENVIRONMENT | further, text=True, capture_output=True
    )  # fmt: skip


def living(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int) -> bool:
    """Whether a process ends within half a minute."""
    for _ in range(3000):
        if not living(pid):
            return True
        time.sleep(0.01)
    return False


IS_FORK = "import os, sys; print('--serve' in open(f'/proc/{os.getppid()}/cmdline').read(), "


def test_a_script_is_itself_in_a_fork(server, tmp_path):
    about = "__name__, sys.argv, os.getcwd(), sys.path[0], tempfile.gettempdir(), os.environ['OF_THE_JOB'], "
    text = f"import tempfile; {IS_FORK}{about}*(name in sys.modules for name in ('numpy', 'colorsys', 'train')))"
    (elsewhere := tmp_path / "elsewhere").mkdir()
    said = run(server, tmp_path, text, OF_THE_JOB="value", TMPDIR=str(elsewhere))
    script = str(tmp_path / "tmp1234.train.py")
    assert said.stderr == ""
    assert said.stdout.split() == [
        "True", "__main__", f"[{script!r}]", str(tmp_path), str(tmp_path), str(elsewhere), "value",
        "True", "True", "False",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [("sys.exit(3)", 3, ""), ("1 / 0", 1, "ZeroDivisionError"), ("pass", 0, ""),
     ("os.kill(os.getpid(), 9)", 137, "killed")],
)  # fmt: skip
def test_a_script_ends_as_it_would_by_itself(server, tmp_path, end, code, words):
    said = run(server, tmp_path, f"import os, sys\nprint('said', flush=True)\n{end}")
    assert (said.returncode, said.stdout) == (code, "said\n")
    assert words in said.stderr


def test_a_script_starts_by_itself_with_several_threads_and_where_nobody_serves(server, tmp_path):
    assert run(server, tmp_path, f"{IS_FORK})").stdout == "True\n"
    assert run(server, tmp_path, f"{IS_FORK})", OMP_NUM_THREADS="2").stdout == "False\n"
    assert run("nobody", tmp_path, f"{IS_FORK})").stdout == "False\n"


def test_no_two_forks_draw_the_same_from_what_nobody_seeded(server, tmp_path):
    assert len({run(server, tmp_path, "import numpy; print(numpy.random.rand())").stdout for _ in range(2)}) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_job_ends_with_the_process_that_asked_and_so_does_what_it_started(server, tmp_path, number):
    script = tmp_path / "job.train.py"
    script.write_text(
        "import os, subprocess, sys\nchild = subprocess.Popen(['sleep', '600'])\n"
        "print(os.getpid(), child.pid, flush=True)\nchild.wait()"
    )
    asked = subprocess.Popen(
        command(server, script), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    job, child = map(int, asked.stdout.readline().split())
    os.killpg(asked.pid, number)
    assert asked.wait() == -number
    assert ends(job)
    assert ends(child)


@pytest.mark.parametrize("who", ["run", "server"])
def test_a_killed_run_or_server_takes_its_jobs_along(tmp_path, who):
    script = tmp_path / "job.train.py"
    script.write_text("import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(600)")
    text = (
        "import os, subprocess, sys\nfrom unlearning_audit.workflow import warm\n"
        "name = warm.start([])\nprint(name, flush=True)\nsys.stdin.read()"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", text], cwd=Path(warm.__file__).parents[2], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    name = started.stdout.readline().strip()
    asked = subprocess.Popen(
        command(name, script), env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    job, server = map(int, asked.stdout.readline().split())
    os.kill(started.pid if who == "run" else server, signal.SIGKILL)
    assert asked.wait() == 128 + signal.SIGKILL
    assert "killed" in asked.stderr.read()
    assert ends(job)
    assert ends(server)
    assert name not in Path("/proc/net/unix").read_text()
    assert run(name, tmp_path, f"{IS_FORK})").stdout == "False\n"
    started.kill()
    started.wait()


@pytest.mark.slow
def test_what_a_server_imports_starts_no_thread_so_that_forks_are_safe():
    modules = [
        "torch", "matplotlib.backends.backend_svg", "pyarrow.parquet", "torchvision.models",
        "transformers.models.gpt2.modeling_gpt2", "unlearning_audit.training.private",
        "art.attacks.inference.membership_inference",
    ]  # fmt: skip
    text = f"import importlib, os\nfor name in {modules}: importlib.import_module(name)\n"
    text += "print(len(os.listdir('/proc/self/task')))"
    said = subprocess.run([sys.executable, "-c", text], env=ENVIRONMENT, text=True, capture_output=True, check=True)
    assert said.stdout == "1\n"
