"""Steps that training and unlearning share: opening a bank and writing models and logits."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from unlearning_audit.artifacts.arrays import Data, Logits, Membership
from unlearning_audit.artifacts.files import FailedError
from unlearning_audit.artifacts.readings import Readings
from unlearning_audit.bank import card, tokens
from unlearning_audit.bank.bank import Bank, read_models
from unlearning_audit.bank.recipe import Recipe
from unlearning_audit.bank.streams import Rows
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, in_library
from unlearning_audit.workflow.attempt import check_built, check_model

# One thread per process: more would change the last bits of sums and slow small models down.
torch.set_num_threads(1)


def open_targets(
    data: Data, membership: Membership, models: str, settings: dict, place: dict
) -> tuple[Membership, Bank]:
    """The defender's models of one batch, from the file of all: their memberships and a bank of them.

    Raises NoAnswerError where there are none, and FailedError and ValueError as `open_bank`.
    """
    bank, target = open_bank(data, membership, settings, place), np.flatnonzero(~membership.shadow)
    bank.load(models)
    return membership[target], bank.take(target)


def open_bank(data: Data, membership: Membership, settings: dict, place: dict, base: Sequence[str] = ()) -> Bank:
    """A bank of fresh models for the given memberships; with ``base``, the file of one model, all start from that.

    Raises FailedError for an architecture that cannot be used, and ValueError as `check_tokens`.
    """
    at = card.use()
    try:
        build, file = builder(data, settings, place, base)
        with guard(file):
            bank = Bank.create(
                build,
                data.x,
                membership.trained_labels(data.y),
                membership.seed,
                recipe=Recipe(**settings["recipe"]),
                device=at,
            )
        if not in_library(file):
            check_model(bank, data.classes, file)
    except PluginError as error:
        raise FailedError("model", str(error)) from error
    check_tokens(bank, data)
    bank.memorised = membership.memorised
    refusals = data.views("refusal")
    if refusals.shape[1]:
        bank.refusals = torch.from_numpy(refusals[:, 0]).to(at)
    return bank


def builder(data: Data, settings: dict, place: dict, base: Sequence[str] = ()) -> tuple[Callable[[], nn.Module], str]:
    """What makes a fresh model for the data, as `open_bank` says, and the architecture's file."""
    architecture = registry.load("models", settings["model"], place.get("file"))
    options = architecture.Options(**settings["options"])
    weights = {name: value[0] for name, value in read_models(base[0]).items()} if base else None

    def build() -> nn.Module:
        model = architecture.build(options, data.x.shape[1:], data.classes)
        if place.get("file"):
            check_built(model, architecture.__file__)
        if weights is not None:
            model.load_state_dict(weights)
        return model

    return build, architecture.__file__


def check_tokens(bank: Bank, data: Data) -> None:
    """Raise ValueError if the data hold tokens that the models do not know, or are no tokens though these read them."""
    vocabulary = getattr(bank.model, "vocabulary", None)
    if vocabulary is None:
        return
    if data.x.dtype.kind != "i":
        raise ValueError(f"model: this model reads tokens, but the data are {data.x.dtype}; choose passages or sst5")
    largest = int(np.where(data.x < 0, ~data.x, data.x).max())
    if largest >= vocabulary:
        raise ValueError(f"model.vocabulary: the model knows {vocabulary} tokens, but the data hold token {largest}")


def dump(
    bank: Bank,
    data: Data,
    models: str | None,
    logits: str,
    copies: np.ndarray | None = None,
    first: np.ndarray | None = None,
) -> dict:
    """Write weights, unless ``models`` is None, and the logits of every sample; return facts for the spec.

    ``copies`` int64 [models]: write model ``copies[i]`` of the bank as model i. ``first`` bool [samples]: those whose
    logits lie together in the file, because scoring asks every model about them.
    """
    answers = bank.logits()
    if copies is not None:
        bank, answers = bank.take(copies), answers[copies]
    if models is not None:
        bank.write(models)
    Logits(answers, np.arange(len(data.y)), data.y).write(logits, first)
    facts = {"models": len(bank), "device": bank.device, "engine": type(bank.engine).__name__.lower()}
    facts |= {"card": card.describe()} if bank.device == "cuda" else {}
    return facts | ({"privacy": bank.privacy} if bank.privacy else {})


def read_signal(bank: Bank, membership: Membership, signal: str, rows: str) -> Readings:
    """What the models of a bank say beyond logits: ``signal`` "tokens" of all samples that a model forgot or never saw,
    or "squared_norms" of the ``rows`` "forgotten" by each model, or "all". Raises ValueError as `tokens.readings`."""
    if signal == "tokens":
        samples = np.flatnonzero((membership.forget | membership.heldout).any(0))
        return Readings(tokens=tokens.readings(bank, samples), token_index=samples)
    forget = Rows.where(membership.forget)
    everything = Rows.where(np.ones(membership.forget.shape, bool)) if rows == "all" else forget
    return gradient_norms(bank, forget, everything)


def gradient_norms(bank: Bank, forget: Rows, rows: Rows) -> Readings:
    """Squared gradient norms of ``rows``, and that of the mean gradient of the rows to ``forget``."""
    mean = sum(g.double().square().flatten(1).sum(1) for g in bank.gradient(forget).values())
    return Readings(bank.squared_norms(rows).double().cpu().numpy(), mean.cpu().numpy())
