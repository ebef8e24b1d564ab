"""Quantisation: hidden knowledge may come back when weights are rounded, as they are before a model is deployed.

Unlearning that changes weights by less than half a step of 8 or 4 bits is undone by rounding them (Zhang et al. 2025).
Retrained models have nothing that could come back.
"""

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from unlearning_audit import stats
from unlearning_audit.evaluation.effects import DecisionRule, Effect, several
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.relearned import Relearned
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import relearn, row
from unlearning_audit.plugins.declarations import Quantity
from unlearning_audit.plugins.settings import Distinct, Settings
from unlearning_audit.stats import crossed, levels, rates, separation

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
    """``bits`` to which the weights of matrices and kernels are rounded, those of each output by their largest;
    ``decides``: a verdict rests on the accuracy on forgotten samples as well."""

    bits: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1), Distinct] = (8, 4)
    decides: bool = False


#: The accuracy of rounded models on unseen samples is known from retrained models only.
DECIDES = {"quantised": DecisionRule(1, "accuracy", lowest=0.0, highest=1.0)}


def effects(case: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "quantised" → the accuracy of each target model with rounded weights on its forgotten samples, one number
    for each of ``bits``. {} unless ``decides`` is set."""
    if not options.decides:
        return {}
    coarse, member = relearn.stacked(case.relearned_files), case.membership[case.target]
    weight = member.forget[:, coarse.index].astype(np.float64)
    right = coarse.right_rounded[:, _places(coarse, options)].astype(np.float64)
    parts = [crossed.per_model(value=of_bits, weight=weight) for of_bits in right.swapaxes(0, 1)]
    places = {"unit": member.block, "split": member.split, "index": coarse.index}
    names = [f"{bits} bits" for bits in options.bits]
    return {name: several(names, parts, **places, rule=rule) for name, rule in DECIDES.items()}


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return rows for each of ``bits`` (field ``rule``), of models with rounded weights.

    They are the accuracy beyond that of retrained models, the change by rounding, the AUC where samples are held out,
    and the accuracies.
    """
    coarse, member = relearn.stacked(case.relearned_files), case.membership[case.target]
    retrained = relearn.compared(case)
    forget, heldout = member.forget[:, coarse.index], member.heldout[:, coarse.index]
    test = np.tile(case.data.part[coarse.index] == 1, (len(forget), 1))
    groups: dict[str, Any] = {"split": member.split, "block": member.block}
    table = []
    for bits, place in zip(options.bits, _places(coarse, options), strict=True):
        right, name = coarse.right_rounded[:, place], f"{bits} bits"
        if isinstance(retrained, str):
            gap = stats.empty(n=0, note=retrained)
        else:
            gap = rates.gap(of=right, to=retrained.right_rounded[:, place], rows=forget, **groups)
        back = rates.gap(of=right, to=coarse.right[:, 0], rows=forget, **groups)
        table += [
            row(metric="quantised_gap", rule=name, estimate=gap),
            row(metric="quantised_return", rule=name, estimate=back),
        ]
        if heldout.any(axis=1).all():
            phi = coarse.phi_rounded[:, place].astype(np.float64)
            part = separation.auc(score=phi, positive=forget * 1.0, negative=heldout * 1.0)
            auc = levels.of(part, **groups, n=int((forget | heldout).any(axis=0).sum()), bounds=(0, 1))
            table.append(row(metric="quantised_auc", rule=name, estimate=auc))
        for role, mask in (("forget", forget), ("test", test)):
            if mask.any():
                level = rates.rate(hit=right, rows=mask, **groups)
                table.append(row(metric="quantised_accuracy", rule=name, role=role, estimate=level))
    return table


def _places(coarse: Relearned, options: Options) -> list[int]:
    """Return the position of each of the option's ``bits`` in the record's axis of bits."""
    return [coarse.bits.tolist().index(bits) for bits in options.bits]
