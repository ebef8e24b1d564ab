"""Steps that training and unlearning share: opening a bank and writing models and logits."""

import os

import numpy as np
import torch

from unlearning.artifacts.arrays import Data, Logits, Membership
from unlearning.artifacts.files import FailedError
from unlearning.bank.bank import Bank
from unlearning.bank.device import claim_gpu
from unlearning.bank.recipe import Recipe
from unlearning.bank.streams import Rows
from unlearning.plugins import registry
from unlearning.plugins.guard import PluginError, guard, ours
from unlearning.workflow.attempt import check_model

# One thread per process: more would change the last bits of sums and slow small models down.
torch.set_num_threads(1)


def prepare_gpu() -> None:
    """Let cuDNN choose its fastest kernels by trying them; with UNLEARNING_DETERMINISTIC=1, use only kernels that give
    the same bits in every run instead. To be called before CUDA is initialised."""
    if os.environ.get("UNLEARNING_DETERMINISTIC", "0") in ("", "0"):
        torch.backends.cudnn.benchmark = True
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)  # imports torch's compiler, which takes seconds


def device() -> str:
    """The GPU if there is one, this process's own if there are several, else the CPU; UNLEARNING_DEVICE overrides."""
    wanted = os.environ.get("UNLEARNING_DEVICE")
    if wanted not in (None, "", "cuda"):
        return wanted
    claim_gpu()
    prepare_gpu()
    return wanted or ("cuda" if torch.cuda.is_available() else "cpu")


def open_bank(data: Data, membership: Membership, settings: dict, place: dict) -> Bank:
    """A bank of fresh models for the given memberships. Raises FailedError for an architecture that cannot be used."""
    at = device()
    try:
        architecture = registry.load("models", settings["model"], place.get("file"))
        options = architecture.Options(**settings["options"])
        with guard(architecture.__file__):
            bank = Bank.create(
                lambda: architecture.build(options, data.x.shape[1:], data.classes),
                data.x,
                membership.trained_labels(data.y),
                membership.seed,
                recipe=Recipe(**settings["recipe"]),
                device=at,
            )
        if not ours(architecture.__file__):
            check_model(bank, data.classes, architecture.__file__)
    except PluginError as error:
        raise FailedError("model", str(error)) from error
    return bank


def dump(
    bank: Bank,
    data: Data,
    models: str,
    logits: str,
    forget: np.ndarray,
    gradients: bool | str = False,
    copies: np.ndarray | None = None,
) -> dict:
    """Write weights and the logits of every sample; return facts for the spec.

    ``gradients``: also squared gradient norms, of the samples to ``forget`` bool [models, samples], or of "all".
    ``copies`` int64 [models]: write model ``copies[i]`` of the bank as model i.
    """
    answers = {"logits": bank.logits()}
    if gradients:
        every = Rows.where(np.ones(forget.shape, bool)) if gradients == "all" else None
        answers |= gradient_norms(bank, Rows.where(forget), every)
    if copies is not None:
        bank = bank.take(copies)
        answers = {name: value[copies] for name, value in answers.items()}
    bank.write(models)
    Logits(index=np.arange(len(data.y)), y=data.y, **answers).write(logits)
    facts = {"models": len(bank), "device": bank.device, "engine": type(bank.engine).__name__.lower()}
    return facts | ({"privacy": bank.privacy} if bank.privacy else {})


def gradient_norms(bank: Bank, forget: Rows, every: Rows | None = None) -> dict[str, np.ndarray]:
    """Squared gradient norms of the rows to ``forget``, or of ``every`` row, and of the mean gradient of the former, as
    `Logits` holds them."""
    mean = sum(g.double().square().flatten(1).sum(1) for g in bank.gradient(forget).values())
    return {
        "squared_norms": bank.squared_norms(every or forget).double().cpu().numpy(),
        "mean_squared_norm": mean.cpu().numpy(),
    }
