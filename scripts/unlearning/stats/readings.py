"""Accuracy, AUC and TPR at small FPR of a test on many targets and samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unlearning import stats
from unlearning.stats import crossed, separation


@dataclass(frozen=True)
class Question:
    """One test on all targets: ``score`` float64, a log-likelihood ratio or log-odds (above 0 says positive), with
    ``positive`` and ``negative`` bool, all [targets, samples]; ``missing``: why it could not be run."""

    score: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    missing: str = ""


def readings(test: Question, *, fpr: tuple[float, ...]) -> dict[str, stats.Estimate]:
    """``accuracy``, ``auc`` and ``tpr_at_…pct_fpr`` of a test: means over targets, or NaN with the reason.

    Targets that lack a side are left out. An FPR that one target cannot resolve but all together can is read
    with one threshold for all of them.
    """
    sides = _sides(test)
    n = _count(test)
    if isinstance(sides, str):
        nothing = stats.empty(n=n, note=sides)
        return dict.fromkeys(("accuracy", "auc", *map(tpr_name, fpr)), nothing)
    score, positive, negative = sides
    statistics = [
        balanced_accuracy(score > 0, positive, negative),
        separation.auc(score=score, positive=positive, negative=negative),
    ]
    tpr = {tpr_name(level): mean_tpr(score, positive, negative, fpr=level, n=n) for level in fpr}
    return {**dict(zip(("accuracy", "auc"), over_models(statistics, n=n), strict=True)), **tpr}


def tprs(test: Question, *, fpr: tuple[float, ...]) -> dict[float, stats.Estimate]:
    """The TPR of a test at each FPR, as `readings` has it."""
    sides = _sides(test)
    if isinstance(sides, str):
        return dict.fromkeys(fpr, stats.empty(n=_count(test), note=sides))
    return {level: mean_tpr(*sides, fpr=level, n=_count(test)) for level in fpr}


def _count(test: Question) -> int:
    return int((test.positive | test.negative).any(axis=0).sum())


def _sides(test: Question) -> tuple[np.ndarray, np.ndarray, np.ndarray] | str:
    """Score, positive and negative, float64 [targets with both sides, samples]; why there are none."""
    usable = test.positive.any(axis=1) & test.negative.any(axis=1)
    if test.missing or not usable.any():
        return test.missing or "no target has samples on both sides"
    score = np.where(test.positive | test.negative, test.score, 0.0)[usable]
    positive, negative = (side[usable].astype(np.float64) for side in (test.positive, test.negative))
    return score, positive, negative


def tpr_name(fpr: float) -> str:
    """``tpr_at_1pct_fpr`` for 0.01."""
    return f"tpr_at_{100 * fpr:g}pct_fpr"


def over_models(statistics: Sequence[crossed.PerModel], *, n: int) -> list[stats.Estimate]:
    """Means over models of statistics of [models, samples], with intervals over samples and over models."""
    models = len(statistics[0].value)
    reading = crossed.read(crossed.combine(statistics, split=np.arange(models)), share=np.full(models, 1 / models))
    return crossed.estimates(reading, n=n)


def balanced_accuracy(said: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> crossed.PerModel:
    """½(TPR + TNR) of each model; on equal sides the share of right answers.

    ``said`` bool, ``positive`` and ``negative`` float64 weights of the sides (0 elsewhere), all [models, samples].
    """
    advantage = crossed.difference(
        crossed.per_model(value=said.astype(np.float64), weight=positive),
        crossed.per_model(value=said.astype(np.float64), weight=negative),
    )
    return crossed.PerModel((1 + advantage.value) / 2, advantage.influence / 2, advantage.imagined / 2)


def mean_tpr(score: np.ndarray, positive: np.ndarray, negative: np.ndarray, *, fpr: float, n: int) -> stats.Estimate:
    """Mean over models of the TPR at ``fpr``; one threshold for all where a single model cannot resolve it.

    Arguments as ``balanced_accuracy``, ``score`` float64. NaN with the reason when all negatives are too few.
    """
    sides = {"score": score, "positive": positive, "negative": negative}
    fewest = negative.sum(axis=1).min()
    if not stats.unresolved(negatives=fewest, fpr=fpr):
        part, optimism = separation.tpr_at_fpr(**sides, fpr=fpr)
        (found,) = over_models([part], n=n)
        return replace(found, low=max(found.low - optimism.mean(), 0.0))
    if reason := stats.unresolved(negatives=negative.sum(), fpr=fpr):
        return stats.empty(n=n, note=reason)
    models, samples = score.shape
    part, optimism = separation.tpr_at_fpr(**{name: x.reshape(1, -1) for name, x in sides.items()}, fpr=fpr)
    influence = part.influence.reshape(models, samples)
    raw = models / (models - 1) * (influence.sum(axis=1) ** 2).sum()
    reading = crossed.Reading(
        value=part.value,
        influence=np.concatenate([influence.sum(axis=0, keepdims=True), part.imagined], axis=1),
        models=np.array([[max(raw - (influence**2).sum(), 0.0)]]),
        raw=np.array([[raw]]),
        dof_models=models - 1,
    )
    note = f"one threshold for {models} targets: {fewest:.0f} negatives in one are too few"
    (found,) = crossed.estimates(reading, n=n, note=note)
    return replace(found, low=max(found.low - optimism.mean(), 0.0))
