"""Interclass confusion (IC) test: does the unlearned model still confuse the two classes?

Goel et al. 2023, as used in Tu, Hu and Ma 2024, section 4.4.
"""

import numpy as np

from unlearning_audit.evaluation.effects import OF_RETRAINED, DecisionRule, Effect, single
from unlearning_audit.metrics import Evaluation, Membership, Row, _text, one_minus, rates, splits, table
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity

NEEDS = ("confused_labels",)
DEFAULT = "confused_labels"

QUANTITIES = (
    Quantity(
        "ic_score", "IC score", "higher", primary=True,
        reading="1 minus the rate at which the taught confusion survives: 1 = the confusion is forgotten.",
        columns=(Column(3, "IC score"),), comparisons=(Comparison("IC score", 13, ideal=1.0),),
    ),
    Quantity(
        "ic_error", "IC error", "lower",
        reading="Rate at which the taught confusion survives: 0 = it is forgotten.",
    ),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "ic_error" (γ) and "ic_score" (1 − γ) of the target models.

    γ is the rate at which samples of the confused set are predicted as the class they were confused with, as a mean
    over models. Predictions of third classes do not count, because they show no memory of the confusion. The interval
    covers samples and models. Raises ValueError for confused samples that were trained with their true label.
    """
    target, confused = _confused(evaluation)
    if (target.forget & (evaluation.labels_of(evaluation.target) == evaluation.data.y)).any():
        raise ValueError("forget holds samples trained with their true label: they were not confused with any class")
    error = rates.rate(hit=confused, rows=target.forget, **splits(target))
    return table({"ic_error": error, "ic_score": one_minus(error)})


def _confused(evaluation: Evaluation) -> tuple[Membership, np.ndarray]:
    """Return the memberships of the target models, and which samples each predicts as the class with which it was
    trained, bool [models, samples]; for forgotten samples, this is the class that they were confused with."""
    predicted = evaluation.outputs(evaluation.unlearned_files).predicted(evaluation.target)
    return evaluation.membership[evaluation.target], predicted == evaluation.labels_of(evaluation.target)


#: How often classes are confused by chance is not known from theory. It varies as two groups of retrained models do.
DECIDES = {"ic_score": DecisionRule(-1, "ic_score", chance=OF_RETRAINED, lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "ic_score" → the share of each target model's confused samples that it does not predict as the confused
    class, and the influence of each sample on it."""
    target, confused = _confused(evaluation)
    columns = np.flatnonzero(target.forget.any(axis=0))
    score = _text.mean(~confused[:, columns], target.forget[:, columns])
    places = {"unit": target.block, "split": target.split, "index": columns}
    return {"ic_score": single(**vars(score), **places, rule=DECIDES["ic_score"])}
