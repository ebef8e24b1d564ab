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

    If that variable is set, these are the names in it, up to the first that stands for no device: CUDA ignores the
    others, too. Otherwise files in the folder ``devices`` are counted: those of NVIDIA's driver; without them, the
    render nodes beside ROCm's /dev/kfd; or one GPU for /dev/dxg, the single file of Windows' subsystem for Linux.
    """
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return list(itertools.takewhile(lambda name: name not in NO_DEVICE, map(str.strip, listed.split(","))))
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
    """Return how many GPUs jobs on this machine may share: none if UNLEARNING_DEVICE is cpu, at most 1 if it is
    cuda:N, and all that are visible if it is cuda or not set.

    Raises ValueError if UNLEARNING_DEVICE is another kind of device.
    """
    device, count = choice(), len(visible(devices))
    if device == "cpu":
        return 0
    return min(count, 1) if ":" in device else count


def restrict(number: int, devices: Path = DEVICES) -> None:
    """Let this process and its children see a single GPU: the visible one with this ``number``, from 0 on. It becomes
    their cuda:0.

    Call it before CUDA is initialised. Raises ValueError if there is no such GPU.
    """
    names = visible(devices)
    if number >= len(names):
        count = "1 GPU" if len(names) == 1 else f"{len(names)} GPUs"
        raise ValueError(f"UNLEARNING_DEVICE=cuda:{number}: this process sees {count}, counted from 0")
    os.environ["CUDA_VISIBLE_DEVICES"] = names[number]


def claim_gpu(devices: Path = DEVICES) -> None:
    """Restrict this process and its children to one GPU, that with the fewest claims by other jobs of this user, and
    claim it. With fewer than two GPUs nothing is done.

    Snakemake counts GPUs but does not assign them. With at most as many jobs as GPUs, each job so has its own; more
    jobs share evenly. A claim is a file that this process locks, and ends with the process. Call this function before
    CUDA is initialised, because CUDA reads CUDA_VISIBLE_DEVICES once. Raises ValueError if claims cannot be written.
    """
    names = visible(devices)
    if len(names) < 2:
        return
    folder = Path(tempfile.gettempdir(), f"unlearning-gpus-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with (folder / "door").open("w") as door:  # only the process that locks this file may count and make claims
            fcntl.flock(door, fcntl.LOCK_EX)
            name = min(names, key=lambda name: _count_claims(folder, name))
            claim = tempfile.NamedTemporaryFile("w", prefix=_claim_prefix(name), dir=folder, delete=False)  # noqa: SIM115
            fcntl.flock(claim, fcntl.LOCK_EX)
    except OSError as error:
        raise ValueError(
            f"{folder}: a GPU could not be claimed here ({error.strerror}); "
            "choose one yourself with CUDA_VISIBLE_DEVICES, or another folder with TMPDIR"
        ) from error
    _claimed.append(claim)  # kept open, because closing the file would release its lock
    os.environ["CUDA_VISIBLE_DEVICES"] = name


def _claim_prefix(name: str) -> str:
    """Return how the names of the claim files of the GPU ``name`` begin. A GPU may be called MIG-GPU-…/1/0, so slashes
    are replaced."""
    return f"{name.replace('/', '_')}."


def _count_claims(folder: Path, name: str) -> int:
    """Count the living processes that claim the GPU ``name``, and delete the claim files that ended processes left in
    ``folder``. A claim file is locked while its process lives."""
    living = 0
    for path in folder.glob(f"{_claim_prefix(name)}*"):
        with path.open() as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:  # a living process holds the lock of its claim
                living += 1
    return living
