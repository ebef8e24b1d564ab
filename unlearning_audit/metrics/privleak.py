"""PrivLeak: relative difference of the AUC of Min-K % from that on retrained models, in per cent (Shi et al. 2024)."""

from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation import tokens as of_tokens
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.reference import LOGP
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _text, _units, row
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import Estimate, crossed, levels, separation

#: The metric reads the numbers of single tokens, which are stored beside the logits.
NEEDS = ("fair_draw", "tokens")

QUANTITIES = (
    Quantity(
        "privleak", "PrivLeak, %", ideal=0.0,
        reading="Distance of the AUC of Min-K % from that on retrained models, in per cent: 0 = as retrained, -100 = "
        "every forgotten sample is still recognised, above 0 = it looks less known than what was never seen.",
        columns=(Column(20, "PrivLeak, %"),),
        comparisons=(Comparison("PrivLeak", 31, ideal=0.0, two_sided=True, retrained=True),),
    ),
    Quantity(
        "min_k_auc", "AUC of Min-K %", "lower",
        reading="AUC with which Min-K % tells forgotten from held-out samples, of which PrivLeak is the distance.",
    ),
)  # fmt: skip


class Options(Settings):
    """``share`` of the tokens that Min-K % uses (MUSE: .4)."""

    share: float = Field(0.4, gt=0, le=1)


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return rows "privleak" and "min_k_auc" over all target models, then over each swapped pair of models (field
    ``pair``) if there are several; [] without retrained models.

    "min_k_auc" is the AUC of forgotten against held-out samples by Min-K %, as a mean over models. "privleak" is 100·(A
    − A_retrained)/A_retrained, where A = 1 − AUC: 0 = as if retrained; below 0, forgotten samples are still recognised;
    above 0, they look less known than samples that were never seen. Retraining itself is compared with its control.
    Intervals cover models and samples. Verdicts rest on "min_k_auc".
    """
    files = _text.compared_files(case)
    if files is None:
        return []
    columns = np.flatnonzero((case.membership.forget | case.membership.heldout)[case.target].any(0))
    all_models = np.ones(len(case.target), bool)
    score = [
        of_tokens.lowest(case.signal("tokens", source, all_models, columns)[..., LOGP], options.share)
        for source in (case.unlearned_files, files)
    ]

    def read(models: np.ndarray) -> list[Row]:
        """Return the rows of some ``models`` bool [models]."""
        forget, heldout = (mask[np.ix_(models, columns)] for mask in (case.membership.forget, case.membership.heldout))
        place = {"split": case.membership.split[models], "block": case.membership.block[models]}
        audited, retrained = (values[models] for values in score)
        return [
            row(metric="privleak", estimate=leak(audited, retrained, forget, heldout, **place)),
            row(metric="min_k_auc", estimate=auc(audited, forget, heldout, **place)),
        ]

    return _text.by_pair(case, read)


#: The AUC of PrivLeak, compared with that of retrained models, as in PrivLeak itself.
DECIDES = {"min_k_auc": DecisionRule(1, "auc", lowest=0.0, highest=1.0)}


def effects(case: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "min_k_auc" → the AUC of each target model's forgotten against its held-out samples by Min-K %, and the
    influence of each sample on it. {} if a model has no forgotten or no held-out samples."""
    target, share = case.membership[case.target], options.share
    columns = np.flatnonzero((target.forget | target.heldout).any(0))
    score = of_tokens.lowest(case.signal("tokens", case.unlearned_files, case.target, columns)[..., LOGP], share)
    forget, heldout = target.forget[:, columns], target.heldout[:, columns]
    if not (forget.any(1) & heldout.any(1)).all():
        return {}
    part = of_models(score, forget, heldout)
    return {"min_k_auc": single(**vars(part), **_units.of(target), index=columns, rule=DECIDES["min_k_auc"])}


def of_models(score: np.ndarray, forget: np.ndarray, heldout: np.ndarray) -> crossed.PerModel:
    """Return the AUC of forgotten against held-out samples for each model."""
    return separation.auc(score=score, positive=forget * 1.0, negative=heldout * 1.0)


def auc(score: np.ndarray, forget: np.ndarray, heldout: np.ndarray, **groups: Any) -> Estimate:
    """Return the mean AUC of ``score``, forgotten against held-out samples, over models, with its interval.

    ``score`` float64 [models, samples], larger = more member-like; ``forget`` and ``heldout`` bool [models, samples];
    ``groups``: "split" and "block", int [models].
    """
    n = int((forget | heldout).any(0).sum())
    return levels.of(of_models(score, forget, heldout), **groups, n=n, bounds=(0.0, 1.0), units=True)


def leak(
    audited: np.ndarray, retrained: np.ndarray, forget: np.ndarray, heldout: np.ndarray, **groups: Any
) -> Estimate:
    """Return PrivLeak of models ``audited`` against ``retrained`` models of the same memberships, in per cent.

    ``audited`` and ``retrained`` float64 [models, samples], larger = more member-like, anything where a sample is
    neither forgotten nor held out; ``forget`` and ``heldout`` bool [models, samples]; ``groups``: "split" and "block",
    int [models]. The interval is that of the ratio to first order, with samples and models paired. Raises ValueError
    where the AUC of retrained models is 1, so that nothing is left to compare.
    """
    a, r = (of_models(score, forget, heldout) for score in (audited, retrained))
    base = 1 - float(r.value.mean())
    if base <= 0:
        raise ValueError("privleak: retrained models tell every forgotten sample from a held-out one; check the splits")
    ratio = (1 - float(a.value.mean())) / base
    # (1 − a)/(1 − r) − 1 changes by −da/(1 − r) + ratio·dr/(1 − r), and so do single models around their mean.
    moved = crossed.difference(crossed.PerModel(ratio * r.value, ratio * r.influence, ratio * r.imagined), a)
    scale = 100 / base
    centred = crossed.PerModel(
        100 * (ratio - 1) + scale * (moved.value - moved.value.mean()), scale * moved.influence, scale * moved.imagined
    )
    n, highest = int((forget | heldout).any(0).sum()), 100 * (1 / base - 1)  # AUCs of 1 and of 0
    return levels.of(centred, **groups, n=n, bounds=(-100.0, max(highest, 100 * (ratio - 1))))
