"""PrivLeak: relative difference of the AUC of Min-K % from that on retrained models, in per cent (Shi et al. 2024)."""

from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.shadow import LOGP
from unlearning_audit.metrics import Evaluation, Membership, Row, Settings, _game, _text, splits, table
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.stats import Estimate, crossed, levels

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


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows "privleak" and "min_k_auc" over all target models, then over each swapped pair of models (field
    ``pair``) if there are several; [] without retrained models.

    "min_k_auc" is the AUC of forgotten against held-out samples by Min-K %, as a mean over models. "privleak" is 100·(A
    − A_retrained)/A_retrained, where A = 1 − AUC: 0 = as if retrained; below 0, forgotten samples are still recognised;
    above 0, they look less known than samples that were never seen. Retraining itself is compared with its control.
    Intervals cover models and samples. Verdicts rest on "min_k_auc". Raises ValueError where the mean AUC of retrained
    models is 1.
    """
    files = _text.compared_files(evaluation)
    if files is None:
        return []
    samples = _text.forgotten_or_heldout(evaluation)
    audited = _min_k(evaluation, evaluation.unlearned_files, samples, options.share)
    retrained = _min_k(evaluation, files, samples, options.share)

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows of some ``models`` bool [target models], whose memberships are ``member``. ``audited`` and
        ``retrained`` have the Min-K % of all target models and of their retrained models on the ``samples``."""
        sides = member.forget[:, samples], member.heldout[:, samples]
        privleak = leak(audited[models], retrained[models], *sides, **splits(member))
        return table({"privleak": privleak, "min_k_auc": auc(audited[models], *sides, **splits(member))})

    return _text.rows_by_pair(evaluation, of_models)


#: The AUC of PrivLeak, compared with that of retrained models, as in PrivLeak itself.
DECIDES = {"min_k_auc": DecisionRule(1, "auc", lowest=0.0, highest=1.0)}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "min_k_auc" → the AUC of each target model's forgotten against its held-out samples by Min-K %, and the
    influence of each sample on it. {} if a model has no forgotten or no held-out samples."""
    target, samples = evaluation.membership[evaluation.target], _text.forgotten_or_heldout(evaluation)
    if not _game.sided(target):
        return {}
    score = _min_k(evaluation, evaluation.unlearned_files, samples, options.share)
    aucs = _game.auc(score, target.forget[:, samples], target.heldout[:, samples])
    # vars: the value of each AUC, its influence and imagined
    return {"min_k_auc": single(**vars(aucs), **_text.units(target), index=samples, rule=DECIDES["min_k_auc"])}


def _min_k(evaluation: Evaluation, files: list[str], samples: np.ndarray, share: float) -> np.ndarray:
    """Return Min-K % of the ``samples`` int64 [rows] by the target models in ``files``, float64 [target models, rows]:
    the mean log-probability of a sample's least likely tokens, which are the given ``share`` of its scored tokens, one
    at least. NaN for a sample without scored tokens."""
    return signals.lowest(evaluation.signal("tokens", files, evaluation.target, samples)[..., LOGP], share)


def auc(score: np.ndarray, forget: np.ndarray, heldout: np.ndarray, **places: Any) -> Estimate:
    """Return the mean AUC of ``score``, forgotten against held-out samples, over models, with an interval that holds
    for other blocks (pairs of splits) too.

    Parameters
    ----------
    score
        float64 [models, samples], larger = more member-like.
    forget, heldout
        bool [models, samples].
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.
    """
    n = int((forget | heldout).any(0).sum())
    return levels.mean(_game.auc(score, forget, heldout), **places, n=n, bounds=(0.0, 1.0), units=True)


def leak(
    audited: np.ndarray, retrained: np.ndarray, forget: np.ndarray, heldout: np.ndarray, **places: Any
) -> Estimate:
    """Return PrivLeak of ``audited`` against ``retrained`` models of the same memberships, in per cent: 100·(A −
    A_retrained)/A_retrained with A = 1 − AUC.

    The interval is that of the ratio to first order, with samples and models paired.

    Parameters
    ----------
    audited, retrained
        float64 [models, samples]: scores, larger = more member-like. Values of samples that are neither forgotten nor
        held out are ignored.
    forget, heldout
        bool [models, samples].
    places
        int64 [models]: "split", "block" and "copied" (each model's original; None without copies), from `splits`.

    Raises
    ------
    ValueError
        Where the mean AUC of retrained models is 1, so that nothing is left to compare.
    """
    auc_audited, auc_retrained = (_game.auc(score, forget, heldout) for score in (audited, retrained))
    base = 1 - float(auc_retrained.value.mean())  # A_retrained, by which PrivLeak divides
    if base <= 0:
        raise ValueError("privleak: retrained models tell every forgotten sample from a held-out one; check the splits")
    ratio = (1 - float(auc_audited.value.mean())) / base
    value = 100 * (ratio - 1)
    # If the AUCs change by d_audited and d_retrained, PrivLeak changes by 100·(ratio·d_retrained − d_audited)/base, to
    # first order. This gives the deviation of each model from the mean, and the influence of each sample on the mean.
    # The next line moves the mean of this linear form to the exact value.
    linear = crossed.difference(auc_retrained.times(ratio), auc_audited).times(100 / base)
    centred = replace(linear, value=value + (linear.value - linear.value.mean()))
    # The bounds are PrivLeak at an AUC of 1 and at an AUC of 0. By rounding, the value may lie just above the latter.
    n, highest = int((forget | heldout).any(0).sum()), 100 * (1 / base - 1)
    return levels.mean(centred, **places, n=n, bounds=(-100.0, max(highest, value)))
