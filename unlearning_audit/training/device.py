"""Find this machine's GPUs and claim one for a job. The module does not import torch, so that planning can use it."""

import fcntl
import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import IO

#: The folder in which the system lists devices, and names in CUDA_VISIBLE_DEVICES that stand for none.
DEVICES = Path("/dev")
NO_DEVICE = ("", "-1", "NoDevFiles")  # the last is how SLURM says none

#: Locked files that mark the GPU which this process claims. The system releases the locks however the process ends.
_claimed: list[IO[str]] = []


def visible(devices: Path = DEVICES) -> list[str]:
    """Return the GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES.

    If that variable is set, it decides. As in CUDA, everything after an invalid name is ignored. Otherwise files in the
    folder ``devices`` are counted: those of NVIDIA's driver; without them, the render nodes beside ROCm's /dev/kfd; or
    one GPU for /dev/dxg, the single file of Windows' subsystem for Linux.
    """
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if mask is not None:
        return list(itertools.takewhile(lambda name: name not in NO_DEVICE, map(str.strip, mask.split(","))))
    count = sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia*"))
    if not count and (devices / "kfd").exists():
        count = len([*devices.glob("dri/renderD*")])
    if not count and (devices / "dxg").exists():
        count = 1
    return [str(index) for index in range(count)]


def choice() -> str:
    """Return the value of UNLEARNING_DEVICE: "cpu", "cuda", "cuda:N" with the number of a visible GPU, or "" if it is
    not set.

    Raises ValueError for any other device, such as mps or xpu, on which the engine has not been tested.
    """
    device = os.environ.get("UNLEARNING_DEVICE", "")
    if re.fullmatch(r"|cpu|cuda(:\d+)?", device):
        return device
    raise ValueError(
        f"UNLEARNING_DEVICE={device}: models run on cpu, cuda or cuda:N (AMD's cards are cuda, too); set one of these"
    )


def gpus(devices: Path = DEVICES) -> int:
    """Return how many GPUs jobs on this machine may share; 0 if UNLEARNING_DEVICE is cpu, and at most 1 if it names one
    GPU.

    Raises ValueError if UNLEARNING_DEVICE is another kind of device.
    """
    device, count = choice(), len(visible(devices))
    return 0 if device == "cpu" else min(count, 1) if ":" in device else count


def restrict(number: int, devices: Path = DEVICES) -> None:
    """Let this process and its children see only the visible GPU with this number, which becomes their first.

    Call it before CUDA is initialised. Raises ValueError if there is no such GPU.
    """
    names = visible(devices)
    if number >= len(names):
        count = f"{len(names)} GPU{'' if len(names) == 1 else 's'}"
        raise ValueError(f"UNLEARNING_DEVICE=cuda:{number}: this process sees {count}, counted from 0")
    os.environ["CUDA_VISIBLE_DEVICES"] = names[number]


def claim_gpu(devices: Path = DEVICES) -> None:
    """Restrict this process and its children to the GPU with the fewest claims by other jobs of this user.

    Snakemake counts GPUs but does not assign them. With at most as many jobs as GPUs, each job has its own; more jobs
    share evenly. Call it before CUDA is initialised, because CUDA reads CUDA_VISIBLE_DEVICES once. The claim ends with
    the process. With fewer than two GPUs nothing is done. Raises ValueError if claims cannot be written.
    """
    names = visible(devices)
    if len(names) < 2:
        return
    folder = Path(tempfile.gettempdir(), f"unlearning-gpus-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with (folder / "door").open("w") as door:  # the lock under which claims are counted and made
            fcntl.flock(door, fcntl.LOCK_EX)
            name = min(names, key=lambda name: _claims(folder, name))
            claim = tempfile.NamedTemporaryFile("w", prefix=_prefix(name), dir=folder, delete=False)  # noqa: SIM115
            fcntl.flock(claim, fcntl.LOCK_EX)
    except OSError as error:
        raise ValueError(
            f"{folder}: a GPU could not be claimed here ({error.strerror}); "
            "choose one yourself with CUDA_VISIBLE_DEVICES, or another folder with TMPDIR"
        ) from error
    _claimed.append(claim)
    os.environ["CUDA_VISIBLE_DEVICES"] = name


def _prefix(name: str) -> str:
    """Return the prefix of the names of the claim files of the GPU ``name``. A device may be called MIG-GPU-…/1/0, so
    slashes are replaced."""
    return f"{name.replace('/', '_')}."


def _claims(folder: Path, name: str) -> int:
    """Return how many living processes claim the GPU ``name``, and delete the claim files in ``folder`` of ended
    ones."""
    living = 0
    for path in folder.glob(f"{_prefix(name)}*"):
        with path.open() as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:  # a living process holds the lock of its claim
                living += 1
    return living
