"""The GPUs of this machine, and which of them a job uses."""

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

DEVICES = Path("/dev")
NO_DEVICE = ("", "-1", "NoDevFiles")  # the last is how SLURM says none

#: Locked files that mark the GPU this process claims; the system releases the locks however the process ends.
_claimed: list[TextIO] = []


def visible(devices: Path = DEVICES) -> list[str]:
    """NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, without importing torch.

    If that variable is set, it decides. As in CUDA, everything after an invalid name is ignored.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return list(itertools.takewhile(lambda name: name not in NO_DEVICE, map(str.strip, named.split(","))))
    count = sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia*"))
    return [str(index) for index in range(count)]


def gpus(devices: Path = DEVICES) -> int:
    """How many GPUs jobs on this machine may share; none if UNLEARNING_DEVICE sends them to the CPU."""
    return 0 if os.environ.get("UNLEARNING_DEVICE", "").startswith("cpu") else len(visible(devices))


def claim_gpu(devices: Path = DEVICES) -> None:
    """Restrict this process and its children to the GPU with the fewest claims by other jobs of this user.

    Snakemake counts GPUs but does not assign them. Up to as many jobs as GPUs have one each; more jobs share evenly.
    To be called before CUDA is initialised, which reads CUDA_VISIBLE_DEVICES once. The claim ends with the process.
    Does nothing with fewer than two GPUs. Raises ValueError if claims cannot be written.
    """
    choice = visible(devices)
    if len(choice) < 2:
        return
    folder = Path(tempfile.gettempdir(), f"unlearning-gpus-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with _alone(folder):
            chosen = min(choice, key=lambda name: _claims(folder, name))
            claim = tempfile.NamedTemporaryFile("w", prefix=_prefix(chosen), dir=folder, delete=False)  # noqa: SIM115
            fcntl.flock(claim, fcntl.LOCK_EX)
    except OSError as error:
        raise ValueError(
            f"{folder}: a GPU could not be claimed here ({error.strerror}); "
            "choose one yourself with CUDA_VISIBLE_DEVICES, or another folder with TMPDIR"
        ) from error
    _claimed.append(claim)
    os.environ["CUDA_VISIBLE_DEVICES"] = chosen


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
