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
    exists, or is requested, and cannot be claimed or used by torch, and for any other value of that variable. There is
    no silent fallback to the processor.
    """
    return _use(device.choice())


@functools.cache
def _use(choice: str) -> str:
    """Claim the device that ``choice`` names, the value of UNLEARNING_DEVICE, make it ready, and return "cuda" or
    "cpu". For "", that is a GPU if the machine has one, else the processor.

    This is done once per process, because a claim changes which GPUs are visible. Raises ValueError if there is no GPU
    of that number, or if the GPU cannot be claimed, or torch cannot use it.
    """
    if choice == "cpu" or (choice == "" and not device.visible()):
        return "cpu"
    if ":" in choice:  # cuda:N
        device.restrict(int(choice.removeprefix("cuda:")))
    else:
        device.claim_gpu()
    choose_kernels()
    try:  # whether torch can add two numbers there
        torch.ones(1, device="cuda").add_(1).cpu()
    except (RuntimeError, AssertionError) as error:
        build = torch.version.cuda or torch.version.hip or "processors alone"
        raise ValueError(
            f"a GPU is here, but torch {torch.__version__} cannot use it: {first_line(error)} (this build is for "
            f"{build}); mend that, or set UNLEARNING_DEVICE=cpu to compute on the processor"
        ) from None
    return "cuda"


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
    """Return the version of NVIDIA's driver from its ``file``; "" if the file does not exist, as with other makers'
    cards, or states no version."""
    try:
        match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""  # the part of the match in parentheses, the version


def deterministic() -> bool:
    """Return whether UNLEARNING_DETERMINISTIC requests the same bits in every run on a GPU."""
    return os.environ.get("UNLEARNING_DETERMINISTIC", "0") not in ("", "0")


def compiled() -> bool:
    """Return whether UNLEARNING_COMPILE requests layers fused by torch's compiler. UNLEARNING_DETERMINISTIC overrides
    it, because fused kernels may not repeat their bits."""
    return os.environ.get("UNLEARNING_COMPILE", "0") not in ("", "0") and not deterministic()


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text without the full stop, or the error's type if it has no text. Further
    lines of CUDA's errors are advice for debugging."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def choose_kernels() -> None:
    """Let cuDNN find its fastest kernels by trials. But if UNLEARNING_DETERMINISTIC requests it, let torch use only
    kernels that give the same bits in every run."""
    if not deterministic():
        torch.backends.cudnn.benchmark = True
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats its bits in a fixed workspace only
    torch.use_deterministic_algorithms(True)  # imports torch's compiler, which takes seconds
