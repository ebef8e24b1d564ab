"""GPUs are counted without torch, and every process has one to itself while there are enough, dead ones aside."""

import os
import signal
import subprocess
import sys

import pytest
import torch
from unlearning_audit.plugins import source
from unlearning_audit.training import card
from unlearning_audit.training.device import gpus, restrict, visible

CLAIM = """
import os
from pathlib import Path
from unlearning_audit.training.device import claim_gpu
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
#: Prints the device of a job and the GPUs that it sees.
USE = "import os; from unlearning_audit.training import card; print(card.use(), os.environ['CUDA_VISIBLE_DEVICES'])"


@pytest.fixture(autouse=True)
def undecided(monkeypatch):
    """No variable says which GPUs there are."""
    for name in ("CUDA_VISIBLE_DEVICES", "UNLEARNING_DEVICE"):
        monkeypatch.delenv(name, raising=False)


def devices(folder, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


# ---------------------------------------------------------------- how many there are


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ([], {}, []),
        (["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"], {}, ["0", "1"]),
        (["dri/renderD128", "dri/renderD129", "dri/card0"], {}, []),  # graphics without ROCm
        (["dri/renderD128", "dri/renderD129", "dri/card0", "kfd"], {}, ["0", "1"]),
        (["dri/renderD128", "dri/renderD129", "kfd", "nvidia0"], {}, ["0"]),
        (["dxg"], {}, ["0"]),
        (["nvidia7"], "0,1,3", ["0", "1", "3"]),
        (["nvidia7"], "2", ["2"]),
        (["nvidia7"], "GPU-8932f937, MIG-1/0/0", ["GPU-8932f937", "MIG-1/0/0"]),
        *((["nvidia7"], nothing, []) for nothing in ("", "-1", "NoDevFiles")),
        (["nvidia7"], "1,-1,2", ["1"]),
    ],
)
def test_gpus_are_device_files_or_what_cuda_visible_devices_says(tmp_path, monkeypatch, files, variables, expected):
    devices(tmp_path, *files)
    if isinstance(variables, str):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variables)
    assert visible(tmp_path) == expected
    assert gpus(tmp_path) == len(expected)


@pytest.mark.parametrize(("device", "count"), [("cuda:1", 1), ("cuda", 2), ("cpu", 0), ("", 2)])
def test_one_of_several_cards_may_be_named(tmp_path, monkeypatch, device, count):
    monkeypatch.setenv("UNLEARNING_DEVICE", device)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,MIG-7/1/0")
    assert gpus(tmp_path) == count
    if device == "cuda:1":
        restrict(1, tmp_path)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "MIG-7/1/0"
        with pytest.raises(ValueError, match=r"^UNLEARNING_DEVICE=cuda:1: this process sees 1 GPU, counted from 0"):
            restrict(1, tmp_path)


@pytest.mark.parametrize("device", ["mps", "cuda:", "meta"])
def test_a_device_on_which_nothing_was_tested_is_refused(monkeypatch, device):
    monkeypatch.setenv("UNLEARNING_DEVICE", device)
    with pytest.raises(ValueError, match=rf"^UNLEARNING_DEVICE={device}: models run on cpu, cuda or cuda:N"):
        gpus()


# ---------------------------------------------------------------- who has which


@pytest.fixture
def machine(workdir):
    """A folder of claims of its own, and a function that starts a process there, on as many GPUs as ``dev/`` shows."""
    started = []

    def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": str(source.SCRIPTS), "TMPDIR": str(workdir), **variables}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-c", code, *arguments]
        started.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answers(processes: list[subprocess.Popen]) -> list[str]:
    """The GPU that each has claimed, sorted; waits until it has."""
    return sorted(process.stdout.readline().strip() for process in processes)


@pytest.mark.slow  # ten processes, and what they wait for
def test_no_two_processes_meet_on_a_gpu_however_they_come_and_go(machine, tmp_path):
    devices(tmp_path / "dev", "nvidia0", "nvidia1", "nvidia2")
    running = [machine(TAKE, "killed") for _ in range(3)]
    deaths = []
    for number in range(24):
        oldest = running.pop(0)
        output, complained = oldest.communicate()
        assert complained == "", output + complained
        deaths.append(oldest.returncode)
        running.append(machine(TAKE, "killed" if number % 2 else "ended"))
    assert {0, -signal.SIGKILL} == set(deaths)
    left = list((tmp_path / f"unlearning-gpus-{os.getuid()}").glob("*.*"))
    assert len(left) <= 6, "the last three, and what was left since one of them looked"


def test_what_a_cluster_gave_is_kept_and_several_gifts_are_divided(machine, tmp_path):
    devices(tmp_path / "dev", *(f"nvidia{number}" for number in range(4)))
    for given, expected in (("3", ["3", "3"]), ("", ["", ""]), ("MIG-a/1/0,MIG-a/2/0", ["MIG-a/1/0", "MIG-a/2/0"])):
        assert answers([machine(HOLD, CUDA_VISIBLE_DEVICES=given) for _ in range(2)]) == expected


@pytest.mark.parametrize("names", [[], ["nvidia0"]])
def test_without_a_choice_nothing_is_set_or_written(machine, tmp_path, names):
    devices(tmp_path / "dev", "null", *names)
    assert answers([machine(HOLD)]) == ["None"]
    assert {path.name for path in tmp_path.iterdir()} == {"dev"}


@pytest.mark.slow  # it imports torch in a process of its own
def test_a_job_that_is_sent_to_the_cpu_claims_nothing(machine):
    assert answers([machine(USE, CUDA_VISIBLE_DEVICES="0,1", UNLEARNING_DEVICE="cpu")]) == ["cpu 0,1"]


# ---------------------------------------------------------------- what torch can use


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch can use the GPU that is here")
@pytest.mark.parametrize("variables", [{"CUDA_VISIBLE_DEVICES": "0"}, {"UNLEARNING_DEVICE": "cuda"}])
def test_a_card_that_torch_cannot_use_ends_the_job_in_a_sentence(monkeypatch, variables):
    """Nothing is computed on the processor unless somebody asks for it."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)  # so that it is put back
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    card._use.cache_clear()
    with pytest.raises(ValueError, match=r"cannot use it: .* mend that, or set UNLEARNING_DEVICE=cpu to compute on"):
        card.use()
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")
    assert card.use() == "cpu"
