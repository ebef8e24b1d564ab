"""Added risk of retained data: are retained samples easier to recognise once others are forgotten?

Samples that were safe among others may stand out when those leave ("privacy onion", Carlini et al. 2022). Retained
samples are distinguished from never-seen ones by φ, in the models after unlearning, before it, and in retrained ones.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Membership, Quantity, Row, _game, levels, no_value, or_none, splits, table

NEEDS = ("fair_draw",)

QUANTITIES = (
    Quantity(
        "retained_auc", "AUC of kept samples",
        reading="Area under the ROC curve of kept against never-seen samples by confidence: 0.5 = chance.",
    ),
    Quantity(
        "retained_risk", "added risk of kept samples", "lower", ideal=0.0,
        reading="That area after unlearning less that before: above 0, forgetting some exposes others.",
    ),
    Quantity(
        "retained_risk_gap", "added risk, beyond retraining", "lower", ideal=0.0,
        reading="That area after unlearning less that of retrained models: what the method adds, not the forgetting.",
    ),
)  # fmt: skip


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows of how well φ (confidence in the label) distinguishes retained from held-out samples of the target
    models: "retained_auc" after unlearning, and the differences from the AUC before unlearning ("retained_risk") and
    from that in retrained models ("retained_risk_gap").

    A difference is left out if the models before unlearning, or the retrained models, are missing or failed. If a model
    has no retained or no held-out samples, the only row is "retained_auc" with this reason in place of a number.
    Intervals cover models and samples.
    """
    member, labels = evaluation.membership[evaluation.target], evaluation.labels_of(evaluation.target)
    read = {"after": evaluation.unlearned_files, "before": evaluation.originals, "retrained": evaluation.compared_files}
    outputs = {name: or_none(evaluation.outputs, files) for name, files in read.items()}
    # φ, or None where there are no such models: ``and`` returns None then.
    phi: dict[str, Any] = {name: logits and logits.phi(labels, evaluation.target) for name, logits in outputs.items()}
    return evaluate(member, **phi)


def evaluate(
    member: Membership, *, after: np.ndarray, before: np.ndarray | None, retrained: np.ndarray | None
) -> list[Row]:
    """Return the row "retained_auc", the AUC of retained against held-out samples by φ (confidence in the label) after
    unlearning, and its differences from the AUC before unlearning ("retained_risk") and in retrained models
    ("retained_risk_gap").

    One row without a number is returned if a model has no retained or no held-out samples.

    Intervals cover models and samples, and differences are paired by both. The variance of an AUC includes imaginary
    samples (field ``imagined``; see `stats.mean_influence`), so that an AUC of 1 has an interval, too. In the
    difference of two equal AUCs, the influences of the imaginary samples would cancel, and leave no interval. So the
    larger of the two influences is used there, unless the scores themselves are equal.

    Parameters
    ----------
    member
        The memberships of the models.
    after
        float64 [models, samples]: φ of the models after unlearning.
    before, retrained
        float64 [models, samples]: φ of the models before unlearning, and of retrained models; None: the difference from
        them is left out.
    """
    retain, heldout = member.retain, member.heldout
    if not (retain.any(axis=1) & heldout.any(axis=1)).all():
        return [no_value("retained_auc", "a model keeps no sample, or has seen all of them")]
    auc_after, places = _game.auc(after, retain, heldout), splits(member)
    n = int((retain | heldout).any(axis=0).sum())
    estimates = {"retained_auc": levels.mean(auc_after, **places, n=n, bounds=(0, 1), units=True)}
    for name, score in (("retained_risk", before), ("retained_risk_gap", retrained)):
        if score is not None:
            auc = _game.auc(score, retain, heldout)
            difference = levels.difference(auc_after, auc)
            # Two AUCs of 1 may differ on other samples, unless the scores are equal because the method does nothing.
            alike = np.isclose(auc_after.value, auc.value) & (after != score).any(axis=1)
            larger = np.maximum(auc_after.imagined, auc.imagined)
            imagined = np.where(alike[:, None], larger, np.abs(difference.imagined))
            estimates[name] = levels.mean(replace(difference, imagined=imagined), **places, n=n, bounds=(-1, 1))
    return table(estimates)
