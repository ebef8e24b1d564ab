"""Crossed variances of models and samples by hand, and joint intervals where their level is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import crossed, levels
from unlearning_audit.stats.crossed import Layer, PerModel, Reading

from stat_cases import at_least, three


def reading(value, influence, *, of_models=None, units=None):
    """A reading of these numbers; the covariance between models is 0."""
    nothing = np.zeros((len(value), len(value)))
    return Reading(np.array(value, dtype=float), np.array(influence, dtype=float), nothing, of_models, units)


#: Three models, two of the first split; two samples, no doubt about events that were never seen.
THREE = PerModel(
    np.array([1.0, 3.0, 8.0]), np.array([[0.2, -0.2], [0.0, 0.4], [0.1, -0.3]]), np.array([[0.1], [0.3], [0.5]])
)
OTHER = PerModel(np.array([0.0, 4.0, 5.0]), np.zeros((3, 2)), np.zeros((3, 1)))
SPLIT = np.array([4, 4, 7])


def test_a_difference_takes_away_the_slope_of_each_model():
    a = PerModel(np.array([1.0, 2.0]), np.array([[1.0], [2.0]]), np.array([[0.5], [0.7]]))
    b = PerModel(np.array([3.0, 5.0]), np.array([[10.0], [20.0]]), np.array([[0.2], [0.4]]))
    gap = crossed.difference(a, b, np.array([2.0, 0.5]))
    np.testing.assert_allclose(gap.value, [-5.0, -0.5])
    np.testing.assert_allclose(gap.influence, [[-19.0], [-8.0]])
    np.testing.assert_allclose(gap.imagined, [[0.5, -0.4], [0.7, -0.2]])
    np.testing.assert_allclose(crossed.difference(a, b).value, [-2.0, -3.0])


def test_models_of_a_split_are_compared_with_their_mean():
    """One degree of freedom; deviations −1, 1, 0 and −2, 2, 0, and of influences ±.1 and ∓.3."""
    splits = crossed.combine([THREE, OTHER], split=SPLIT)
    np.testing.assert_allclose(splits.value, [[2.0, 8.0], [2.0, 5.0]])
    np.testing.assert_allclose(splits.influence[0], [[0.1, 0.1], [0.1, -0.3]])
    np.testing.assert_allclose(splits.imagined[0], [[0.2], [0.5]])
    np.testing.assert_allclose(splits.alone[0], [(0.08 + 0.16) / 2, 0.1])
    np.testing.assert_allclose(splits.models, [[2.0, 4.0], [4.0, 8.0]])
    np.testing.assert_allclose(splits.noise, [0.2, 0.0])
    assert (splits.dof, splits.count.tolist()) == (1, [2, 1])


def test_models_without_repeats_are_compared_across_splits():
    """Influences have the means .1 and -.1/3. Where no two splits share a sample, none of their squares is shared."""
    splits = crossed.combine([THREE], split=np.arange(3))
    np.testing.assert_allclose(splits.models, [[(9 + 1 + 16) / 2]])
    np.testing.assert_allclose(splits.noise, [(0.02 + (0.5**2 + 1.3**2 + 0.8**2) / 9) / 2])
    apart = PerModel(THREE.value, 0.3 * np.eye(3), THREE.imagined)
    np.testing.assert_allclose(crossed.combine([apart], split=np.arange(3)).noise, [0.09])
    assert splits.dof == 2


def test_of_one_model_nothing_is_known_but_samples():
    still = PerModel(np.array([0.5]), np.zeros((1, 2)), np.zeros((1, 1)))
    numbers = crossed.mean([still], split=np.zeros(1))
    assert (numbers.of_models, numbers.covariance.tolist()) == (None, [[0.0]])
    (estimate,) = crossed.estimates(numbers, n=2, note="phi")
    assert three(estimate) == [0.5] * 3
    assert (estimate.n, estimate.note) == (2, f"phi; {crossed.ONE_MODEL}")


def test_a_reading_weighs_splits_and_takes_out_the_noise_of_samples():
    share = np.array([0.75, 0.25])
    numbers = crossed.mean([THREE, OTHER], split=SPLIT, share=share)
    np.testing.assert_allclose(numbers.value, [3.5, 2.75])
    influence = share @ np.array([[0.1, 0.1], [0.1, -0.3]])
    np.testing.assert_allclose(numbers.influence[0, :2], influence, atol=1e-15)
    scale, left = 0.75**2 / 2 + 0.25**2, np.sqrt([1 - 0.2 / 2, 1])
    np.testing.assert_allclose(numbers.models, scale * np.array([[2.0, 4.0], [4.0, 8.0]]) * np.outer(left, left))
    sampled = (numbers.influence**2).sum(axis=1)
    np.testing.assert_allclose(numbers.of_models.between, scale * np.array([2.0, 8.0]))
    np.testing.assert_allclose(numbers.of_models.shared, [max(sampled[0] - scale * 0.2, 0), sampled[1]])
    assert numbers.of_models.dof == 1
    imagined = share * [0.2, 0.5]
    alone, square = 0.12 * 0.75**2 + 0.1 * 0.25**2, imagined @ imagined
    shrinkage = (influence @ influence + square) / (alone + square)
    np.testing.assert_allclose(numbers.influence[0, 2:], imagined * np.sqrt(shrinkage))
    np.testing.assert_allclose(crossed.mean([THREE], split=SPLIT).value, [12 / 3])  # all models count equally


def test_units_differ_by_more_than_their_samples_do_together():
    """Three splits, of which the first and the last are a pair, with the shares 1/4, 1/2 and 1/4: units 3 and 4.5 with
    the influences (0, 0.4) and (0.15, -0.25); of the other statistic 4 and 2.5."""
    splits = crossed.combine([THREE, OTHER], split=np.arange(3))
    units = crossed.weighted_mean(splits, share=np.array([0.25, 0.5, 0.25]), unit=np.array([7, 2, 7])).units
    np.testing.assert_allclose([units.between, units.shared], [[0.75**2] * 2, [0.0] * 2])
    assert units.dof == 1
    alike = PerModel(THREE.value, np.array([[0.2, -0.2], [0.0, -0.4], [0.1, -0.3]]), THREE.imagined)
    units = crossed.mean([alike], split=np.arange(3), unit=np.arange(3)).units
    together = (-0.2 * -0.4 + -0.2 * -0.3 + -0.4 * -0.3 + 0.2 * 0.1) * 2
    np.testing.assert_allclose([units.shared, units.between], [[together / 6], [(9 + 1 + 16) / 6]])
    weighty = crossed.weighted_mean(splits, share=np.array([0.5, 0.5, 0.0]), unit=np.array([3, 3, 5]))
    assert weighty.units is None, "units without weight do not count"


def test_models_that_differ_by_no_more_than_noise_add_nothing():
    part = PerModel(np.array([1.0, 1.2]), np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 1)))
    numbers = crossed.mean([part], split=np.zeros(2))
    assert (numbers.of_models.between.item(), numbers.models.item()) == (pytest.approx(0.02 / 2), 0)


def test_imaginary_samples_average_out_as_real_ones_do_and_are_shared_as_they_are():
    imagined = np.array([[[0.3, 0.0], [0.0, 0.4]], [[0.1, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    influence = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.0]])
    actual = crossed.with_imagined(influence, imagined, alone=np.array([4.75, 0.5, 0.0]))
    np.testing.assert_array_equal(actual[:, :2], influence)
    np.testing.assert_allclose(actual[0, 2:], imagined[0].ravel() * np.sqrt(1.25 / 5))
    np.testing.assert_allclose(actual[1, 2:], imagined[1].ravel() * np.sqrt(1.01 / 0.51))
    np.testing.assert_array_equal(actual[2, 2:], 0.0)


def test_a_reading_of_some_numbers_keeps_their_order():
    layers = [Layer(np.arange(3) + start, np.arange(3, 6) + start, dof) for start, dof in ((10, 5), (0, 4))]
    whole = replace(reading([1, 2, 3], np.eye(3)), models=np.arange(9).reshape(3, 3), of_models=layers[0])
    subset = replace(whole, units=layers[1]).only([2, 0])
    assert (subset.value.tolist(), subset.influence.tolist()) == ([3, 1], [[0, 0, 1], [1, 0, 0]])
    assert subset.models.tolist() == [[8, 6], [2, 0]]
    assert (subset.of_models.between.tolist(), subset.of_models.shared.tolist()) == ([12, 10], [15, 13])
    assert (subset.units.between.tolist(), subset.units.shared.tolist()) == ([2, 0], [5, 3])
    assert (subset.of_models.dof, subset.units.dof) == (5, 4)


def test_half_widths_are_the_largest_over_samples_over_models_and_over_units():
    """Samples: 4 degrees of freedom; models and units: 1, whose quantile is that of Cauchy's distribution."""
    influence, t, cauchy = np.full((2, 2), 0.3), special.stdtrit(4, 0.95), np.tan(0.45 * np.pi)
    layer = Layer(between=np.array([0.04, 0.0]), shared=np.array([0.02, 0.02]), dof=1)
    both, alone = np.sqrt(t**2 * 0.02 + cauchy**2 * 0.04), t * np.sqrt(0.18)
    assert both > alone > t * np.sqrt(0.02)
    less = replace(layer, between=layer.between / 2)
    for layers in ({"of_models": layer}, {"units": layer}, {"of_models": less, "units": layer}):
        np.testing.assert_allclose(crossed.half_widths(reading([0, 0], influence, **layers), p=0.95), [both, alone])
    np.testing.assert_allclose(crossed.half_widths(reading([0, 0], influence), p=0.95), [alone, alone])


def level_of_two_splits(rng, swapped):
    """A mean over two models of one split each, by 40 samples: of a number of each sample, or of the difference between
    the 20 that one model forgot and the other did not see, and the others."""
    value = rng.normal(size=40) + 0.4 * rng.normal(size=(2, 1)) + 0.5 * rng.normal(size=(2, 40))
    first = np.arange(40) < 20
    rows = np.array([first, ~first]) if swapped else np.ones((2, 40), bool)
    parts = [levels.per_model(value=value, weight=side.astype(float)) for side in (rows, ~rows)[: 1 + swapped]]
    number = levels.difference(*parts) if swapped else parts[0]
    return levels.mean(number, split=np.arange(2), block=np.zeros(2, int), n=40)


@pytest.mark.parametrize(("swapped", "deviation"), [(False, 0.33), (True, 0.11)])
def test_two_splits_of_a_model_each_are_covered_and_not_by_saying_nothing(swapped, deviation):
    """What splits share is no noise of single models; and a variance of which most is taken away again has still a
    degree of freedom. ``deviation`` is that of the mean; Cauchy's quantile is 12.7."""
    rng, audits = np.random.default_rng(4), 400
    estimates = [level_of_two_splits(rng, swapped) for _ in range(audits)]
    assert sum(e.low <= 0 <= e.high for e in estimates) / audits >= at_least(0.95, audits)
    assert np.std([e.value for e in estimates]) == pytest.approx(deviation, rel=0.1)
    assert np.median([e.high - e.low for e in estimates]) < 2 * 12.8 * 3 * deviation


def test_joint_half_widths_lie_between_those_of_equal_and_of_independent_numbers():
    """Sidak's of three independent ones; their own of two that are one. Errors have thousands of degrees of freedom."""
    z = special.ndtri((1 + 0.95 ** (1 / 3)) / 2), special.ndtri(0.975)
    for rows, expected in (
        ([[2, 0, 0], [0, 1, 0], [0, 0, 0.5]], z[0] * np.array([2, 1, 0.5])),
        ([[1, 0], [2, 0], [0, 0]], z[1] * np.array([1, 2, 0])),
    ):
        of = reading(np.zeros(3), np.repeat(np.array(rows, float), 20_000, axis=1) / np.sqrt(20_000))
        widths = crossed.joint_half_widths(of, rng=np.random.default_rng(0), draws=20_000)
        np.testing.assert_allclose(widths, expected, rtol=0.015)


def test_joint_half_widths_are_carried_over_to_student_s_t_and_never_below_those_of_one_number():
    of, large = reading([0], [[1.0]]), 0
    for seed in range(20):
        deviation = abs(np.random.default_rng(seed).standard_normal())
        widths = crossed.joint_half_widths(of, rng=np.random.default_rng(seed), draws=1)
        np.testing.assert_allclose(widths, special.stdtrit(2, special.ndtr(max(deviation, special.ndtri(0.975)))))
        large += deviation > special.ndtri(0.975)
    assert 0 < large < 20


def test_estimates_of_rates_stay_between_their_ends():
    half = special.stdtrit(2.0, 0.975) * 0.5
    assert half > 1.5
    estimates = crossed.estimates(reading([0.9, 0.1, 1.2, -0.4], 0.5 * np.eye(4)), n=7)
    assert [three(e) for e in estimates] == [[0.9, 0, 1], [0.1, 0, 1], [1, 0, 1], [0, 0, 1]]
    assert {(e.n, e.note) for e in estimates} == {(7, crossed.ONE_MODEL)}
    narrow, wide = (
        crossed.estimates(reading([v], influence), n=7, bounds=(-1.0, 1.0))[0]
        for v, influence in ((0.5, [[0.01, 0.01]]), (-0.4, [[0.5]]))
    )
    half = special.stdtrit(4.0, 0.975) * 0.01 * np.sqrt(2)
    np.testing.assert_allclose(three(narrow), [0.5, 0.5 - half, 0.5 + half])
    assert three(wide)[:2] == [-0.4, -1]
