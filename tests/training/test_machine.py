"""GPUs are counted without torch, and every process has one to itself while there are enough, dead ones aside."""

import json
import os
import signal
import subprocess
import sys

import pytest
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


def test_a_process_that_ends_or_is_killed_leaves_its_gpu_to_the_next(machine):
    devices(2)
    first, second = machine(HOLD), machine(HOLD)
    holders = dict(zip(answers([first, second]), (first, second), strict=True))
    holders["0"].send_signal(signal.SIGKILL)
    holders["0"].wait()
    third = machine(HOLD)
    assert answers([third]) == ["0"]
    holders["1"].communicate()
    assert answers([machine(HOLD)]) == ["1"]


def test_no_two_processes_meet_on_a_gpu_however_they_come_and_go(machine, tmp_path):
    devices(3)
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


def test_a_job_that_is_sent_to_the_cpu_claims_nothing(machine, tmp_path):
    devices(2)
    code = "import os\nfrom unlearning_audit.training import card\n"
    code += "print(card.use(), os.environ['CUDA_VISIBLE_DEVICES'])"
    assert answers([machine(code, CUDA_VISIBLE_DEVICES="0,1", UNLEARNING_DEVICE="cpu")]) == ["cpu 0,1"]


BUILD_FOR_PROCESSORS = """
torch.version.cuda = torch.version.hip = None
"""
OLD_CARD = """
torch.version.cuda = "13.0"
torch.cuda.init = lambda: None
torch.cuda.get_device_capability = lambda: (7, 0)
torch.cuda.get_device_name = lambda: "Tesla V100"
torch.cuda.get_arch_list = lambda: ["sm_75", "sm_80", "sm_90", "compute_90"]
"""
NO_DRIVER = """
torch.version.cuda = "13.0"
def init():
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 12040).\\nPlease update it.")
torch.cuda.init = init
"""
#: Imports torch once; then each pair (changes of torch, variables) in a fork: what is printed, and the traceback.
FORKS = """
import io, json, os, sys, traceback
from contextlib import redirect_stdout
import torch
from unlearning_audit.training import card
for code, variables in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ.update(variables)
        printed, complaint = io.StringIO(), ""
        try:
            with redirect_stdout(printed):
                exec(code)
                print(card.use())
        except Exception:
            complaint = traceback.format_exc()
        print(json.dumps([printed.getvalue(), complaint]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (BUILD_FOR_PROCESSORS, "it was built for processors alone, so install a build for CUDA (or ROCm)"),
        (
            OLD_CARD,
            "Tesla V100 has compute capability 7.0, and this build has kernels for sm_75, sm_80, sm_90",
        ),
        (NO_DRIVER, "The NVIDIA driver on your system is too old (found version 12040) (this build is for CUDA 13.0)"),
    ],
    ids=["without CUDA", "old card", "old driver"],
)
def test_a_card_that_torch_cannot_use_ends_the_job_in_a_sentence(refusals, code, reason):
    """Nothing is computed on the processor unless somebody asks for it."""
    *refused, (printed, complaint) = refusals[code]
    assert (printed, complaint) == ("cpu\n", "")
    for printed, complaint in refused:
        assert printed == ""
        assert f"cannot use it: {reason}" in complaint.splitlines()[-1]
        assert complaint.endswith("mend that, or set UNLEARNING_DEVICE=cpu to compute on the processor\n")


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """Changes of torch → (what was printed, the traceback) with a card, with one that was asked for, and without."""
    folder = tmp_path_factory.mktemp("refusals")
    environments = ({"CUDA_VISIBLE_DEVICES": "0"}, {"UNLEARNING_DEVICE": "cuda"},
                    {"CUDA_VISIBLE_DEVICES": "0", "UNLEARNING_DEVICE": "cpu"})  # fmt: skip
    codes = (BUILD_FOR_PROCESSORS, OLD_CARD, NO_DRIVER)
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "UNLEARNING_DEVICE")}
    run = subprocess.run(
        [sys.executable, "-c", FORKS, json.dumps([(code, variables) for code in codes for variables in environments])],
        env={**environment, "PYTHONPATH": str(source.SCRIPTS), "TMPDIR": str(folder)}, cwd=folder, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    outcomes = [json.loads(line) for line in run.stdout.splitlines()]
    return {code: outcomes[3 * number : 3 * number + 3] for number, code in enumerate(codes)}


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


@pytest.mark.parametrize("device", ["mps", "xpu", "cuda:", "gpu", "meta"])
def test_a_device_on_which_nothing_was_tested_is_refused(monkeypatch, device):
    monkeypatch.setenv("UNLEARNING_DEVICE", device)
    with pytest.raises(ValueError, match=rf"^UNLEARNING_DEVICE={device}: models run on cpu, cuda or cuda:N"):
        gpus()


def test_cards_of_other_drivers_are_counted(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "dri").mkdir()
    for name in ("renderD128", "renderD129", "card0"):
        (tmp_path / "dri" / name).touch()
    assert visible(tmp_path) == []  # graphics without ROCm
    (tmp_path / "kfd").touch()
    assert visible(tmp_path) == ["0", "1"]
    (tmp_path / "nvidia0").touch()
    assert visible(tmp_path) == ["0"]
    for path in (tmp_path / "kfd", tmp_path / "nvidia0"):
        path.unlink()
    (tmp_path / "dxg").touch()
    assert visible(tmp_path) == ["0"]


@pytest.mark.parametrize(
    ("capability", "architectures", "expected"),
    [
        ((9, 0), ["sm_90"], True),
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((7, 0), ["sm_75", "sm_80"], False),
        ((12, 0), ["sm_90", "compute_90"], True),
        ((12, 0), ["sm_90"], False),
        ((10, 3), ["sm_100a", "sm_120"], True),
    ],
)
def test_a_build_runs_on_cards_of_its_generation_and_by_ptx_on_later_ones(capability, architectures, expected):
    assert card.supported(capability, architectures) is expected
