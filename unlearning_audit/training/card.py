"""Choose the device on which models are computed, and check that torch can use it."""

import functools
import os
import re
from pathlib import Path

import torch

from unlearning_audit.training import device


def use() -> str:
    """Claim this job's device, make it ready, and return "cuda" or "cpu".

    A GPU is used if the machine has one; with several, each process claims its own. The environment variable
    UNLEARNING_DEVICE overrides this. Call it before CUDA is initialised. Raises ValueError with one sentence if a GPU
    exists, or is requested, and torch cannot use it. There is no silent fallback to the processor.
    """
    return _use(device.choice())


@functools.cache
def _use(choice: str) -> str:
    """Claim the device that ``choice`` names (UNLEARNING_DEVICE, or ""), once per process, because a claim changes
    which GPUs are visible."""
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
    """Return the reason why torch cannot compute on the first visible GPU; "" if it can."""
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
    """Return whether a build of torch runs on a card with this compute ``capability``.

    ``architectures`` of the build are such as "sm_90" or "compute_90". Kernels run on cards of the same major and at
    least the same minor number, PTX on all later cards.
    """
    for architecture in architectures:
        kind, _, digits = architecture.partition("_")
        digits = digits.rstrip("af")
        at = int(digits[:-1]), int(digits[-1])
        if capability >= at and (kind == "compute" or capability[0] == at[0]):
            return True
    return False


def describe() -> dict[str, object]:
    """Return those properties of the card on which computed numbers depend, for spec.json: name → JSON value.

    They are its name, compute capability, memory in MiB, driver, CUDA, cuDNN, the precision of products, whether
    kernels are deterministic, and whether long trainings run compiled.
    """
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
    """Return the version of NVIDIA's driver from its ``file``; "" without that file, as with other makers' cards."""
    try:
        match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def deterministic() -> bool:
    """Return whether UNLEARNING_DETERMINISTIC requests the same bits in every run on a GPU."""
    return os.environ.get("UNLEARNING_DETERMINISTIC", "0") not in ("", "0")


def compiled() -> bool:
    """Return whether UNLEARNING_COMPILE requests layers fused by torch's compiler. UNLEARNING_DETERMINISTIC overrides
    it, because fused kernels may not repeat their bits."""
    return os.environ.get("UNLEARNING_COMPILE", "0") not in ("", "0") and not deterministic()


def sentence(error: BaseException) -> str:
    """Return the first line of a CUDA error. The other lines are advice for debugging."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def choose_kernels() -> None:
    """Let cuDNN choose its fastest kernels by trials or, if requested, kernels that give the same bits in every run."""
    if not deterministic():
        torch.backends.cudnn.benchmark = True
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)  # imports torch's compiler, which takes seconds
