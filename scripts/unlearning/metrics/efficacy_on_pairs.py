"""Efficacy by epistemic uncertainty on swapped pairs: what the weights tell of the samples that each model forgot."""

import numpy as np

from unlearning.case import Case
from unlearning.metrics import _pairs, efficacy
from unlearning.settings import Settings

#: Gradient norms are kept with the logits.
NEEDS = "squared_norms"


class Options(Settings):
    """Nothing to choose."""


def rows(case: Case, settings: dict) -> list[dict]:
    """`efficacy.evaluate` on the forget sets of all target models, then of each pair (setting "pair=…").

    Of single models nothing is kept: they forget different samples.
    """
    squared_norms, mean_squared_norm = case.gradients

    def read(some: list[_pairs.Group]) -> list[dict]:
        models = np.concatenate([group.models for group in some])
        found = efficacy.evaluate(squared_norms=squared_norms[models], mean_squared_norm=mean_squared_norm[models])
        return [row for row in found if "model=" not in row["setting"]]

    return list(_pairs.each(_pairs.groups(case.membership), read))
