"""RMIA: the share of other samples z that x dominates in p(x|model)/p(x) (Zarifzadeh et al. 2024).

Column j of the shadow models' logits is the same sample as column j of the audited logits. ``shadow.member[m, j]`` says
whether shadow model m was trained on it, ``nonmember[m, j]`` whether it was not. An audited model is never one of its
own shadow models.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from unlearning_audit import stats
from unlearning_audit.attacks import Score, Settings, Shadow, per_sample, signals

NEEDS = "same_samples"


class Options(Settings):
    """Shadow models that were trained on a sample are "in", those that were not are "out". ``mode``: p(x) from in and
    out models (``online``), or from out models and ``a`` alone (``offline``); ``gamma``: by which factor x must
    dominate z; ``z``: ``others``, every other sample, or ``population``, the samples that no shadow model was trained
    on; ``minimum``: how many out models, and online in models, a sample needs; ``beta``: the share of dominated z from
    which on the decision is "member", or ``learned`` on the shadow models, each of them scored by the others (which
    takes one more in model and one more out model).
    """

    mode: Literal["online", "offline"] = "online"
    a: float = Field(default=0.3, ge=0, le=1)
    gamma: float = Field(default=2.0, gt=0)
    z: Literal["others", "population"] = "others"
    minimum: int = Field(default=1, ge=1)
    beta: Literal["learned"] | Annotated[float, Field(ge=0, le=1)] = "learned"


def score(logits: np.ndarray, y: np.ndarray, shadow: Shadow, options: Options) -> Score:
    """Return as the score the share of other samples z that the sample x dominates, float64 [models, samples] in [0,
    1]. x dominates z if p(x|model)/p(x) is at least ``gamma`` times p(z|model)/p(z). The decision is whether the score
    reaches ``beta``. If ``beta`` is "learned", the score must reach the threshold at which ½(TPR + TNR) is largest on
    the shadow models, each of which is scored by all others.

    Raises ValueError for samples with fewer than ``minimum`` shadow models that were not, or online that were, trained
    on them; for ``z: population`` if every sample was trained on; for shadow models of other samples or classes; and
    for an audited model that is also a shadow model.

    Parameters
    ----------
    logits
        float [models, samples, classes]: logits of the audited models.
    y
        int [samples] or [models, samples]: labels.
    shadow
        Logits and labels of models with known members, on which the attack learns.
    """
    signals.same_samples(logits, y, shadow)
    log_p = signals.per_model(signals.label_logp, logits, y)
    shadow_log_p = signals.per_model(signals.label_logp, shadow.logits, shadow.y)
    shadow_p, member, nonmember = np.exp(shadow_log_p), shadow.member, shadow.nonmember
    z = np.logical_or(nonmember.all(axis=0), options.z == "others")  # which samples x is compared with
    log_ratio = log_p - np.log(prior(shadow_p, member, nonmember, options))
    value = share_dominated(log_ratio, z, gamma=options.gamma)
    if options.beta != "learned":
        return value, value >= options.beta
    shadow_ratio = shadow_log_p - np.log(prior(shadow_p, member, nonmember, options, leave_out=True))
    shadow_value, rows = share_dominated(shadow_ratio, z, gamma=options.gamma), member | nonmember
    return value, value >= stats.best_threshold(value=shadow_value[rows], positive=member[rows])


def prior(
    p: np.ndarray, member: np.ndarray, nonmember: np.ndarray, options: Options, *, leave_out: bool = False
) -> np.ndarray:
    """Return p(x), how confident models are in the label of a sample x on average: float64 [1, samples], or with
    ``leave_out`` [models, samples], where row m leaves out model m, so that it is not compared with itself.

    "In" models were trained on x (``member``), "out" models were not (``nonmember``). Online p(x) is ½ (mean over in
    models + mean over out models). Offline it is the paper's ½ (1 + ``a``) (mean over out models) + ½ (1 − ``a``). With
    ``z: population``, no shadow model was trained on the samples z; online their p(x) is the mean over out models.

    Parameters
    ----------
    p
        float64 [models, samples]: confidence in the label.
    member, nonmember
        bool [models, samples]: which models were trained on each sample, and which were not.

    Raises
    ------
    ValueError
        For samples with fewer than ``minimum`` out models or, online, in models; with ``leave_out`` one more is needed.
    """
    per_sample.require_models(nonmember, minimum=options.minimum, side="non-member", leave_out=leave_out)
    out = per_sample.mean(p, nonmember, leave_out=leave_out)
    if options.mode == "offline":
        value = 0.5 * (1 + options.a) * out + 0.5 * (1 - options.a)
    else:
        # Samples that no shadow model was trained on have no in models; `z: population` allows them.
        with_in = np.logical_or(~nonmember.all(axis=0), options.z == "others")
        per_sample.require_models(member[:, with_in], minimum=options.minimum, side="member", leave_out=leave_out)
        with np.errstate(invalid="ignore"):  # of samples that nobody saw
            value = np.where(with_in, 0.5 * (out + per_sample.mean(p, member, leave_out=leave_out)), out)
    return np.maximum(value, np.finfo(np.float64).tiny)  # keeps the ratio finite where every p rounds to 0


def share_dominated(log_ratio: np.ndarray, z: np.ndarray, *, gamma: float) -> np.ndarray:
    """Return, for each sample x, the share of the samples z with ratio(x)/ratio(z) ≥ ``gamma``, x itself excluded:
    float64 [models, samples].

    Parameters
    ----------
    log_ratio
        float64 [models, samples]: log p(x|model) − log p(x).
    z
        bool [samples]: which samples x is compared with.

    Raises
    ------
    ValueError
        When no sample is left to compare with.
    """
    rivals: np.ndarray = z.sum() - z  # how many samples x is compared with, without itself
    if (rivals < 1).any():
        raise ValueError("RMIA has no samples to compare with: use z: others, or add samples no shadow saw")
    return np.asarray(np.divide(np.stack([_count_dominated(row, z, gamma) for row in log_ratio]), rivals))


def _count_dominated(log_ratio: np.ndarray, z: np.ndarray, gamma: float) -> np.ndarray:
    """Return how many samples z each sample x dominates, with ratio(x)/ratio(z) ≥ ``gamma``, itself excluded: int64
    [samples].

    Parameters
    ----------
    log_ratio
        float64 [samples]: log p(x|model) − log p(x), of one model.
    z
        bool [samples]: which samples x is compared with.
    """
    order = np.argsort(log_ratio)
    ranked, count = log_ratio[order], np.empty(len(order), dtype=np.int64)
    # How many z have a ratio of at most that of x divided by γ. x are taken in sorted order, which is faster.
    count[order] = np.searchsorted(ranked[z[order]], ranked - np.log(gamma), side="right")
    return count - z if gamma <= 1 else count  # a sample dominates itself only if γ ≤ 1
