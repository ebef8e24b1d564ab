"""Quantisation: hidden knowledge may come back when weights are rounded, as they are before a model is deployed.

Unlearning that changes weights by less than half a step of 8 or 4 bits is undone by rounding them (Zhang et al. 2025).
Retrained models have nothing that could come back.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.effects import DecisionRule, Effect, several
from unlearning_audit.evaluation.signal_files import Relearned
from unlearning_audit.metrics import Evaluation, Quantity, Row, _game, _text, relearn, splits, stats, table
from unlearning_audit.plugins.settings import Distinct, Settings
from unlearning_audit.stats import levels, rates

NEEDS = ("forgotten", "weights", "relearned")

QUANTITIES = (
    Quantity(
        "quantised_gap", "accuracy with rounded weights, beyond retraining", ideal=0.0,
        reading="How much more often models with rounded weights are right about what they forgot than retrained "
        "models with rounded weights are: 0 = like retraining, above = rounding brings something back.",
    ),
    Quantity(
        "quantised_return", "return by rounding", "lower", ideal=0.0,
        reading="How much more often models are right about what they forgot once their weights are rounded.",
    ),
    Quantity(
        "quantised_auc", "AUC with rounded weights",
        reading="Area under the ROC curve of forgotten against held-out samples by the confidence of models with "
        "rounded weights: 0.5 = chance.",
    ),
    Quantity(
        "quantised_accuracy",
        reading="Share of right predictions of models with rounded weights, on forgotten samples and the test part.",
    ),
)  # fmt: skip


class Options(Settings):
    """``bits`` to which the weights of matrices and kernels are rounded, in steps set by the largest weight of each
    output; ``decides``: whether a verdict rests on the accuracy on forgotten samples, too."""

    bits: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1), Distinct] = (8, 4)
    decides: bool = False


#: The accuracy of rounded models on unseen samples is known from retrained models only.
DECIDES = {"quantised": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "quantised" → the accuracy of each target model with rounded weights on its forgotten samples, one number
    for each of ``bits``. {} unless ``decides`` is set."""
    if not options.decides:
        return {}
    # The job that relearns also rounds the weights, so one file has the answers of both.
    record, member = relearn.joined_record(evaluation.relearned_files), evaluation.membership[evaluation.target]
    right, forget = record.right_rounded[:, _positions(record, options)], member.forget[:, record.index]
    accuracies = [_text.mean(of_bits, forget) for of_bits in right.swapaxes(0, 1)]  # ``right`` [models, bits, rows]
    places = {"unit": member.block, "split": member.split, "index": record.index}
    names = [f"{bits} bits" for bits in options.bits]
    return {"quantised": several(names, accuracies, **places, rule=DECIDES["quantised"])}


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows for each of ``bits`` (field ``rule``), of models with rounded weights.

    "quantised_gap" is the accuracy on forgotten samples minus that of retrained models with rounded weights. Without
    such models, it has this reason in place of a number. "quantised_return" is by how much rounding raises the accuracy
    on forgotten samples. "quantised_auc" is the AUC of forgotten against held-out samples; it is left out if a model
    lacks one of the two. "quantised_accuracy" is the accuracy on forgotten and on test samples (field ``role``).
    """
    # The job that relearns also rounds the weights, so one file has the answers of both.
    record, member = relearn.joined_record(evaluation.relearned_files), evaluation.membership[evaluation.target]
    retrained = relearn.retrained_record(evaluation)
    forget, heldout = member.forget[:, record.index], member.heldout[:, record.index]
    test = np.tile(evaluation.data.part[record.index] == 1, (len(forget), 1))
    places, lines = splits(member), []
    for bits, position in zip(options.bits, _positions(record, options), strict=True):
        right, name = record.right_rounded[:, position], f"{bits} bits"
        back = rates.rate(hit=right, less=record.right[:, 0], rows=forget, **places)  # point 0: before relearning
        if isinstance(retrained, str):
            gap = stats.empty(n=0, note=retrained)
        else:
            gap = rates.rate(hit=right, less=retrained.right_rounded[:, position], rows=forget, **places)
        lines += table({"quantised_gap": gap, "quantised_return": back}, rule=name)
        if heldout.any(axis=1).all():
            of_models = _game.auc(record.phi_rounded[:, position].astype(np.float64), forget, heldout)
            auc = levels.mean(of_models, **places, n=int((forget | heldout).any(axis=0).sum()), bounds=(0, 1))
            lines += table({"quantised_auc": auc}, rule=name)
        for role, mask in (("forget", forget), ("test", test)):
            if mask.any():
                accuracy = rates.rate(hit=right, rows=mask, **places)
                lines += table({"quantised_accuracy": accuracy}, rule=name, role=role)
    return lines


def _positions(record: Relearned, options: Options) -> list[int]:
    """Return the position of each of the option's ``bits`` in the record's axis of bits. Raises ValueError for bits
    that the record does not have."""
    return [record.bits.tolist().index(bits) for bits in options.bits]
