"""The GPUs of this machine, and which of them a job uses; without torch, so that planning may ask."""

import fcntl
import itertools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DEVICES = Path("/dev")
NO_DEVICE = ("", "-1", "NoDevFiles")  # the last is how SLURM says none

#: Locked files that mark the GPU this process claims; the system releases the locks however the process ends.
_claimed: list[IO[str]] = []


def visible(devices: Path = DEVICES) -> list[str]:
    """GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.

    If that variable is set, it decides. As in CUDA, everything after an invalid name is ignored. Otherwise the device
    files count: those of NVIDIA's driver; where there are none, the render nodes beside ROCm's /dev/kfd; and under
    Windows' subsystem, whose single file /dev/dxg stands for all cards, one.
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
    """What UNLEARNING_DEVICE says: "cpu", "cuda", "cuda:N" with the number of a visible GPU, or "" if it says nothing.

    Raises ValueError for any other device, such as mps or xpu, on which the engine was never tested.
    """
    device = os.environ.get("UNLEARNING_DEVICE", "")
    if re.fullmatch(r"|cpu|cuda(:\d+)?", device):
        return device
    raise ValueError(
        f"UNLEARNING_DEVICE={device}: models run on cpu, cuda or cuda:N (AMD's cards are cuda, too); set one of these"
    )


def gpus(devices: Path = DEVICES) -> int:
    """How many GPUs jobs on this machine may share; none if UNLEARNING_DEVICE sends them to the CPU.

    Raises ValueError as `choice`.
    """
    device = choice()
    return 0 if device == "cpu" else min(len(visible(devices)), 1) if ":" in device else len(visible(devices))


def emulates_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine's processor has no instructions for products in bfloat16, which then take five to ten
    times as long as in single precision; False where its file does not say."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), None)
    return flags is not None and not {"avx512_bf16", "amx_bf16", "bf16"} & set(flags)


def restrict(number: int, devices: Path = DEVICES) -> None:
    """Let this process and its children see the visible GPU of that number alone, so that it is their first.

    To be called before CUDA is initialised. Raises ValueError if there is no such GPU.
    """
    names = visible(devices)
    if number >= len(names):
        count = f"{len(names)} GPU{'' if len(names) == 1 else 's'}"
        raise ValueError(f"UNLEARNING_DEVICE=cuda:{number}: this process sees {count}, counted from 0")
    os.environ["CUDA_VISIBLE_DEVICES"] = names[number]


def claim_gpu(devices: Path = DEVICES) -> None:
    """Restrict this process and its children to the GPU with the fewest claims by other jobs of this user.

    Snakemake counts GPUs but does not assign them. Up to as many jobs as GPUs have one each; more jobs share evenly.
    To be called before CUDA is initialised, which reads CUDA_VISIBLE_DEVICES once. The claim ends with the process.
    Does nothing with fewer than two GPUs. Raises ValueError if claims cannot be written.
    """
    names = visible(devices)
    if len(names) < 2:
        return
    folder = Path(tempfile.gettempdir(), f"unlearning-gpus-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with _alone(folder):
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


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock under which claims are counted and made."""
    with (folder / "door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _prefix(name: str) -> str:
    """Prefix of the names of claim files; a device may be called MIG-GPU-…/1/0."""
    return f"{name.replace('/', '_')}."


def _claims(folder: Path, name: str) -> int:
    """How many living processes claim a GPU; files of dead ones are removed."""
    living = 0
    for path in folder.glob(f"{_prefix(name)}*"):
        with path.open() as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                living += 1
    return living
