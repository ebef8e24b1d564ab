"""Variation by training seeds and by unlearning seeds: how much of it is the method's own randomness?

A single run hides two random draws, that of the model and that of unlearning it (Lanyon et al. 2025). If several models
were unlearned from one original (``copies`` of the protocol competition), the two are separated.
"""

import numpy as np

from unlearning_audit.metrics import Evaluation, Quantity, Row, table
from unlearning_audit.stats import nested

NEEDS = ("one_forget_set",)

QUANTITIES = (
    Quantity(
        "sd_of_training", "sd over training seeds",
        reading="Standard deviation over originals of a model's mean confidence in what it forgot: what another "
        "training would change.",
    ),
    Quantity(
        "sd_of_unlearning", "sd over unlearning seeds",
        reading="The same over models that were unlearned from one original: what another run of the method would "
        "change.",
    ),
)  # fmt: skip


#: The two quantities from which the effect of more training seeds or more unlearning seeds is predicted.
SEEDS = ("sd_of_training", "sd_of_unlearning")


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "sd_of_training" and "sd_of_unlearning": the standard deviations, over training and over unlearning
    seeds, of a model's mean φ over forgotten samples. Both have the reason in place of a number if no original has two
    models, and the first of them if all models came from one original."""
    forget = np.flatnonzero(evaluation.membership.forget.any(axis=0))
    phi = evaluation.outputs(evaluation.unlearned_files).phi(evaluation.data.y[forget], rows=forget)
    # Models that were unlearned from one original have its seed.
    deviations = nested.deviations(value=phi.mean(axis=1), original=evaluation.membership.seed)
    return table(dict(zip(SEEDS, deviations, strict=True)))
