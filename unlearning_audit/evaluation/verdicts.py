"""The tables of a comparison: verdicts, the distances that they rest on, ranks, and which distances could be
detected."""

from pathlib import Path
from typing import Any

from unlearning_audit.store import cells

VERDICTS = (
    "method", "verdict", "found_by", "distance", "ci_low", "ci_high", "margin", "retrain_spread", "p_holm",
    "against_none", "share_closed", "share_low", "share_high", "note",
)  # fmt: skip
#: One row for each method and metric. ``distance`` from retraining, oriented so that doing nothing has a positive one;
#: its interval; ``disagree``: whether test and interval disagree on 0; ``inner_low`` and ``inner_high``: the interval
#: for equivalence; the margins; ``broken``: whether it is the loss of utility of a broken model; ``p`` and ``p_holm``:
#: before and after the correction over methods and deciding metrics; ``closer``: how much closer to retraining than
#: doing nothing; ``from``: what the distance is measured from; the numbers of units, models and samples.
DISTANCES = (
    "method", "metric", "attack", "deciding", "from", "distance", "ci_low", "ci_high", "disagree", "inner_low",
    "inner_high", "margin_far", "margin_near", "broken", "scale", "p", "p_holm", "closer", "closer_low", "closer_high",
    "against_none", "share_closed", "share_low", "share_high", "units", "models", "samples", "note",
)  # fmt: skip
#: ``best`` and ``worst``: the ranks that a method may have among ``methods``, reference methods included; ``ahead``:
#: how many usable methods are proven to be closer to retraining, reference methods excluded, at 95 % for all methods at
#: once.
RANKS = ("metric", "method", "distance", "best", "worst", "methods", "ahead")
#: ``what``: today, a plan with ``times`` as many pairs, models or samples, or what an inconclusive method needs
#: (decides_pairs, decides_models, decides_retrained with ``models`` retrained ones), with the ``outcome`` it would have
#: if its distance is the ``assumed`` one. ``pair`` to ``sample``: variance components; ``chance``: what a distance
#: varies by if it is 0 (`unlearning_audit.evaluation.effects.CHANCES`).
RESOLUTION = (
    "metric", "method", "attack", "unit", "what", "times", "units", "models", "samples", "half_width",
    "least_distance", "margin", "outcome", "assumed", "pair", "pair_noise", "model", "model_noise", "sample", "chance",
)  # fmt: skip
_TEXT = {
    "method", "verdict", "found_by", "against_none", "note", "metric", "attack", "from", "scale", "unit", "what",
    "outcome", "chance",
}  # fmt: skip


def read(path: str | Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the rows of one of the tables, with its ``columns``: column → text or float, NaN for an empty cell. Raises
    ArtifactError that names the file if it cannot be read or has other columns."""
    return cells.table(path, columns, text=_TEXT)
