"""GPUs are counted without torch, and every process has one to itself while there are enough, dead ones aside."""

import collections
import os
import signal
import subprocess
import sys

import pytest

from unlearning.bank.device import gpus, visible
from unlearning.plugins import source

CLAIM = """
import os
from pathlib import Path
from unlearning.bank.device import claim_gpu
claim_gpu(Path("dev"))
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
"""
#: Waits until its input ends, as a training waits for its last step.
HOLD = f"{CLAIM}\nimport sys; sys.stdin.read()"
#: Takes a GPU as the only one; fails if another process is there. Every other one dies a violent death.
TAKE = f"""
{CLAIM}
import signal, sys, time
mark = os.open(os.environ["CUDA_VISIBLE_DEVICES"], os.O_CREAT | os.O_EXCL)
time.sleep(0.05)
os.unlink(os.environ["CUDA_VISIBLE_DEVICES"])
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder of claims of its own, and a function that starts a process there, on as many GPUs as ``dev/`` shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("UNLEARNING_DEVICE", raising=False)
    started = []

    def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": str(source.SCRIPTS), "TMPDIR": str(tmp_path), **variables}
        command = [sys.executable, "-c", code, *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def devices(count: int) -> None:
    os.makedirs("dev", exist_ok=True)
    for name in [*(f"nvidia{index}" for index in range(count)), "nvidiactl", "nvidia-uvm", "null"]:
        open(f"dev/{name}", "w").close()


def answers(processes: list[subprocess.Popen]) -> list[str]:
    """The GPU that each has claimed; waits until it has."""
    return [process.stdout.readline().strip() for process in processes]


def test_only_numbered_devices_are_gpus(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("UNLEARNING_DEVICE", raising=False)
    assert gpus(tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert gpus(tmp_path) == 2
    assert visible(tmp_path) == ["0", "1"]
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")
    assert gpus(tmp_path) == 0


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("0,1,3", ["0", "1", "3"]), ("2", ["2"]), ("GPU-8932f937, MIG-1/0/0", ["GPU-8932f937", "MIG-1/0/0"]), ("", []),
     ("-1", []), ("NoDevFiles", []), ("1,-1,2", ["1"])],
)  # fmt: skip
def test_cuda_visible_devices_decides_where_it_is_set(tmp_path, monkeypatch, variable, expected):
    (tmp_path / "nvidia7").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert visible(tmp_path) == expected


def test_as_many_processes_as_gpus_have_one_each(machine):
    devices(4)
    assert sorted(answers([machine(HOLD) for _ in range(4)])) == ["0", "1", "2", "3"]


def test_more_processes_share_evenly(machine):
    devices(3)
    found = collections.Counter(answers([machine(HOLD) for _ in range(9)]))
    assert found == {"0": 3, "1": 3, "2": 3}


def test_a_process_that_ends_or_is_killed_leaves_its_gpu_to_the_next(machine):
    devices(2)
    first, second = machine(HOLD), machine(HOLD)
    taken = dict(zip(answers([first, second]), (first, second), strict=True))
    taken["0"].send_signal(signal.SIGKILL)
    taken["0"].wait()
    third = machine(HOLD)
    assert answers([third]) == ["0"]
    taken["1"].communicate()
    assert answers([machine(HOLD)]) == ["1"]


def test_no_two_processes_meet_on_a_gpu_however_they_come_and_go(machine, tmp_path):
    devices(3)
    running = [machine(TAKE, "killed") for _ in range(3)]
    deaths = []
    for number in range(24):
        oldest = running.pop(0)
        said, complained = oldest.communicate()
        assert complained == "", said + complained
        deaths.append(oldest.returncode)
        running.append(machine(TAKE, "killed" if number % 2 else "ended"))
    assert {0, -signal.SIGKILL} == set(deaths)
    left = list((tmp_path / f"unlearning-gpus-{os.getuid()}").glob("*.*"))
    assert len(left) <= 6, "the last three, and what was left since one of them looked"


def test_what_a_cluster_gave_is_kept_and_several_gifts_are_divided(machine):
    devices(4)
    assert answers([machine(HOLD, CUDA_VISIBLE_DEVICES="3") for _ in range(2)]) == ["3", "3"]
    assert answers([machine(HOLD, CUDA_VISIBLE_DEVICES="")]) == [""]
    assert sorted(answers([machine(HOLD, CUDA_VISIBLE_DEVICES="1,2") for _ in range(2)])) == ["1", "2"]
    names = ["MIG-a/1/0", "MIG-a/2/0"]
    assert sorted(answers([machine(HOLD, CUDA_VISIBLE_DEVICES=",".join(names)) for _ in range(2)])) == names


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_choice_nothing_is_set_or_written(machine, tmp_path, count):
    devices(count)
    assert answers([machine(HOLD)]) == ["None"]
    assert {path.name for path in tmp_path.iterdir()} == {"dev"}


def test_claims_that_cannot_be_written_are_told_in_a_sentence(machine, tmp_path):
    devices(2)
    (tmp_path / f"unlearning-gpus-{os.getuid()}").write_text("a file is in the way")
    _, complained = machine(HOLD).communicate()
    assert complained.splitlines()[-1].startswith(f"ValueError: {tmp_path}/unlearning-gpus-{os.getuid()}: a GPU could")


def test_a_job_that_is_sent_to_the_cpu_claims_nothing(machine, tmp_path):
    devices(2)
    code = "import os\nfrom unlearning.workflow.open_bank import device\n"
    code += "print(device(), os.environ['CUDA_VISIBLE_DEVICES'])"
    assert answers([machine(code, CUDA_VISIBLE_DEVICES="0,1", UNLEARNING_DEVICE="cpu")]) == ["cpu 0,1"]
    assert answers([machine(code, CUDA_VISIBLE_DEVICES="0,1", UNLEARNING_DEVICE="cuda")]) == ["cuda 0"]
