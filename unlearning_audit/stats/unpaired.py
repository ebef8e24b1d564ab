"""Differences between audited and reference models that do not form pairs, for any numbers on the same samples.

One audited model may be compared with ten retrained ones. If it is like the retrained models, it differs from their
mean as they differ from each other: by s·√(1 + 1/n) with n − 1 degrees of freedom, whatever the samples are. Where
audited and reference models have the same (pair, split) combinations, differences are taken within each of them first
and then averaged. The level is exact for normal numbers; for numbers of Student's t with three degrees of freedom it is
at most .08.

One retrained model suffices where the standard deviation σ over retrained models is known. σ² then replaces their
estimated variance, and a normal quantile replaces Student's. If m audited models are like retrained ones, their mean
differs from the single retrained model by σ·√(1/m + 1), which the test uses. The interval has h² = t²·S_audited/m +
z²·σ² + t²·S_samples with m − 1 degrees of freedom, a sum of squared half-widths as in `stats.paired`. For a single
audited model, σ² replaces S_audited too. If σ is at least the true standard deviation, neither test errs with more than
α.
"""

from dataclasses import dataclass, replace

import numpy as np

from unlearning_audit.stats import crossed
from unlearning_audit.stats.paired import Design, Distances, Layer, independent, products
from unlearning_audit.stats.shapes import Float, OfModels

#: Degrees of freedom of a variance that is known.
KNOWN = 10**9


@dataclass(frozen=True)
class Models:
    """K numbers of each of some models, with the influence of each sample on them.

    Parameters
    ----------
    value
        float64 [K, models]: the numbers.
    influence
        float64 [K, models, samples]: the influence of each sample.
    imagined
        float64 [K, models, k]: the influence of imaginary samples, added so that no variance is 0 by chance.
    unit
        int [models]: models of different units share nothing but samples.
    split
        int [models]: models of one unit and one split repeat each other.
    covariance
        float64 [K, K]: the known covariance between models, for models that do not repeat each other (None: unknown).
    """

    value: Float[np.ndarray, "K models"]
    influence: Float[np.ndarray, "K models samples"]
    imagined: Float[np.ndarray, "K models k"]
    unit: OfModels
    split: OfModels
    covariance: Float[np.ndarray, "K K"] | None = None

    @property
    def places(self) -> set[tuple[int, int]]:
        """Return every (unit, split) that has a model."""
        return set(zip(self.unit.tolist(), self.split.tolist(), strict=True))


def differences(*, audited: Models, reference: Models) -> tuple[Distances, Distances]:
    """Return audited − reference of K numbers twice: with the errors that both groups of models show, and with the
    errors that hold if both groups are models of one kind.

    Models of different units share nothing but samples; models of one unit and one split repeat each other. If the two
    groups differ in their units or splits, all models of a group count as repeats. Let S be the variance between models
    of one (unit, split), and m and n the numbers of audited and reference models there. The first result, for
    intervals, has variance S_audited/m + S_reference/n, to which differences between units add. Its degrees of freedom
    are the smaller number of the two groups' (Welch's lie between that and their sum). A group without repeats is
    assumed to vary as much as the group with repeats. The second result, for tests, has variance S·(1/m + 1/n), where S
    is that of both groups together, as they are of one kind. Reference models alone are often few, and where a number
    is near an end of its range they may all be equal. If neither group has repeats, the variance of models is unknown
    and has 0 degrees of freedom (``dof``), unless a ``covariance`` is given.

    Parameters
    ----------
    audited, reference : Models
        The two groups, with the same K numbers of the same samples.

    Returns
    -------
    shown, alike : Distances
        K differences each.
    """
    same_places = audited.places == reference.places
    places = sorted(audited.places) if same_places else [(0, 0)]  # all models in one place, if the groups' differ
    _, unit = np.unique([unit for unit, _ in places], return_inverse=True)
    splits = np.bincount(unit)
    share = (1 / (len(splits) * splits))[unit]  # the weight of each place in the mean
    both = [_means_over_models(group, places if same_places else None) for group in (audited, reference)]
    of_audited, of_reference = both
    value, influence = (getattr(of_audited, name) - getattr(of_reference, name) for name in ("value", "influence"))
    # Imaginary samples of the two groups are different ones, so that they do not cancel.
    imagined = [averaged.mean_imagined(share) for averaged in both]
    mean_influence = np.concatenate([np.einsum("p,kps->ks", share, influence), *imagined], axis=1)
    sampled = mean_influence @ mean_influence.T
    join = (unit == np.arange(len(splits))[:, None]) / splits[:, None]  # places to units
    units = independent(value @ join.T, join @ influence, sampled)
    samples = np.any([(group.influence != 0).any(axis=(0, 1)) for group in (audited, reference)], axis=0).sum()
    design = Design(len(splits), float(splits.mean()), float(of_audited.count.mean()), int(samples))
    scales = [(share**2 / averaged.count).sum() for averaged in both]
    of_both, if_alike = _model_layers([averaged.spread for averaged in both], scales, sampled)
    shown = Distances(value @ share, mean_influence, models=of_both, units=units, design=design)
    return shown, replace(shown.of_samples(), models=if_alike)


@dataclass(frozen=True)
class _Averaged:
    """K numbers of some models, averaged over the models of each place, a (unit, split).

    Parameters
    ----------
    count
        int64 [places]: how many models each place has.
    value
        float64 [K, places]: the means.
    influence
        float64 [K, places, samples]: the means of the influences of samples.
    imagined
        float64 [K, places, k]: the means of the influences of imaginary samples.
    alone
        float64 [K, places]: the mean over models of Σ influence² of one model, which is what Σ influence² would be if
        models agreed on all samples.
    spread
        The covariance between models of one place, float64 [K, K], how much of it is noise of single samples in single
        models, float64 [K, K], and its degrees of freedom.
    """

    count: np.ndarray
    value: np.ndarray
    influence: np.ndarray
    imagined: np.ndarray
    alone: np.ndarray
    spread: tuple[np.ndarray, np.ndarray, int]

    def mean_imagined(self, share: np.ndarray) -> np.ndarray:
        """Return the influence of imaginary samples on the mean over places, which have the weights ``share`` float64
        [places]: float64 [K, places · k]."""
        influence = np.einsum("p,kps->ks", share, self.influence)
        alone = self.alone @ share**2
        return crossed.with_imagined(influence, share[:, None] * self.imagined, alone=alone)[:, influence.shape[1] :]


def _means_over_models(group: Models, places: list[tuple[int, int]] | None) -> _Averaged:
    """Return the means over the models of each place, and how models of one place vary. A place is a unit and a split.

    Where no place has two models, the covariance between models of one place is ``group.covariance``. Where this is
    None too, the covariance is zero with 0 degrees of freedom.

    Parameters
    ----------
    group
        The audited or the reference models.
    places
        The (unit, split) of each place; None: all models are in one place.
    """
    place_of_model = np.zeros(len(group.unit), np.int64)
    if places is not None:
        place_of_model[:] = [places.index(place) for place in zip(group.unit, group.split, strict=True)]
    count = np.bincount(place_of_model)  # models of each place
    member = (place_of_model == np.arange(len(count))[:, None]) * 1.0  # [places, models]: 1 where the model is there
    average = member / count[:, None]
    value, influence = group.value @ average.T, average @ group.influence
    # How far each model's value, and influences, are from the mean of its place.
    deviation, noise = group.value - value[:, place_of_model], group.influence - influence[:, place_of_model]
    dof = int((count - 1).sum())
    spread = deviation @ deviation.T / max(dof, 1), products(noise) / max(dof, 1), dof
    if not dof and group.covariance is not None:
        spread = group.covariance, np.zeros_like(group.covariance), KNOWN
    alone = (group.influence**2).sum(axis=2) @ average.T
    return _Averaged(count, value, influence, average @ group.imagined, alone, spread)


def _model_layers(
    spread: list[tuple[np.ndarray, np.ndarray, int]], scale: list[float], sampled: np.ndarray
) -> tuple[Layer, Layer]:
    """Return the covariance over models of the difference twice: as both groups of models show it, and as it is if both
    are alike. If neither group has degrees of freedom, both are 0 with 0 degrees of freedom.

    Parameters
    ----------
    spread
        For audited and reference models, how models of one place vary (`_Averaged`): covariance and noise, float64
        [K, K], and degrees of freedom.
    scale
        For both groups, the factor that turns a variance between models into the variance of a mean.
    sampled
        float64 [K, K]: the covariance over samples.
    """
    (audited, reference), (audited_scale, reference_scale) = spread, scale
    of_all = audited[2] + reference[2]  # degrees of freedom
    if not of_all:
        unknown = Layer(np.zeros_like(sampled), sampled, 0)
        return unknown, unknown
    # If both groups are of one kind, all models show how it varies.
    pooled = (audited[0] * audited[2] + reference[0] * reference[2]) / of_all
    # A group without repeats is assumed to vary as much as the group with repeats.
    audited_covariance, audited_noise, audited_dof = audited if audited[2] else reference
    reference_covariance, reference_noise, reference_dof = reference if reference[2] else audited
    of_audited, of_reference = audited_covariance * audited_scale, reference_covariance * reference_scale
    noise, dof = audited_noise * audited_scale + reference_noise * reference_scale, min(audited_dof, reference_dof)
    # If audited models show their own variance, that of the retrained one is still known, not estimated.
    known = of_reference if dof < reference_dof == KNOWN else None
    of_both = Layer(of_audited + of_reference, sampled - noise, dof, known)
    # Samples move models of one kind alike, so they add nothing to a difference of such models.
    return of_both, Layer(pooled * sum(scale), np.zeros_like(sampled), min(of_all, KNOWN))
