"""Metrics: they compute rows with intervals from scores, logits and memberships."""

from collections.abc import Callable
from typing import Any

from unlearning_audit import stats
from unlearning_audit.evaluation.effects import Effect
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.stats import Estimate


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

    Raises
    ------
    ValueError
        ``estimate`` is not an `Estimate`.
    """
    if not isinstance(estimate, Estimate):
        raise ValueError(
            "row: estimate must be an Estimate of unlearning_audit.stats, such as stats.mean_interval(values=…), or "
            f"stats.Estimate(value, low, high, n) with nan for limits that are not known; found {estimate!r:.60}"
        )
    return Row(metric, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note, attack, **place)


def nothing(metric: str, why: str, attack: str = "", role: str = "") -> Row:
    """Return a row without a number, whose note is the reason ``why``."""
    return row(metric=metric, attack=attack, role=role, estimate=stats.empty(n=0, note=why))


def or_reason(case: Evaluation, compute: Callable[[], list[Row]], metric: str, attack: str = "") -> list[Row]:
    """Return the rows of ``compute``.

    If it raises ValueError for imported models, return one row without a number, whose note is the error.
    """
    try:
        return compute()
    except ValueError as error:
        if not case.imported:
            raise
        return [nothing(metric, str(error), attack)]


def or_nothing(case: Evaluation, compute: Callable[[], dict[str, Effect]]) -> dict[str, Effect]:
    """Return the effects of ``compute``; {} if it raises ValueError for imported models, whose rows give the
    reason."""
    try:
        return compute()
    except ValueError:
        if not case.imported:
            raise
        return {}
