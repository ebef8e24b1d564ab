"""Metrics: they compute rows with intervals from scores, logits and memberships.

`Evaluation.target` says which models of a population are target models: those that are audited. The others are shadow
models, from which attacks learn.

What metrics are written with is imported from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Data, Membership, NoAnswerError
from unlearning_audit.evaluation.cohort import Group
from unlearning_audit.evaluation.effects import OF_SAMPLES, DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import Estimate, crossed, jackknife, levels, rates

__all__ = [
    "NO_RETRAINED", "OF_SAMPLES", "Column", "Comparison", "Data", "DecisionRule", "Effect", "Estimate", "Evaluation",
    "FalsePositiveRates", "Group", "Membership", "Quantity", "Row", "Settings", "crossed", "generator",
    "jackknife", "levels", "no_value", "noted", "one_minus", "or_none", "or_nothing", "or_reason", "rates", "row",
    "single", "splits", "stats", "table",
]  # fmt: skip

Read = TypeVar("Read")

#: Why a number that compares with retrained models is missing.
NO_RETRAINED = "there are no other retrained models: add retrain to the methods, with controls: true"


def row(*, estimate: Estimate, metric: str = "", attack: str = "", **place: Any) -> Row:
    """Return a row of results from an estimate.

    Parameters
    ----------
    estimate : Estimate
        The number with its limits, such as ``stats.mean_interval(values=…)`` returns.
    metric : str
        The name of the number; "" = as the study calls the metric.
    attack : str
        The attack that the number is of, if any.
    **place
        Other fields of `Row` that say what the number is about, such as ``role``, ``pair`` or ``model``.
    """
    return Row(metric, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note, attack, **place)


def table(estimates: Mapping[str, Estimate], **place: Any) -> list[Row]:
    """Return a row for each of ``estimates`` (name of the number → estimate), all with the same fields ``place``."""
    return [row(metric=name, estimate=estimate, **place) for name, estimate in estimates.items()]


def one_minus(estimate: Estimate) -> Estimate:
    """Return 1 minus a number, with its interval."""
    return replace(estimate, value=1 - estimate.value, low=1 - estimate.high, high=1 - estimate.low)


def noted(estimate: Estimate, *notes: str, after: str = "") -> Estimate:
    """Return the estimate with ``notes`` before its own note, and another ``after`` it."""
    return replace(estimate, note="; ".join(filter(None, (*notes, estimate.note, after))))


def no_value(metric: str, why: str, **place: Any) -> Row:
    """Return a row whose value and limits are NaN and whose note is the reason ``why``; ``place``: its other fields."""
    return row(metric=metric, estimate=stats.empty(n=0, note=why), **place)


def splits(member: Membership) -> dict[str, Any]:
    """Return what `stats.levels` needs to know of the models.

    "split" and "block" → the number of each model's split, and of its block (such as a pair of splits), int64 [models].
    Models that share both are repeats of one another. "copied" → the original of each model, if models are copies of
    several originals, else None.
    """
    return {"split": member.split, "block": member.block, "copied": member.copied}


def or_none(read: Callable[[list[str]], Read], files: list[str] | None) -> Read | None:
    """Return what ``read`` returns for the ``files`` of retrained models.

    None if there are no files, and if retraining failed, or diverged (a logit is NaN or infinite), because that is not
    a fault of the method.
    """
    try:
        return read(files) if files else None
    except NoAnswerError:
        return None


def or_reason(evaluation: Evaluation, compute: Callable[[], list[Row]], metric: str, attack: str = "") -> list[Row]:
    """Return the rows of ``compute``.

    If it raises ValueError for imported models, return one row without a number, whose note is the error. The error of
    models that were trained here is raised.
    """
    return _or_else(evaluation, compute, lambda why: [no_value(metric, why, attack=attack)])


def or_nothing(evaluation: Evaluation, compute: Callable[[], dict[str, Effect]]) -> dict[str, Effect]:
    """Return the effects of ``compute``. If ``compute`` raises ValueError for imported models, return {}: the rows of
    the metric give the reason. The error of models that were trained here is raised."""
    return _or_else(evaluation, compute, lambda why: {})


def _or_else(evaluation: Evaluation, compute: Callable[[], Read], otherwise: Callable[[str], Read]) -> Read:
    """Return the result of ``compute``. If it raises ValueError for imported models, return what ``otherwise`` returns
    for the text of the error; the error of models that were trained here is raised."""
    try:
        return compute()
    except ValueError as error:
        if not evaluation.imported:
            raise
        return otherwise(str(error))
