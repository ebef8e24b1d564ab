"""Which device models are computed on, and whether torch can use the card that is there."""

import functools
import os
import re
from pathlib import Path

import torch

from unlearning_audit.training import device


def use() -> str:
    """Claim this job's device, make it ready, and return "cuda" or "cpu".

    A GPU is used if the machine has one, this process's own if there are several; UNLEARNING_DEVICE decides otherwise.
    To be called before CUDA is initialised. Raises ValueError with one sentence where a GPU is there, or demanded, and
    torch cannot use it: nothing falls back to the processor in silence.
    """
    return _use(device.choice())


@functools.cache
def _use(choice: str) -> str:
    """The same for UNLEARNING_DEVICE = ``choice``; once per process, because the claim changes what is visible."""
    if choice == "cpu" or not (choice or device.visible()):
        return "cpu"
    if ":" in choice:
        device.restrict(int(choice.partition(":")[2]))
    else:
        device.claim_gpu()
    choose_kernels()
    reason = obstacle()
    if reason:
        raise ValueError(
            f"a GPU is here, but torch {torch.__version__} cannot use it: {reason}; mend that, or set "
            "UNLEARNING_DEVICE=cpu to compute on the processor"
        )
    return "cuda"


def obstacle() -> str:
    """Why torch cannot compute on the first visible GPU; empty if it can."""
    if torch.version.cuda is None and torch.version.hip is None:
        return "it was built for processors alone, so install a build for CUDA (or ROCm)"
    try:
        torch.cuda.init()
        major, minor = torch.cuda.get_device_capability()
    except (RuntimeError, AssertionError) as error:
        return f"{sentence(error)} (this build is for CUDA {torch.version.cuda})"
    if torch.version.hip is None and not supported((major, minor), torch.cuda.get_arch_list()):
        return (
            f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, and this build has kernels for "
            f"{', '.join(torch.cuda.get_arch_list())}"
        )
    return ""


def supported(capability: tuple[int, int], architectures: list[str]) -> bool:
    """Whether one of a build's ``architectures`` ("sm_90", "compute_90", …) runs on a card of that compute
    ``capability``: kernels on cards of the same major and at least the same minor number, PTX on all later ones."""
    for architecture in architectures:
        kind, _, digits = architecture.partition("_")
        digits = digits.rstrip("af")
        at = int(digits[:-1]), int(digits[-1])
        if capability >= at and (kind == "compute" or capability[0] == at[0]):
            return True
    return False


def describe() -> dict[str, object]:
    """What a card's numbers depend on, for spec.json: its name, compute capability, memory in MiB, driver, CUDA, cuDNN,
    how products are computed, and whether layers of long trainings are fused. JSON values only."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_mib": properties.total_memory >> 20,
        "driver": driver(),
        "cuda": torch.version.cuda or torch.version.hip,
        "cudnn": torch.backends.cudnn.version(),
        "tf32": {"convolutions": torch.backends.cudnn.allow_tf32, "products": torch.backends.cuda.matmul.allow_tf32},
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "compiled": compiled(),
    }


def driver(file: Path = Path("/proc/driver/nvidia/version")) -> str:
    """The version of NVIDIA's driver, as its file says; empty where there is none, as of other makers."""
    try:
        match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def deterministic() -> bool:
    """Whether UNLEARNING_DETERMINISTIC asks for the same bits in every run on a GPU."""
    return os.environ.get("UNLEARNING_DETERMINISTIC", "0") not in ("", "0")


def compiled() -> bool:
    """Whether UNLEARNING_COMPILE asks for layers that torch's compiler fuses. Kernels that repeat their bits are not
    promised then, so UNLEARNING_DETERMINISTIC has the last word."""
    return os.environ.get("UNLEARNING_COMPILE", "0") not in ("", "0") and not deterministic()


def sentence(error: BaseException) -> str:
    """The first line of an error of CUDA's, whose others are advice for debugging."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def choose_kernels() -> None:
    """Let cuDNN choose its fastest kernels by trying them, or those that give the same bits in every run."""
    if not deterministic():
        torch.backends.cudnn.benchmark = True
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)  # imports torch's compiler, which takes seconds
