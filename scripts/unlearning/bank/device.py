"""What this machine has, and which of it a job may take."""

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

DEVICES = Path("/dev")
NO_DEVICE = ("", "-1", "NoDevFiles")  # the last is SLURM's word

#: Locked files that say which GPU this process has taken; the system lets go of them when it ends, however it ends.
_claimed: list[TextIO] = []


def visible(devices: Path = DEVICES) -> list[str]:
    """NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, without importing torch.

    Where that variable is set, by a cluster or by hand, it decides. CUDA, too, ignores all that follows a name
    that is none.
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
    """Keep this process, and what it starts, to the GPU that fewest other jobs of this user have claimed.

    Snakemake counts GPUs but hands out none. As long as there are no more jobs than GPUs, each has one to itself; more
    of them share evenly. To be called before CUDA is initialised, which reads CUDA_VISIBLE_DEVICES once. The claim
    ends with the process. Does nothing where there is no choice. Raises ValueError if claims cannot be written.
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
    """Nobody else counts or makes claims meanwhile."""
    with (folder / "door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _prefix(name: str) -> str:
    """Of the claims' files; a device may be called MIG-GPU-…/1/0."""
    return f"{name.replace('/', '_')}."


def _claims(folder: Path, name: str) -> int:
    """How many living processes claim a GPU; what dead ones left is removed."""
    living = 0
    for path in folder.glob(f"{_prefix(name)}*"):
        with path.open() as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                living += 1
    return living
