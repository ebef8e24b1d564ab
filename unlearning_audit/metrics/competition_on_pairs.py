"""The score of the competition on swapped pairs: each split's models against those retrained for the same split."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unlearning_audit.metrics import Evaluation, Group, Row, Settings, _pairs, competition, noted, stats, table
from unlearning_audit.metrics._epsilon import epsilons, points
from unlearning_audit.stats import Estimate, jackknife

#: With fewer pairs the variation between pairs is not estimated.
PAIRS = 3
NO_NULL = "retraining would be its own null here: set controls: true"


NEEDS = ("swapped_pairs",)

QUANTITIES = competition.QUANTITIES

#: How each number follows from F, F₀ and RA · TA.
NUMBERS: dict[str, jackknife.Combine] = {
    "forgetting_quality": lambda f, f0, worth: f,
    "forgetting_quality_null": lambda f, f0, worth: f0,
    "forgetting_quality_over_null": lambda f, f0, worth: f / f0,
    "score": lambda f, f0, worth: f * worth,
}

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
    retain: list[float]
    test: list[float]


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return the score F, its null F₀, F/F₀ and the final score over all splits, then of each pair (field ``pair``).

    ε of a sample compares the n models of a split that unlearned it with n models retrained for that split. F₀ compares
    the latter with the n models retrained for the other split, which keep the same samples. With few models ε has few
    values, but F and F₀ share them. Retraining itself is compared with its control. Without a control it is compared
    with the other split; F₀ would be the same comparison and is empty.
    """
    groups = _pairs.groups(evaluation.membership)
    # A split is known by its pair and the first sample that it forgets.
    splits = {(g.block, g.forget[0]): read_split(evaluation, g, options.rule) for g in groups}

    def read(some: list[_pairs.Group]) -> list[Row]:
        """Return the rows for ``some`` splits, which are those of all pairs or of one pair."""
        note = f"{len(some[0].models)} against {len(some[0].models)} models for each of {len(some)} forget sets"
        numbers = estimates([splits[g.block, g.forget[0]] for g in some])
        return table({name: noted(number, note) for name, number in numbers.items()})

    return _pairs.by_pair(groups, read)


def read_split(evaluation: Evaluation, group: _pairs.Group, rule: Literal["exact", "grid"]) -> Split:
    """Compute the competition's points of one split's models against retrained ones, those of retrained against
    retrained, and the accuracies of audited and retrained models.

    ``group``: the split with its models; ``rule``: how thresholds of ε are chosen. Retraining itself is compared with
    its control, or else with the other split; then the points of retrained against retrained models are NaN.
    """
    assert evaluation.retrained_files is not None  # else no group has twins
    numbers = np.arange(len(evaluation.membership.seed))
    same, other = np.isin(numbers, group.models), np.isin(numbers, group.twins)
    audited = Group(evaluation, evaluation.unlearned_files, same)
    twins = Group(evaluation, evaluation.retrained_files, other)
    reference = Group(evaluation, evaluation.retrained_files, same)
    independent: Group | None = twins
    if evaluation.unlearned_files == evaluation.retrained_files:
        reference = Group(evaluation, evaluation.control_files, same) if evaluation.control_files else twins
        independent = twins if evaluation.control_files else None

    def compared(one: Group, another: Group) -> np.ndarray:
        """Return the points of ε between two populations, float64 [forget samples]."""
        phi, retrained_phi = one.phi(group.forget), another.phi(group.forget)
        return points(epsilons(unlearned=phi, retrained=retrained_phi, rule=rule), models=len(group.models))

    def accuracies(rows: np.ndarray, truth: np.ndarray) -> list[float]:
        """Return the accuracy of the audited and of the retrained models on ``rows``; NaN without rows."""
        guesses = [models.outputs.predicted(models.models)[:, rows] for models in (audited, reference)]
        return [float((guess == truth[rows]).mean()) if rows.any() else math.nan for guess in guesses]

    h = compared(audited, reference)
    null = np.full(h.shape, np.nan) if independent is None else compared(reference, independent)
    retain = accuracies(evaluation.membership.retain[group.models[0]], np.atleast_2d(audited.labels)[0])
    return Split(group.block, h, null, retain, accuracies(evaluation.data.part == 1, evaluation.data.y_clean))


def estimates(splits: list[Split]) -> dict[str, Estimate]:
    """Return F, F₀, F/F₀ and the final score of some splits, as means over all their samples: name → estimate.

    From three pairs on, the interval is a jackknife over pairs, each of which has its own models and samples. With
    fewer pairs, it covers samples only, and the note says so. A jackknife over a split's models would compare ε of
    different numbers of models.
    """
    h, null = np.concatenate([p.h for p in splits]), np.concatenate([p.null for p in splits])
    blocks = sorted({p.block for p in splits})
    without = [[p for p in splits if p.block != block] for block in blocks if len(blocks) >= PAIRS]
    means = np.array([_means(some) for some in (splits, *without)])
    # of pairs, only their means are left out; else samples are
    points = np.zeros((len(means), 0, 1)) if without else np.nan_to_num(np.stack([h, null])[None])
    numbers = {}
    for name, combine in NUMBERS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            values = combine(*means.T)
        if not np.isfinite(values[0]):
            numbers[name] = stats.empty(n=len(h), note=_why(name, null))
        elif not np.isfinite(values).all():
            why = "without one of the pairs there is no number, so no interval"
            numbers[name] = Estimate(float(values[0]), math.nan, math.nan, len(h), why)
        elif name == "forgetting_quality_over_null" and not without and not competition.stands(null[None]):
            numbers[name] = Estimate(float(values[0]), math.nan, math.nan, len(h), competition.NO_INTERVAL)
        else:
            others = means if without else means[:, 2:]
            bounds = (0.0, 1.0 if name in ("forgetting_quality", "forgetting_quality_null") else math.inf)
            numbers[name] = jackknife.estimate(
                per_sample=points, per_model=others, combine=combine, n=len(h), bounds=bounds
            )
    return numbers


def _means(splits: list[Split]) -> tuple[float, float, float]:
    """Return F, F₀ and RA · TA of some splits: the ratios of the mean retain and test accuracies to those of retrained
    models, multiplied."""
    ratios = [np.mean([getattr(p, role) for p in splits], axis=0) for role in ("retain", "test")]
    worth = math.prod(audited / retrained if retrained else math.nan for audited, retrained in ratios)
    f, f0 = (np.concatenate(points).mean() for points in ([p.h for p in splits], [p.null for p in splits]))
    return float(f), float(f0), float(worth)


def _why(name: str, null: np.ndarray) -> str:
    """Return why the number ``name`` cannot be given."""
    if name == "score":
        return "the final score needs the accuracy of retrained models on a test part, above 0"
    return NO_NULL if np.isnan(null).any() else "F₀ is 0"
