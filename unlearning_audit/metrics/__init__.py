"""Metrics: scores, logits and memberships in, rows with intervals out."""

from collections.abc import Callable
from typing import Any

from unlearning_audit import stats
from unlearning_audit.evaluation.contributions import Contribution
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.stats import Estimate


def row(*, estimate: Estimate, metric: str = "", attack: str = "", **place: Any) -> Row:
    """The row of an estimate. ``metric``: what the number is called, "" = as the study calls the metric; ``place``:
    what it is about, by the fields of `Row`. Raises ValueError for an ``estimate`` that is none."""
    if not isinstance(estimate, Estimate):
        raise ValueError(
            "row: estimate must be an Estimate of unlearning_audit.stats, such as stats.mean_interval(values=…), or "
            f"stats.Estimate(value, low, high, n) with nan for limits that are not known; found {estimate!r:.60}"
        )
    return Row(metric, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note, attack, **place)


def nothing(metric: str, why: str, attack: str = "", role: str = "") -> Row:
    """A row without number that says why there is none."""
    return row(metric=metric, attack=attack, role=role, estimate=stats.empty(n=0, note=why))


def or_reason(case: Evaluation, compute: Callable[[], list[Row]], metric: str, attack: str = "") -> list[Row]:
    """The rows of ``compute``; of imported models, the reason in a row without number where it raises
    ValueError."""
    try:
        return compute()
    except ValueError as error:
        if not case.imported:
            raise
        return [nothing(metric, str(error), attack)]


def or_nothing(case: Evaluation, compute: Callable[[], dict[str, Contribution]]) -> dict[str, Contribution]:
    """The contributions of ``compute``; none of imported models where it raises ValueError, which rows say."""
    try:
        return compute()
    except ValueError:
        if not case.imported:
            raise
        return {}
