"""RMIA: the share of other samples z that x dominates in p(x|model)/p(x) (Zarifzadeh et al. 2024).

The reference holds the same samples as the audited logits: column j of both is the same sample, and
``reference.member[m, j]`` says whether reference model m was trained on it, ``nonmember[m, j]`` whether it
was not. An audited model is never in its own reference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from unlearning_audit import stats
from unlearning_audit.attacks import Reference, Score, Settings, per_sample, signals

NEEDS = "same_samples"


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


def score(logits: np.ndarray, y: np.ndarray, reference: Reference, options: Options, rng: np.random.Generator) -> Score:
    """Return as the score the share of other samples z that the sample x dominates, float64 [models, samples] in [0,
    1]; the decision is whether it reaches ``beta``. x dominates z if p(x|model)/p(x) is at least ``gamma`` times
    p(z|model)/p(z).

    Raises ValueError for samples with fewer than ``minimum`` reference models on a needed side, for ``z: population``
    without such samples, and for an audited model that is also a reference model.
    """
    signals.same_samples(logits, y, reference)
    log_p = signals.per_model(signals.label_logp, logits, y)
    pool = signals.per_model(signals.label_logp, reference.logits, reference.y)
    member, nonmember = reference.member, reference.nonmember
    z = np.logical_or(nonmember.all(axis=0), options.z == "others")
    prior = Prior.of(pool, member, nonmember, options)
    value = dominated(log_p - np.log(prior.of_all), z, gamma=options.gamma)
    if options.beta != "learned":
        return value, value >= options.beta
    prior.require(member, nonmember, options.minimum, leave_out=True)
    counts = (
        _dominated(row - np.log(prior.without(np.exp(row), *sides)), z, options.gamma)
        for row, *sides in zip(pool, member, nonmember, strict=True)
    )
    return value, value >= learned(counts, z, member, nonmember)


@dataclass(frozen=True)
class Prior:
    """The prior p(x): the mean confidence over models with and without x. Online it is ½ (mean in + mean out), offline
    the paper's ½ (1 + ``a``) mean out + ½ (1 − ``a``).

    ``out`` and ``inside``: the means over out and in models; ``inside`` is None offline. ``member_models`` bool
    [samples]: which samples have in models. For the others, p(x) is the mean over out models online too.
    """

    out: per_sample.Centre
    inside: per_sample.Centre | None
    member_models: np.ndarray
    a: float

    @classmethod
    def of(cls, log_p: np.ndarray, member: np.ndarray, nonmember: np.ndarray, options: Options) -> "Prior":
        """Compute the prior from ``log_p`` float64, ``member`` and ``nonmember`` bool, all [reference models, samples].

        With ``z: population``, samples that no reference model was trained on need no in models. Raises ValueError for
        samples with fewer than ``minimum`` models on a needed side.
        """
        member_models = np.logical_or(~nonmember.all(axis=0), options.z == "others")
        out = per_sample.Centre.of(map(np.exp, log_p), nonmember)
        inside = per_sample.Centre.of(map(np.exp, log_p), member) if options.mode == "online" else None
        prior = cls(out, inside, member_models, options.a)
        prior.require(member, nonmember, options.minimum, leave_out=False)
        return prior

    def require(self, member: np.ndarray, nonmember: np.ndarray, minimum: int, *, leave_out: bool) -> None:
        """Raise ValueError for samples with fewer than ``minimum`` models on a needed side. With ``leave_out``, the
        model itself does not count."""
        per_sample.require(nonmember, minimum=minimum, side="non-member", leave_out=leave_out)
        if self.inside is not None:
            per_sample.require(member[:, self.member_models], minimum=minimum, side="member", leave_out=leave_out)

    @property
    def of_all(self) -> np.ndarray:
        """p(x) over all reference models, float64 [samples]."""
        return self._joined(self.out.value, None if self.inside is None else self.inside.value)

    def without(self, p: np.ndarray, member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
        """Return p(x) over all reference models but one, float64 [samples]; so a model is not compared with itself.

        ``p`` float64, ``member`` and ``nonmember`` bool, each [samples], are the confidence and the membership of the
        one that is left out.
        """
        inside = None if self.inside is None else self.inside.without(p, member)
        return self._joined(self.out.without(p, nonmember), inside)

    def _joined(self, out: np.ndarray, inside: np.ndarray | None) -> np.ndarray:
        """Combine the means over out and in models to p(x), float64 [samples]; ``inside`` None: offline."""
        if inside is None:
            prior = 0.5 * (1 + self.a) * out + 0.5 * (1 - self.a)
        else:
            prior = np.where(self.member_models, 0.5 * (out + inside), out)
        return np.maximum(prior, np.finfo(np.float64).tiny)  # keeps the ratio finite where every p rounds to 0


def learned(counts: Iterable[np.ndarray], z: np.ndarray, member: np.ndarray, nonmember: np.ndarray) -> float:
    """Return the threshold of scores that best separates members from non-members of all reference models together
    (`stats.best_threshold`).

    ``counts`` yields int [samples] for one model after the other: how many samples of ``z`` bool [samples] each sample
    dominates. ``member`` and ``nonmember`` bool [models, samples]. Scores are counted in tables and not kept, to save
    memory.
    """
    total, samples = int(z.sum()), len(z)
    # The count gives the score once it is known whether the sample is in z: such a sample is compared with one fewer.
    tables, first = np.zeros((2, 2 * (total + 1))), np.full(2 * (total + 1), member.size)
    for model, (row, *sides) in enumerate(zip(counts, member, nonmember, strict=True)):
        keys = 2 * row + z
        tables += [np.bincount(keys[side], minlength=len(first)) for side in sides]
        rows = np.flatnonzero(sides[0] | sides[1])
        np.minimum.at(first, keys[rows], rows + model * samples)
    keys = np.flatnonzero(first < member.size)
    keys = keys[np.argsort(first[keys])]
    value = np.repeat((keys >> 1) / (total - (keys & 1)), 2)
    return stats.best_threshold(
        value=value, positive=np.tile([True, False], len(keys)), weight=tables[:, keys].T.ravel()
    )


def dominated(log_ratio: np.ndarray, z: np.ndarray, *, gamma: float) -> np.ndarray:
    """Return the share of the samples in ``z`` with ratio(x)/ratio(z) ≥ ``gamma``, float64 [models, samples]; x itself
    is excluded.

    ``log_ratio`` float64 [models, samples] = log p(x|model) − log p(x); ``z`` bool [samples]. Raises ValueError when no
    sample is left to compare with.
    """
    rivals: np.ndarray = z.sum() - z
    if (rivals < 1).any():
        raise ValueError("RMIA has no samples to compare with: use z: others, or add samples no shadow saw")
    return np.asarray(np.divide(np.stack([_dominated(row, z, gamma) for row in log_ratio]), rivals))


def _dominated(log_ratio: np.ndarray, z: np.ndarray, gamma: float) -> np.ndarray:
    """Count the samples of ``z`` that each sample dominates, itself excluded, int64 [samples]. ``log_ratio`` float64
    [samples]."""
    order = np.argsort(log_ratio)
    ranked, count = log_ratio[order], np.empty(len(order), dtype=np.int64)
    # Sorted queries use the processor's cache.
    count[order] = np.searchsorted(ranked[z[order]], ranked - np.log(gamma), side="right")
    return count - z if gamma <= 1 else count
