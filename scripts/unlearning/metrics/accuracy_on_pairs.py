"""How far accuracies lie from those of retrained models, pair by pair of swapped splits."""

import numpy as np

from unlearning.adversary.case import Case
from unlearning.metrics import _pairs, accuracy
from unlearning.metrics.accuracy import QUANTITIES as OF_ACCURACY
from unlearning.plugins.settings import Settings

QUANTITIES = OF_ACCURACY


class Options(Settings):
    """Nothing to choose."""


def rows(case: Case, settings: dict) -> list[dict]:
    """The rows "accuracy_gap" of `accuracy.rows` for each pair by itself, with setting "pair=…;role=…"."""
    some = _pairs.groups(case.membership)

    def read(some: list[_pairs.Group]) -> list[dict]:
        models = np.isin(np.arange(len(case.target)), np.concatenate([group.models for group in some]))
        return [row for row in accuracy.of(case, models) if row["metric"] == "accuracy_gap"]

    return [row for row in _pairs.each(some, read) if row["setting"].startswith("pair=")]
