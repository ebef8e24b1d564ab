"""Several answers of language models to a sample, drawn from their predicted probabilities: a record that metrics
read."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.signal_files import Sampled
from unlearning_audit.signals import Membership, ModelStack
from unlearning_audit.signals.generations import about as about

RECORD, ROLE, OF_TEXTS = Sampled, "sampled", True

#: How many answers are drawn, if no metric says.
ANSWERS = 32


def asked(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings that serve all metrics with these ``options``, one dict for each metric.

    "most", the number of retained and of test samples, is 0: these metrics compare forgotten with held-out samples
    only. "answers", how many answers are sampled to each sample, is the largest that a metric asks for in its option
    ``samples`` (`ANSWERS` for a metric without it).
    """
    return {"most": 0, "answers": max(of_metric.get("samples", ANSWERS) for of_metric in options)}


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """Return ``settings["answers"]`` answers, drawn at random, of each model in ``stack`` to each of its own ``rows``
    int64 [models, rows], in which −1 stands for no sample."""
    from unlearning_audit.training import generation

    return Sampled(generation.sampled(stack, rows, settings["answers"]), rows)


def without_models(rows: np.ndarray, settings: dict[str, Any]) -> Sampled:
    """Return the record of a batch that has only shadow models: no answers, for the samples ``rows`` int64 [0, 0]. No
    setting is used."""
    return Sampled(np.zeros((0, 0, 0, 0), np.int32), rows)
