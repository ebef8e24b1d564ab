"""Metrics: scores, logits and memberships in, rows with intervals out."""

from unlearning_audit.artifacts.rows import Row
from unlearning_audit.stats import Estimate


def row(*, estimate: Estimate, metric: str = "", attack: str = "", **place: str | int | float | None) -> Row:
    """The row of an estimate. ``metric``: what the number is called, "" = as the study calls the metric; ``place``:
    what it is about, by the fields of `Row`."""
    return Row(metric, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note, attack, **place)
