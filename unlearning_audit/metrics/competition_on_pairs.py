"""The score of the competition on swapped pairs: each split's models against those retrained for the same split."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _pairs, competition, row
from unlearning_audit.metrics._epsilon import epsilons, points
from unlearning_audit.metrics.competition import QUANTITIES as OF_COMPETITION
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import Estimate, jackknife

#: With fewer pairs the variation between pairs is not estimated.
PAIRS = 3
NO_NULL = "retraining would be its own null here: set controls: true"


NEEDS = ("swapped_pairs",)

QUANTITIES = OF_COMPETITION

#: ε compares at least two unlearned models with two retrained ones.
PROTOCOL_MINIMUM = {"models_per_split": 2}


class Options(Settings):
    """``rule``: ``exact`` thresholds or the published ``grid``, as for the metric competition."""

    rule: Literal["exact", "grid"] = "exact"


@dataclass(frozen=True)
class Split:
    """The points and accuracies of one split of the pair ``block``.

    ``h`` and ``null`` float64 [forget samples]: points of its models against retrained ones, and of retrained against
    retrained (NaN: unknown); ``retain`` and ``test``: the accuracy of its models and of retrained ones (NaN: no test
    part).
    """

    block: int
    h: np.ndarray
    null: np.ndarray
    retain: tuple[float, float]
    test: tuple[float, float]


def rows(case: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return the score F, its null F₀, F/F₀ and the final score over all splits, then of each pair (field ``pair``).

    ε of a sample compares the n models of a split that unlearned it with n models retrained for that split. F₀ compares
    the latter with the n models retrained for the other split, which keep the same samples. With few models ε has few
    values, but F and F₀ share them. Retraining itself is compared with its control. Without a control it is compared
    with the other split; F₀ would be the same comparison and is empty.
    """
    splits = {(g.block, g.forget[0]): read_split(case, g, options.rule) for g in _pairs.groups(case.membership)}

    def read(pairs: list[_pairs.Group]) -> list[Row]:
        """Return the rows for some splits, which are those of all ``pairs`` or of one pair."""
        values = estimates([splits[g.block, g.forget[0]] for g in pairs])
        note = f"{len(pairs[0].models)} against {len(pairs[0].models)} models for each of {len(pairs)} forget sets"
        return [row(metric=name, estimate=_noted(estimate, note)) for name, estimate in values.items()]

    return list(_pairs.by_pair(_pairs.groups(case.membership), read))


def read_split(case: Evaluation, group: _pairs.Group, rule: Literal["exact", "grid"]) -> Split:
    """Compute the competition's points of one split's models against retrained ones, those of retrained against
    retrained, and the accuracies of audited and retrained models.

    ``group``: the split with its models; ``rule``: how thresholds of ε are chosen. Retraining itself is compared with
    its control, or else with the other split; then the points of retrained against retrained models are NaN.
    """
    assert case.retrained_files is not None  # else no group has twins
    side, twins = (case.unlearned_files, group.models), (case.retrained_files, group.twins)
    reference = case.retrained_files, group.models
    independent: tuple[list[str], np.ndarray] | None = twins
    if case.unlearned_files == case.retrained_files and case.control_files:
        reference = case.control_files, group.models
    elif case.unlearned_files == case.retrained_files:
        reference, independent = twins, None
    y = np.broadcast_to(case.labels, case.membership.train.shape)[group.models[0]]

    def compared(*populations: tuple[list[str], np.ndarray]) -> np.ndarray:
        """Return the points of ε between two populations, each given by files and numbers of models: float64 [forget
        samples]."""
        phi = []
        for files, models in populations:
            mask = np.isin(np.arange(len(case.membership.seed)), models)
            phi.append(case.answers(files).phi(y[group.forget], mask, group.forget))
        return points(epsilons(unlearned=phi[0], retrained=phi[1], rule=rule), models=len(group.models))

    def accuracies(rows: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
        """Return the accuracy of the audited and of the retrained models on ``rows``; NaN without rows."""
        audited, retrained = (
            (case.answers(files).predicted()[models][:, rows] == truth[rows]).mean() if rows.any() else math.nan
            for files, models in (side, reference)
        )
        return float(audited), float(retrained)

    h = compared(side, reference)
    null = np.full(h.shape, np.nan) if independent is None else compared(reference, independent)
    retain = accuracies(case.membership.retain[group.models[0]], y)
    return Split(group.block, h, null, retain, accuracies(case.data.part == 1, case.data.y_clean))


def estimates(splits: list[Split]) -> dict[str, Estimate]:
    """Return F, F₀, F/F₀ and the final score of some splits, as means over all their samples: name → estimate.

    From three pairs on, the interval is a jackknife over pairs, each of which has its own models and samples. With
    fewer pairs, it covers samples only, and the note says so. A jackknife over a split's models would compare ε of
    different numbers of models.
    """
    blocks = sorted({p.block for p in splits})
    numbers = {}
    whole = _values(splits)
    without = [_values([p for p in splits if p.block != b]) for b in blocks if len(blocks) >= PAIRS]
    h, null = np.concatenate([p.h for p in splits]), np.concatenate([p.null for p in splits])
    worth = _worth(splits)
    alone = {  # each as a function of the means of h and of null
        "forgetting_quality": lambda f, _: f,
        "forgetting_quality_null": lambda _, f0: f0,
        "forgetting_quality_over_null": lambda f, f0: f / f0,
        "score": lambda f, _: f * worth,
    }
    for name, value in whole.items():
        highest = 1.0 if name in ("forgetting_quality", "forgetting_quality_null") else math.inf
        if math.isnan(value):
            numbers[name] = stats.empty(n=len(h), note=_why(name, null))
        elif len(blocks) >= PAIRS:
            numbers[name] = _over_pairs(value, np.array([replicate[name] for replicate in without]), len(h), highest)
        elif name == "forgetting_quality_over_null" and not competition.stands(null[None]):
            numbers[name] = Estimate(value, math.nan, math.nan, len(h), competition.NO_INTERVAL)
        else:
            numbers[name] = jackknife.estimate(
                per_sample=np.nan_to_num(np.stack([h, null])[None]), combine=alone[name], n=len(h),
                bounds=(0.0, highest),
            )  # fmt: skip
    return numbers


def _values(splits: list[Split]) -> dict[str, float]:
    """Return F, F₀, F/F₀ and the score of some splits, without intervals."""
    f, f0 = (float(np.concatenate(values).mean()) for values in ([p.h for p in splits], [p.null for p in splits]))
    return {
        "forgetting_quality": f,
        "forgetting_quality_null": f0,
        "forgetting_quality_over_null": f / f0 if f0 else math.nan,
        "score": f * _worth(splits),
    }


def _worth(splits: list[Split]) -> float:
    """Return RA · TA: the ratios of retain and test accuracy to those of retrained models, multiplied."""
    ratios = [np.mean([getattr(p, role) for p in splits], axis=0) for role in ("retain", "test")]
    return float(math.prod(audited / retrained if retrained else math.nan for audited, retrained in ratios))


def _over_pairs(value: float, without: np.ndarray, n: int, highest: float) -> Estimate:
    """Return an estimate with a jackknife interval from the values ``without`` each pair, float64 [pairs]."""
    if np.isnan(without).any():
        return Estimate(value, math.nan, math.nan, n, "without one of the pairs there is no number, so no interval")
    error = math.sqrt(jackknife.jackknife_variance(without))
    half = float(stats.t_quantile(p=(1 + stats.LEVEL) / 2, dof=len(without) - 1)) * error
    return Estimate(value, max(value - half, 0.0), min(value + half, highest), n)


def _why(name: str, null: np.ndarray) -> str:
    """Return why the number ``name`` cannot be given."""
    if name == "score":
        return "the final score needs the accuracy of retrained models on a test part, above 0"
    return NO_NULL if np.isnan(null).any() else "F₀ is 0"


def _noted(estimate: Estimate, note: str) -> Estimate:
    """Return the estimate with ``note`` before its own note."""
    return Estimate(
        estimate.value, estimate.low, estimate.high, estimate.n, "; ".join(filter(None, (note, estimate.note)))
    )
