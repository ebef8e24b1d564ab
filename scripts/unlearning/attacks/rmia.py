"""RMIA: the share of other samples z that x dominates in p(x|model)/p(x) (Zarifzadeh et al. 2024).

The reference holds the same samples as the audited logits: column j of both is the same sample, and
``reference.member[m, j]`` says whether reference model m was trained on it, ``nonmember[m, j]`` whether it
was not. An audited model is never in its own reference.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from unlearning import stats
from unlearning.adversary import per_sample, signals
from unlearning.plugins.settings import Settings


class Options(Settings):
    """``mode``: p(x) from in and out models (``online``), or from out models and ``a`` alone (``offline``);
    ``gamma``: by which factor x must dominate z; ``z``: ``others``, every other sample, or ``population``, the
    samples that no reference model was trained on; ``minimum``: reference models that a sample needs on a
    side; ``beta``: the share of dominated z from which on the decision is "member", or ``learned`` on the
    reference, each of its models scored by the others (which takes one more of them on either side).
    """

    mode: Literal["online", "offline"] = "online"
    a: float = Field(default=0.3, ge=0, le=1)
    gamma: float = Field(default=2.0, gt=0)
    z: Literal["others", "population"] = "others"
    minimum: int = Field(default=1, ge=1)
    beta: Literal["learned"] | Annotated[float, Field(ge=0, le=1)] = "learned"


def score(logits, y, reference, options, rng):
    """Score: the share of z that the sample dominates, float64 [models, samples] in [0, 1]; decision: ≥ ``beta``.

    Raises ValueError for samples with fewer than ``minimum`` reference models on a needed side, for
    ``z: population`` without such samples, and for an audited model that is also a reference model.
    """
    signals.same_samples(logits, y, reference)
    log_p = signals.per_model(_log_confidence, logits, y)
    pool = signals.per_model(_log_confidence, reference.logits, reference.y)
    z = _compared(reference.nonmember, options.z)
    value = _score(log_p, pool, reference.member, reference.nonmember, z, options, leave_out=False)
    beta = options.beta
    if beta == "learned":
        rows = reference.member | reference.nonmember
        own = _score(pool, pool, reference.member, reference.nonmember, z, options, leave_out=True)
        beta = stats.best_threshold(value=own[rows], positive=reference.member[rows])
    return value, value >= beta


def _compared(nonmember: np.ndarray, z: str) -> np.ndarray:
    return nonmember.all(axis=0) if z == "population" else np.ones(nonmember.shape[1], dtype=bool)


def _score(log_p, pool, member, nonmember, z, options: Options, *, leave_out: bool) -> np.ndarray:
    prior = prior_probability(
        np.exp(pool),
        member,
        nonmember,
        mode=options.mode,
        a=options.a,
        minimum=options.minimum,
        unseen=z if options.z == "population" else None,
        leave_out=leave_out,
    )
    return dominated(log_p - np.log(prior), z, gamma=options.gamma)


def prior_probability(
    p: np.ndarray,
    member: np.ndarray,
    nonmember: np.ndarray,
    *,
    mode: Literal["online", "offline"],
    a: float,
    minimum: int,
    unseen: np.ndarray | None = None,
    leave_out: bool = False,
) -> np.ndarray:
    """p(x), the mean confidence over models with and without x, float64 [1, samples] (``leave_out``: [models, …]).

    ``p`` float64 (p_y), ``member`` and ``nonmember`` bool, all [reference models, samples]. Online: ½ (mean
    in + mean out); offline the paper's ½ (1 + a) mean out + ½ (1 − a). Samples in ``unseen`` bool [samples]
    have no in models: their p(x) is the mean over out online too.
    """
    per_sample.require(nonmember, minimum=minimum, side="non-member", leave_out=leave_out)
    out = per_sample.mean(p, nonmember, leave_out=leave_out)
    if mode == "offline":
        prior = 0.5 * (1 + a) * out + 0.5 * (1 - a)
    else:
        seen = np.ones(p.shape[1], dtype=bool) if unseen is None else ~unseen
        per_sample.require(member[:, seen], minimum=minimum, side="member", leave_out=leave_out)
        prior = out
        prior[:, seen] = 0.5 * (out[:, seen] + per_sample.mean(p[:, seen], member[:, seen], leave_out=leave_out))
    return np.maximum(prior, np.finfo(np.float64).tiny)  # keeps the ratio finite where every p rounds to 0


def dominated(log_ratio: np.ndarray, z: np.ndarray, *, gamma: float) -> np.ndarray:
    """Share of the samples in ``z`` with ratio(x)/ratio(z) ≥ gamma, float64 [models, samples]; x itself excluded.

    ``log_ratio`` float64 [models, samples] = log p(x|model) − log p(x); ``z`` bool [samples].
    Raises ValueError when no sample is left to compare with.
    """
    others = z.sum() - z
    if (others < 1).any():
        raise ValueError("RMIA has no samples to compare with: use z: others, or add samples no shadow saw")
    count = np.empty(log_ratio.shape, dtype=np.int64)
    for m, row in enumerate(log_ratio):
        count[m] = np.searchsorted(np.sort(row[z]), row - np.log(gamma), side="right")
    itself = z if gamma <= 1 else np.zeros_like(z)
    return (count - itself) / others


def _log_confidence(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    return signals.of_label(signals.log_probabilities(logits), y)
