"""The score of the competition on swapped pairs: each split's models against those retrained for the same split."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unlearning_audit.metrics import Evaluation, Group, Row, Settings, _pairs, competition, noted, stats, table
from unlearning_audit.metrics._epsilon import epsilons, points
from unlearning_audit.stats import Estimate, jackknife

#: With fewer pairs the variation between pairs is not estimated.
FEWEST_PAIRS = 3
NO_NULL = "retraining would be its own null here: set controls: true"


NEEDS = ("swapped_pairs",)

QUANTITIES = competition.QUANTITIES

#: How each number follows from F, F₀ and RA · TA, the retain and test accuracy over those of retrained models.
NUMBERS: dict[str, jackknife.Combine] = {
    "forgetting_quality": lambda f, f0, ra_ta: f,
    "forgetting_quality_null": lambda f, f0, ra_ta: f0,
    "forgetting_quality_over_null": lambda f, f0, ra_ta: f / f0,
    "score": lambda f, f0, ra_ta: f * ra_ta,
}

#: ε compares at least two unlearned models with two retrained ones.
PROTOCOL_MINIMUM = {"models_per_split": 2}


class Options(Settings):
    """``rule``: whether ε takes ``exact`` thresholds or the published ``grid`` of thresholds."""

    rule: Literal["exact", "grid"] = "exact"


@dataclass(frozen=True)
class Split:
    """The points and accuracies of one split, one of the two of a swapped pair, whose number is ``block``.

    Parameters
    ----------
    h, null
        float64 [forget samples]: points of the split's audited models against its retrained ones, and of these against
        other retrained models (NaN: unknown).
    retain, test
        The accuracy on retained and on test samples: of the audited models, then of the retrained ones (NaN: no
        samples).
    """

    block: int
    h: np.ndarray
    null: np.ndarray
    retain: list[float]
    test: list[float]


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the score F, its null F₀, F/F₀ and the final score over all splits, then of each swapped pair (field
    ``pair``) if there are several.

    ε of a sample compares the n models of a split that unlearned it with n models retrained for that split, and F is
    the mean of points, which fall from 1 to 0 as ε rises. F₀ compares these retrained models with the n models
    retrained for the other split, which keep the same samples. With few models ε has few values, but F and F₀ share
    them. Retraining itself is compared with its control. Without a control, retraining is compared with models
    retrained for the other split; F₀ would be the same comparison and is empty.
    """
    splits = _pairs.swapped_splits(evaluation.membership)  # the models of every split of every pair
    # A split is identified by its pair (``block``) and by the first sample that it forgets, as the two splits of a pair
    # forget different samples.
    results = {(split.block, split.forget[0]): read_split(evaluation, split, options.rule) for split in splits}

    def of_splits(chosen: list[_pairs.SplitModels]) -> list[Row]:
        """Return the rows for the ``chosen`` splits, the two of one pair or those of all pairs. ``results`` has the
        points of each split. All splits have equally many models."""
        note = f"{len(chosen[0].models)} against {len(chosen[0].models)} models for each of {len(chosen)} forget sets"
        numbers = estimates([results[split.block, split.forget[0]] for split in chosen])
        return table({name: noted(number, note) for name, number in numbers.items()})

    return _pairs.by_pair(splits, of_splits)


def read_split(evaluation: Evaluation, split: _pairs.SplitModels, rule: Literal["exact", "grid"]) -> Split:
    """Return the competition's points of one split's audited models against the models retrained for it, the points of
    these retrained models against the twins, which are retrained for the other split of the pair, and the accuracies of
    audited and retrained models.

    If retraining itself is audited, its models are compared with its control. Without a control they are compared with
    the twins; then the points of retrained models are NaN.

    Parameters
    ----------
    split
        The split with its models and those of the other split.
    rule
        How thresholds of ε are chosen.
    """
    assert evaluation.retrained_files is not None  # else no split has twins
    numbers = np.arange(len(evaluation.membership.seed))
    this_split, other_split = np.isin(numbers, split.models), np.isin(numbers, split.twins)
    audited = Group(evaluation, evaluation.unlearned_files, this_split)
    twins = Group(evaluation, evaluation.retrained_files, other_split)
    reference = Group(evaluation, evaluation.retrained_files, this_split)
    independent: Group | None = twins
    if evaluation.unlearned_files == evaluation.retrained_files:
        reference = Group(evaluation, evaluation.control_files, this_split) if evaluation.control_files else twins
        independent = twins if evaluation.control_files else None

    def compared(unlearned: Group, retrained: Group) -> np.ndarray:
        """Return the points of ε between two groups of models, float64 [forget samples], on the samples that the split
        ``split`` forgets; ``rule`` says how thresholds of ε are chosen."""
        epsilon = epsilons(unlearned=unlearned.phi(split.forget), retrained=retrained.phi(split.forget), rule=rule)
        return points(epsilon, models=len(split.models))

    def accuracies(rows: np.ndarray, truth: np.ndarray) -> list[float]:
        """Return the accuracy of the audited models (``audited``) and of the retrained ones (``reference``) on ``rows``
        bool [samples], whose right labels are ``truth`` int [samples]; NaN without rows."""
        predicted = [models.outputs.predicted(models.models)[:, rows] for models in (audited, reference)]
        return [float((labels == truth[rows]).mean()) if rows.any() else math.nan for labels in predicted]

    h = compared(audited, reference)
    null = np.full(h.shape, np.nan) if independent is None else compared(reference, independent)
    # Models of a split keep the same samples, with the same labels, so those of the first model serve all.
    retain = accuracies(evaluation.membership.retain[split.models[0]], np.atleast_2d(audited.labels)[0])
    return Split(split.block, h, null, retain, accuracies(evaluation.data.part == 1, evaluation.data.y_clean))


def estimates(splits: list[Split]) -> dict[str, Estimate]:
    """Return F, F₀, F/F₀ and the final score of some splits, from means over all their samples: name → estimate.

    From three pairs on, the interval is a jackknife over pairs, each of which has its own models and samples. With
    fewer pairs, it covers samples only, and the note says so. A jackknife over a split's models would compare ε of
    different numbers of models. A number that is undefined, as F/F₀ is for F₀ = 0, is empty; one that is undefined
    without some pair, or F/F₀ without some sample, has no interval. Notes give the reasons.
    """
    h, null = (np.concatenate([getattr(split, name) for split in splits]) for name in ("h", "null"))
    pairs = sorted({split.block for split in splits})
    # The splits without each pair in turn; none if there are too few pairs.
    left_out = pairs if len(pairs) >= FEWEST_PAIRS else []
    without = [[split for split in splits if split.block != pair] for pair in left_out]
    means = np.array([_means(some) for some in (splits, *without)])
    # The jackknife leaves out pairs, given the means of the rest, so that it needs no samples. With too few pairs it
    # leaves out samples, given their points.
    per_sample, per_model = np.zeros((len(means), 0, 1)), means
    if not without:
        per_sample, per_model = np.nan_to_num(np.stack([h, null])[None]), means[:, 2:]  # 2: RA · TA
    numbers = {}
    for name, combine in NUMBERS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            values = combine(*means.T)  # from all splits first, then without each pair
        if not np.isfinite(values[0]):
            numbers[name] = stats.empty(n=len(h), note=_why_missing(name, null))
        elif not np.isfinite(values).all():
            why = "without one of the pairs there is no number, so no interval"
            numbers[name] = stats.without_interval(float(values[0]), n=len(h), note=why)
        elif name == "forgetting_quality_over_null" and not without and not competition.stays_positive(null[None]):
            numbers[name] = stats.without_interval(float(values[0]), n=len(h), note=competition.NO_INTERVAL)
        else:
            bounds = (0.0, 1.0 if name in ("forgetting_quality", "forgetting_quality_null") else math.inf)
            numbers[name] = jackknife.estimate(
                per_sample=per_sample, per_model=per_model, combine=combine, n=len(h), bounds=bounds
            )
    return numbers


def _means(splits: list[Split]) -> tuple[float, float, float]:
    """Return F and F₀, the mean points of audited and of retrained models over all samples of some splits, and RA · TA.
    RA and TA are the mean accuracies on retained and on test samples, each divided by that of retrained models. The
    product is NaN where an accuracy of retrained models is 0 or unknown."""
    # [audited, retrained] for each of the two roles.
    accuracies = [np.mean([getattr(split, role) for split in splits], axis=0) for role in ("retain", "test")]
    ra_ta = math.prod(audited / retrained if retrained else math.nan for audited, retrained in accuracies)
    f, f0 = (np.concatenate([getattr(split, name) for split in splits]).mean() for name in ("h", "null"))
    return float(f), float(f0), float(ra_ta)


def _why_missing(name: str, null: np.ndarray) -> str:
    """Return why the number ``name`` cannot be given. ``null``: points of retrained against retrained models."""
    if name == "score":
        return "the final score needs the accuracy of retrained models on a test part, above 0"
    return NO_NULL if np.isnan(null).any() else "F₀ is 0"
