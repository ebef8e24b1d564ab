"""What one batch of models says beyond logits: gradients, single tokens, the last hidden layer, what it says while it
learns once more or with its weights rounded, and what language models say by themselves."""

from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.evaluation import features
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.features import Features
from unlearning_audit.evaluation.generations import Generations, Sampled, queried
from unlearning_audit.evaluation.readings import Readings
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.store.files import Arrays
from unlearning_audit.training import features as layers
from unlearning_audit.training import generation, relearning, rounding, tokens
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.streams import Rows
from unlearning_audit.workflow.attempt import attempt, of_model
from unlearning_audit.workflow.open_bank import device_facts, gradient_norms, opened, targets

#: Signals of all models, shadow models included; others are of the defender's alone.
OF_ALL = ("squared_norms", "tokens")


def asked_about(signal: str, member: Membership, samples: Data, settings: dict[str, Any]) -> np.ndarray:
    """The samples about which models are asked: int64 [rows], or [models, rows] where each is asked about its own."""
    if signal == "features":
        return features.sample_index(member)
    if signal in ("generations", "sampled"):
        return queried(member, samples.part, settings["most"])
    of_test = (samples.part == 1) & (signal == "relearned")
    return np.flatnonzero((member.forget | member.heldout).any(0) | of_test)


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Arrays:
    """The signal that the ``settings`` name, of the models of a bank, on `asked_about` samples."""
    signal = settings["signal"]
    if signal == "squared_norms":
        forget, everything = Rows.where(member.forget), Rows.where(np.ones(member.forget.shape, bool))
        return gradient_norms(bank, forget, everything if settings["rows"] == "all" else forget)
    if signal == "tokens":
        return Readings(tokens=tokens.readings(bank, rows), token_index=rows)
    if signal == "features":
        return Features(layers.readings(bank, rows), rows)
    if signal == "generations":
        return Generations(generation.greedy(bank, rows), rows)
    if signal == "sampled":
        return Sampled(generation.sampled(bank, rows, settings["answers"]), rows)
    bank.seeds = member.unlearning_seeds()
    # It depends on a model's seed alone, so that all methods are asked the same.
    half = Rows.where(member.forget).sample(int(member.forget[0].sum()) // 2, bank.seeds, "relearn")
    taught = np.zeros(member.train.shape, bool)
    np.put_along_axis(taught, half.index, True, axis=1)
    curves = relearning.curves(bank, half, rows, settings["steps"])
    bits = settings.get("bits", [])
    rounded = (np.array(bits), *rounding.answers(bank, rows, bits)) if bits else ()
    return Relearned(*curves, taught[:, rows], rows, *rounded)


def nothing(rows: np.ndarray, settings: dict[str, Any]) -> Arrays:
    """The signal of a batch without a defender's model, such as one of shadow models alone."""
    if settings["signal"] == "features":
        return Features(np.zeros((0, 0, 0), np.float32), rows)
    if settings["signal"] == "relearned":
        return Relearned.empty(relearning.points(settings["steps"]), rows, np.array(settings.get("bits", []), np.int64))
    return (Sampled if settings["signal"] == "sampled" else Generations).empty()


def signals(
    data: str, splits: list[str], models: list[str], signals: str, settings: dict[str, Any], place: dict[str, Any]
) -> dict[str, Any]:
    """One ``signal`` of a batch of models; where there are no models, the reason is written in its place."""
    samples, membership = Data.read(data), Membership.read(splits[0])
    signals = str(Path(signals).absolute())  # a model may change the folder

    def ask() -> dict[str, Any]:
        signal = settings["signal"]
        numbers = np.arange(len(membership.seed)) if signal in OF_ALL else targets(membership)
        member = membership[numbers]
        rows = asked_about(signal, member, samples, settings)
        if not len(numbers):
            nothing(rows, settings).write(signals)
            return {"models": 0}
        parts = []
        for part, of_part, bank in opened(samples, membership, settings, place, models=models[0], numbers=numbers):
            with of_model(settings, place):
                parts.append(read(bank, of_part, rows if rows.ndim == 1 else rows[part], settings))
        type(parts[0]).concatenate(parts).write(signals)
        return {"models": len(numbers), **device_facts(bank.device)}

    return attempt(ask, None, signals, "model", place.get("file"), before="method", **place.get("terms", {}))
