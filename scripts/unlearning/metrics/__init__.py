"""Metrics: scores, logits and memberships in, tidy rows with intervals out."""

from unlearning.stats import Estimate


def row(*, metric: str, estimate: Estimate, attack: str = "", setting: str = "") -> dict:
    """One tidy row: attack, metric, setting, value, ci_low, ci_high, n, note."""
    return {
        "attack": attack,
        "metric": metric,
        "setting": setting,
        "value": estimate.value,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "n": estimate.n,
        "note": estimate.note,
    }
