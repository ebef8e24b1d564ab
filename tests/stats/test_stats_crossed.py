"""Crossed variances of models and samples by hand, and joint intervals where their level is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import crossed
from unlearning_audit.stats.crossed import PerModel, Reading


def z(p):
    return float(special.ndtri(p))


def reading(value, influence, *, models=None, raw=None, dof=0):
    """A reading of these numbers; models add nothing unless they are given."""
    value, influence = np.array(value, dtype=float), np.array(influence, dtype=float)
    nothing = np.zeros((len(value), len(value)))
    models = nothing if models is None else np.array(models, dtype=float)
    return Reading(value, influence, models, models if raw is None else np.array(raw, dtype=float), dof)


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
    np.testing.assert_allclose(crossed.difference(a, b).imagined, [[0.5, -0.2], [0.7, -0.4]])


def test_models_of_a_split_are_compared_with_their_mean():
    splits = crossed.combine([THREE, OTHER], split=SPLIT)
    np.testing.assert_allclose(splits.value, [[2.0, 8.0], [2.0, 5.0]])
    np.testing.assert_allclose(splits.influence[0], [[0.1, 0.1], [0.1, -0.3]])
    np.testing.assert_allclose(splits.imagined[0], [[0.2], [0.5]])
    np.testing.assert_allclose(splits.alone[0], [(0.08 + 0.16) / 2, 0.1])
    # one degree of freedom; deviations −1, 1, 0 and −2, 2, 0, and of influences ±.1 and ∓.3
    np.testing.assert_allclose(splits.models, [[2.0, 4.0], [4.0, 8.0]])
    np.testing.assert_allclose(splits.noise, [0.2, 0.0])
    assert splits.dof == 1
    np.testing.assert_array_equal(splits.count, [2, 1])


def test_models_without_repeats_are_compared_across_splits():
    splits = crossed.combine([THREE], split=np.arange(3))
    np.testing.assert_allclose(splits.models, [[(9 + 1 + 16) / 2]])
    np.testing.assert_allclose(splits.noise, [(0.08 + 0.16 + 0.1) / 3])
    assert splits.dof == 2


def test_of_one_model_nothing_is_known_but_samples():
    still = PerModel(np.array([0.5]), np.zeros((1, 2)), np.zeros((1, 1)))
    numbers = crossed.read(crossed.combine([still], split=np.zeros(1)), share=np.ones(1))
    assert numbers.dof_models == 0
    np.testing.assert_array_equal(numbers.covariance, [[0.0]])
    np.testing.assert_array_equal(crossed.half_widths(numbers), [0.0])
    (estimate,) = crossed.estimates(numbers, n=2, note="phi")
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (0.5, 0.5, 0.5, 2)
    assert estimate.note == f"phi; {crossed.ONE_MODEL}"


def test_a_reading_weighs_splits_and_takes_out_the_noise_of_samples():
    numbers = crossed.read(crossed.combine([THREE, OTHER], split=SPLIT), share=np.array([0.75, 0.25]))
    np.testing.assert_allclose(numbers.value, [3.5, 2.75])
    influence = np.array([0.75 * 0.1 + 0.25 * 0.1, 0.75 * 0.1 - 0.25 * 0.3])
    np.testing.assert_allclose(numbers.influence[0, :2], influence, atol=1e-15)
    scale = 0.75**2 / 2 + 0.25**2
    np.testing.assert_allclose(numbers.raw, scale * np.array([[2.0, 4.0], [4.0, 8.0]]))
    shrinkage = np.sqrt(1 - 0.2 / 2)
    np.testing.assert_allclose(
        numbers.models, scale * np.array([[2 * shrinkage**2, 4 * shrinkage], [4 * shrinkage, 8.0]])
    )
    assert numbers.dof_models == 1
    imagined = np.array([0.75 * 0.2, 0.25 * 0.5])
    alone, square = 0.12 * 0.75**2 + 0.1 * 0.25**2, imagined @ imagined
    left = (influence @ influence + square) / (alone + square)
    np.testing.assert_allclose(numbers.influence[0, 2:], imagined * np.sqrt(left))


def test_units_differ_by_more_than_their_samples_do_together():
    """Three splits, of which the first and the last are a pair, with the shares 1/4, 1/2 and 1/4."""
    splits = crossed.combine([THREE, OTHER], split=np.arange(3))
    numbers = crossed.read(splits, share=np.array([0.25, 0.5, 0.25]), unit=np.array([7, 2, 7]))
    # units 3 and 4.5 with the influences (0, 0.4) and (0.15, -0.25); of the other statistic 4 and 2.5
    np.testing.assert_allclose(numbers.units.between, [0.75**2, 0.75**2])
    np.testing.assert_allclose(numbers.units.shared, [0.0, 0.0])
    assert numbers.units.dof == 1
    alike = PerModel(THREE.value, np.array([[0.2, -0.2], [0.0, -0.4], [0.1, -0.3]]), THREE.imagined)
    units = crossed.read(crossed.combine([alike], split=np.arange(3)), share=np.ones(3) / 3, unit=np.arange(3)).units
    together = (-0.2 * -0.4 + -0.2 * -0.3 + -0.4 * -0.3 + 0.2 * 0.1) * 2
    np.testing.assert_allclose(units.shared, together / 6)
    np.testing.assert_allclose(units.between, (9 + 1 + 16) / 6)
    assert crossed.read(splits, share=np.ones(3) / 3, unit=np.zeros(3)).units is None


def test_models_that_differ_by_no_more_than_noise_add_nothing():
    part = PerModel(np.array([1.0, 1.2]), np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 1)))
    numbers = crossed.read(crossed.combine([part], split=np.zeros(2)), share=np.ones(1))
    np.testing.assert_allclose(numbers.raw, [[0.02 / 2]])
    np.testing.assert_array_equal(numbers.models, [[0.0]])


def test_imaginary_samples_average_out_as_real_ones_do_and_never_grow():
    imagined = np.array([[[0.3, 0.0], [0.0, 0.4]], [[0.1, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    influence = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.0]])
    actual = crossed.averaged(imagined, influence, alone=np.array([4.75, 0.5, 0.0]))
    np.testing.assert_allclose(actual[0], imagined[0] * np.sqrt(1.25 / 5))
    np.testing.assert_array_equal(actual[1:], imagined[1:])


def test_a_reading_of_some_numbers_keeps_their_order():
    of = reading([1, 2, 3], np.eye(3), models=np.arange(9).reshape(3, 3), raw=np.arange(10, 19).reshape(3, 3), dof=5)
    subset = of.only([2, 0])
    np.testing.assert_array_equal(subset.value, [3, 1])
    np.testing.assert_array_equal(subset.influence, [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(subset.models, [[8, 6], [2, 0]])
    np.testing.assert_array_equal(subset.raw, [[18, 16], [12, 10]])
    assert subset.dof_models == 5


def test_degrees_of_freedom_are_satterthwaite_s():
    """Samples: A = .25 with 2A²/Σ⁴ of them; models: .5 of which .3 is left after the noise."""
    of = reading([0, 0], [[0.3, 0.4], [0, 0]], models=[[0.3, 0], [0, 0]], raw=[[0.5, 0], [0, 0]], dof=4)
    fourth = 0.3**4 + 0.4**4
    np.testing.assert_allclose(of.dof[0], 0.55**2 / (fourth / 2 + 0.5**2 / 4))
    assert of.dof[1] == np.inf
    alone = reading([0], [[0.3, 0.4]])
    np.testing.assert_allclose(alone.dof, 2 * 0.25**2 / fourth)
    np.testing.assert_allclose(of.covariance, [[0.55, 0], [0, 0]])


def test_the_half_width_of_one_number_is_student_s():
    of = reading([0], [[0.3, 0.4]])
    t = special.stdtrit(2 * 0.25**2 / (0.3**4 + 0.4**4), 0.95)
    np.testing.assert_allclose(crossed.half_widths(of, level=0.9), [t * 0.5])


def test_the_half_width_over_units_adds_squared_half_widths_or_is_student_s_if_that_is_larger():
    """Samples: 2 degrees of freedom; units: 1, whose quantile is that of Cauchy's distribution."""
    influence = np.array([[0.3, 0.3], [0.3, 0.3]])
    units = crossed.Units(between=np.array([0.04, 0.0]), shared=np.array([0.02, 0.02]), dof=1)
    of = replace(reading([0, 0], influence, dof=3), units=units)
    of_samples, of_units = special.stdtrit(4, 0.95), np.tan(0.45 * np.pi)
    alone = of_samples * np.sqrt(0.18)
    both = np.sqrt(of_samples**2 * 0.02 + of_units**2 * 0.04)
    assert both > alone > of_samples * np.sqrt(0.02)
    np.testing.assert_allclose(crossed.half_widths(of, level=0.9), [both, alone])


def of_many_samples(*rows):
    """Numbers whose errors have thousands of degrees of freedom, with these correlations of samples."""
    return reading(np.zeros(len(rows)), np.repeat(np.array(rows, dtype=float), 20_000, axis=1) / np.sqrt(20_000))


def test_joint_half_widths_are_sidak_s_of_independent_numbers():
    of = of_many_samples([2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5])
    widths = crossed.joint_half_widths(of, rng=np.random.default_rng(0), level=0.9, draws=20_000)
    np.testing.assert_allclose(widths / [2.0, 1.0, 0.5], z((1 + 0.9 ** (1 / 3)) / 2), rtol=0.015)


def test_joint_half_widths_of_one_number_that_is_there_twice_are_its_own():
    of = of_many_samples([1.0, 0.0], [2.0, 0.0], [0.0, 0.0])
    widths = crossed.joint_half_widths(of, rng=np.random.default_rng(1), level=0.9, draws=20_000)
    np.testing.assert_allclose(widths[:2] / [1.0, 2.0], z(0.95), rtol=0.015)
    assert widths[2] == 0


@pytest.mark.parametrize("seed", range(3))
def test_joint_half_widths_are_never_below_those_of_one_number(seed):
    of = of_many_samples([1.0])
    widths = crossed.joint_half_widths(of, rng=np.random.default_rng(seed), draws=5)
    assert widths[0] >= crossed.half_widths(of)[0] * (1 - 1e-9)


def test_joint_half_widths_are_of_4000_draws_unless_it_is_said():
    of = of_many_samples([1.0, 0.0], [0.0, 1.0])
    widths, same = (crossed.joint_half_widths(of, rng=np.random.default_rng(3), **how) for how in ({}, {"draws": 4000}))
    np.testing.assert_array_equal(widths, same)


def test_joint_half_widths_are_carried_over_to_student_s_t():
    of = reading([0], [[1.0]], dof=0)
    widths = crossed.joint_half_widths(of, rng=np.random.default_rng(2), level=0.95, draws=1)
    deviation = abs(np.random.default_rng(2).standard_normal())
    np.testing.assert_allclose(widths, special.stdtrit(2, special.ndtr(max(deviation, z(0.975)))))


def test_estimates_of_rates_stay_between_their_ends():
    of = reading([0.9, 0.1, 1.2, -0.4], 0.5 * np.eye(4), dof=3)
    half = special.stdtrit(2.0, 0.975) * 0.5
    assert half > 1.5
    estimates = crossed.estimates(of, n=7)
    assert [(e.value, e.low, e.high) for e in estimates] == [(0.9, 0, 1), (0.1, 0, 1), (1, 0, 1), (0, 0, 1)]
    assert {(e.n, e.note) for e in estimates} == {(7, "")}
    narrow = reading([0.5], [[0.01, 0.01]], dof=3)
    (e,) = crossed.estimates(narrow, n=7, low=-1.0)
    t = special.stdtrit(4.0, 0.975) * 0.01 * np.sqrt(2)
    np.testing.assert_allclose([e.low, e.high], [0.5 - t, 0.5 + t])
    assert crossed.estimates(reading([-0.4], [[0.5]]), n=7, low=-1.0)[0].low == -1
    assert crossed.estimates(reading([-0.4], [[0.5]]), n=7, low=-1.0)[0].value == -0.4


def test_a_weighted_rate_moves_as_agresti_and_caffo_s():
    value, weight = np.array([[1.0, 0.0, 1.0]]), np.array([[1.0, 2.0, 3.0]])
    actual = crossed.per_model(value=value, weight=weight)
    np.testing.assert_allclose(actual.value, [4 / 6])
    typical, centre = 14 / 6, (4 + 14 / 6) / (6 + 28 / 6)
    np.testing.assert_allclose(actual.influence, weight / (6 + 2 * typical) * (value - centre))
    np.testing.assert_allclose(actual.imagined, typical / (6 + 2 * typical) * np.array([[-centre, 1 - centre]]))
