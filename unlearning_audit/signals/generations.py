"""Answers that language models generate to samples by greedy decoding: a record that metrics read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.signal_files import Generations, continued_samples
from unlearning_audit.signals import Data, Membership, ModelStack

RECORD, ROLE, OF_TEXTS = Generations, "generated", True

#: How many retained and how many test samples are answered, if no metric says.
MOST = 200


def asked(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings that serve all metrics with these ``options``: the largest of their numbers ``most``, or
    `MOST` if none has one."""
    return {"most": max((of_metric["most"] for of_metric in options if "most" in of_metric), default=MOST)}


def about(member: Membership, data: Data, settings: dict[str, Any]) -> np.ndarray:
    """Return the samples whose answers each model generates, int64 [models, rows], filled with −1: all forgotten and
    held-out ones, and up to ``settings["most"]`` retained and as many test samples, drawn at random."""
    return continued_samples(member, data.part, settings["most"])


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Generations:
    """Return the answers of each model in ``stack`` to its own ``rows`` int64 [models, rows], in which −1 stands for no
    sample. A model generates its most probable token at every place."""
    from unlearning_audit.training import generation

    return Generations(generation.greedy(stack, rows), rows)


def without_models(rows: np.ndarray, settings: dict[str, Any]) -> Generations:
    """Return the record of a batch that has only shadow models: no answers, for the samples ``rows`` int64 [0, 0]. No
    setting is used."""
    return Generations(np.zeros((0, 0, 0), np.int32), rows)
