"""Interclass confusion (IC) test: does the unlearned model still confuse the two classes?

Goel et al. 2023, as used in Tu, Hu and Ma 2024, section 4.4.
"""

from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.contributions import OF_RETRAINED, Contribution, Standard, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import row
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import crossed, rates

NEEDS = ("confused_labels",)
DEFAULT = "confused_labels"

QUANTITIES = (
    Quantity(
        "ic_score", "IC score", "higher", primary=True,
        reading="1 minus the rate at which the taught confusion survives: 1 = the confusion is forgotten.",
        columns=(Column(3, "IC score"),), comparisons=(Comparison("IC score", 13, ideal=1.0),),
    ),
    Quantity(
        "ic_error", "IC error", "lower",
        reading="Rate at which the taught confusion survives: 0 = it is forgotten.",
    ),
)  # fmt: skip


class Options(Settings):
    """No options."""


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return rows "ic_error" (γ), the rate of predictions as the confused class, and "ic_score" (1 − γ) of the target
    models."""
    target = case.membership[case.target]
    return evaluate(
        logits=case.answers(case.unlearned_files).of(case.target),
        forget=target.forget,
        trained=case.labels_of(case.target),
        y=case.data.y,
        split=target.split,
        block=target.block,
    )


#: How often the classes are confused by chance, and how models differ in this, is known from retrained models only.
DECIDES = {"ic_score": Standard(-1, "ic_score", chance=OF_RETRAINED, lowest=0.0, highest=1.0)}


def contributions(case: Evaluation, options: Options) -> dict[str, Contribution]:
    """Return "ic_score" → the share of each target model's confused samples that it does not predict as the confused
    class, and the influence of each sample on it."""
    target, labels = case.membership[case.target], case.labels_of(case.target)
    guess = case.answers(case.unlearned_files).predicted(case.target)
    columns = np.flatnonzero(target.forget.any(axis=0))
    right = (guess != rates.per_model(labels, guess.shape, "labels"))[:, columns]
    part = crossed.per_model(value=right * 1.0, weight=target.forget[:, columns] * 1.0)
    places = {"unit": target.block, "split": target.split, "index": columns}
    return {"ic_score": single(**vars(part), **places, standard=DECIDES["ic_score"])}


def evaluate(
    *,
    logits: np.ndarray,
    forget: np.ndarray,
    trained: np.ndarray,
    y: np.ndarray,
    split: np.ndarray,
    block: np.ndarray,
) -> list[Row]:
    """Return rows "ic_error" (γ) and "ic_score" (1 − γ).

    γ is the rate at which samples of the confused set are predicted as the class they were confused with, as a mean
    over models. Predictions of third classes do not count, because they show no memory of the confusion. ``logits``
    float [models, samples, classes]; ``forget`` bool [models, samples]: the confused set; ``trained`` int [models,
    samples] or [samples]: the labels that models were trained with; ``y`` int [samples]: the true ones; ``split`` and
    ``block`` int [models]. The interval covers samples and models. Raises ValueError for shapes that do not fit and for
    confused samples that were trained with their true label.
    """
    guess = rates.predicted(logits)
    if forget.shape != guess.shape:
        raise ValueError(f"forget must be [models, samples] = {guess.shape} like the logits, not {forget.shape}")
    trained = rates.per_model(trained, guess.shape, "trained")
    if (forget & (trained == rates.per_model(y, guess.shape, "y"))).any():
        raise ValueError("forget holds samples trained with their true label: they were not confused with any class")
    error = rates.rate(hit=guess == trained, rows=forget, split=split, block=block)
    score = replace(error, value=1 - error.value, low=1 - error.high, high=1 - error.low)
    return [row(metric="ic_error", estimate=error), row(metric="ic_score", estimate=score)]
