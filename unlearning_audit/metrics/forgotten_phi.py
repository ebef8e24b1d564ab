"""Confidence in forgotten samples alone, the mean of φ, compared with models that never saw them.

Attacks that distinguish forgotten from held-out samples find nothing where the two sets differ by themselves. If a
class is the forget set, no model that unlearned it predicts it, so that the AUC is at its floor for audited and
retrained models. For such a design, and where nothing was held out, this number decides the verdict. Whether it decides
depends on the design, not on the result. Elsewhere the number is only shown.
"""

import numpy as np

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.metrics import Evaluation, Quantity, Row, crossed, levels, or_nothing, splits, table

NEEDS = ("forgotten",)
DEFAULT = "imported"

QUANTITIES = (
    Quantity(
        "forgotten_phi", "φ of forgotten samples", "lower",
        reading="Mean of φ = log(p / (1 − p)) over forgotten samples, p the probability of the label. Only retrained "
        "models on the same samples say what it should be.",
    ),
)  # fmt: skip

#: A difference of .2 in φ moves no probability by more than .05.
DECIDES = {"forgotten_phi": DecisionRule(1, "0.2", units="models")}


def rows(evaluation: Evaluation) -> list[Row]:
    """Return the row "forgotten_phi": the mean of φ over target models and their forgotten samples, with an interval
    over both. Raises ValueError for a model with fewer than two forgotten samples."""
    member = evaluation.membership[evaluation.target]
    n = int(member.forget.any(axis=0).sum())
    return table({"forgotten_phi": levels.mean(_means(evaluation), **splits(member), n=n)})


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "forgotten_phi" → each target model's mean of φ over its forgotten samples.

    {} if some model has held-out samples with the label of one of its forgotten samples: then attacks by confidence are
    possible, and verdicts rest on these attacks. If a model has fewer than two forgotten samples, {} is returned for
    imported models, and ValueError is raised for models that were trained here.
    """
    if not decides(evaluation):
        return {}
    member = evaluation.membership[evaluation.target]

    def of_means() -> dict[str, Effect]:
        """Return the effect for the target models, whose memberships are ``member``. Raises ValueError for a model with
        fewer than two forgotten samples."""
        places = {"unit": member.block, "split": member.split}
        return {"forgotten_phi": single(**vars(_means(evaluation)), **places, rule=DECIDES["forgotten_phi"])}

    return or_nothing(evaluation, of_means)


def decides(evaluation: Evaluation) -> bool:
    """Return whether this metric has to decide because attacks by confidence cannot work by design.

    Such attacks cannot work if nothing is held out, or if in no model a held-out sample has the label of a forgotten
    sample.
    """
    member, labels = evaluation.membership[evaluation.target], evaluation.labels_of(evaluation.target)
    labels = np.broadcast_to(labels, member.forget.shape)
    of_models = zip(labels, member.forget, member.heldout, strict=True)
    return not any(np.isin(y[heldout], y[forget]).any() for y, forget, heldout in of_models)


def _means(evaluation: Evaluation) -> crossed.PerModel:
    """Return the mean of φ over the forgotten samples of every target model. Raises ValueError for a model with fewer
    than two."""
    member = evaluation.membership[evaluation.target]
    if (member.forget.sum(axis=1) < 2).any():
        raise ValueError("forgotten_phi: a model has fewer than two forgotten samples")
    phi = evaluation.audited.phi()
    return levels.per_model(value=np.where(member.forget, phi, 0.0), weight=member.forget.astype(np.float64))
