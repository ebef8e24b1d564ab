"""Ranks, joint bands and rank sets by hand, where what is drawn is known."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats import paired, rank_sets, simultaneous
from unlearning_audit.stats.paired import Distances, Layer


def read(value, error, *, root=None):
    """Numbers with these errors over many samples, so that they are as good as normal."""
    value, error, n = np.array(value, dtype=float), np.array(error, dtype=float), 3000
    influence = np.repeat(error[:, None] * (np.eye(len(value)) if root is None else root), n, axis=1) / np.sqrt(n)
    nothing = Layer(np.zeros((len(value),) * 2), np.zeros((len(value),) * 2), 0)
    return Distances(value, influence, nothing, nothing, paired.Design(2, 1.0, 2.0, n))


def test_kendall_s_interval_needs_five_pairs_and_spearman_s_four():
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 3, 2, 5, 4])
    tau, rho = stats.kendall(x=x, y=y), stats.spearman(x=x[:4], y=y[:4])
    assert tau.value == pytest.approx(0.6)
    z = special.ndtri(0.975)
    np.testing.assert_allclose([tau.low, tau.high], np.tanh(np.arctanh(0.6) + z * np.sqrt(0.437) * np.array([-1, 1])))
    assert rho.value == pytest.approx(0.8)
    half = z * np.sqrt((1 + 0.8**2 / 2) / 1)
    np.testing.assert_allclose([rho.low, rho.high], np.tanh(np.arctanh(0.8) + half * np.array([-1, 1])))
    assert (tau.n, rho.n, tau.note, rho.note) == (5, 4, "", "")
    short = [stats.kendall(x=x[:n], y=y[:n]) for n in (3, 4)] + [stats.spearman(x=x[:n], y=y[:n]) for n in (2, 3)]
    for estimate in short:
        assert np.isnan([estimate.low, estimate.high]).all()
        assert estimate.note == f"{estimate.n} pairs are too few for an interval"


def test_ties_count_for_no_side_and_share_their_rank():
    """Of ten pairs nine differ in x and eight in y; seven agree, none disagrees."""
    x, y = np.array([1.0, 1, 2, 3, 4]), np.array([1.0, 2, 2, 3, 3])
    assert stats.kendall(x=x, y=y).value == pytest.approx(7 / np.sqrt(72))
    ranks = np.array([1.5, 1.5, 3, 4, 5]), np.array([1, 2.5, 2.5, 4.5, 4.5])
    assert stats.spearman(x=x, y=y).value == pytest.approx(np.corrcoef(*ranks)[0, 1])


@pytest.mark.parametrize("how", [stats.spearman, stats.kendall])
def test_a_list_that_never_varies_has_no_rank_correlation(how):
    same, rising = np.ones(4), np.arange(4.0)
    for x, y in ((same, rising), (rising, same)):
        correlation = how(x=x, y=y)
        assert (correlation.n, correlation.note) == (4, "a rank correlation needs two lists that vary")
    perfect, reverse = how(x=rising, y=rising), how(x=rising, y=-rising)
    assert (perfect.value, reverse.value) == (1, -1)


@pytest.mark.parametrize("how", [stats.spearman, stats.kendall])
def test_a_reversed_order_has_the_mirrored_interval(how):
    x, y = np.arange(6.0), np.array([0.0, 0, 0, 3, 2, 5])
    correlation, mirrored = how(x=x, y=y), how(x=x, y=-y)
    np.testing.assert_allclose([mirrored.low, mirrored.high], [-correlation.high, -correlation.low])
    if how is stats.spearman:
        ranks = np.array([2, 2, 2, 5, 4, 6])
        assert correlation.value == pytest.approx(np.corrcoef(x, ranks)[0, 1])


@pytest.mark.parametrize("how", [stats.spearman, stats.kendall])
def test_a_perfect_order_keeps_its_end_and_nearly_all_of_the_interval(how):
    correlation = how(x=np.arange(6.0), y=np.arange(6.0))
    assert correlation.high == 1
    assert 0.99 < correlation.low < 1
    reverse = how(x=np.arange(6.0), y=-np.arange(6.0))
    assert reverse.low == -1
    assert -1 < reverse.high < -0.99


def test_the_largest_of_independent_numbers_by_hand():
    """Nine draws 1…9: of p = 2Φ(−8) none is left but Bonferroni's, of |z| = 7 three draws, of |z| = 0 all."""
    largest = np.array([3.0, 9, 1, 2, 8, 5, 7, 6, 4])
    p = 2 * special.ndtr(-np.array([6.9999, 30.0, 0.0]))
    p_adjusted = simultaneous.adjusted(p=p, largest=largest)
    np.testing.assert_allclose(p_adjusted, [3 * p[0], 3 * p[1], 1.0])
    small = simultaneous.adjusted(p=2 * special.ndtr(-np.array([2.0, 1.0])), largest=largest / 10 + 1.45)
    np.testing.assert_allclose(small, [2 * 2 * special.ndtr(-2.0), 2 * special.ndtr(-1.0) * 2])
    p_many = simultaneous.adjusted(p=np.full(100, 0.5), largest=np.linspace(0, 1, 99))
    z = -special.ndtri(0.25)
    np.testing.assert_allclose(p_many, (1 + (np.linspace(0, 1, 99) >= z).sum()) / 100)


def test_the_level_of_each_lies_between_its_own_and_bonferroni_s():
    for largest, expected in (
        (np.full(9, 1.8), 2 * special.ndtr(1.8) - 1),
        (np.zeros(9), 0.9),
        (np.full(9, 9.0), 0.95),
    ):
        assert simultaneous.level_of_each(largest=largest, count=2, level=0.9) == pytest.approx(expected)


def test_deviations_have_the_correlation_and_no_more():
    correlation = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    deviations = simultaneous.deviations(correlation=correlation, rng=np.random.default_rng(0), draws=20_000)
    assert deviations.shape == (20_000, 3)
    np.testing.assert_allclose(np.cov(deviations.T), correlation, atol=0.04)
    twice = simultaneous.deviations(correlation=np.ones((2, 2)), rng=np.random.default_rng(0), draws=9)
    np.testing.assert_allclose(twice[:, 0], twice[:, 1], atol=1e-7)
    assert simultaneous.deviations(correlation=correlation, rng=np.random.default_rng(0)).shape == (4000, 3)


def test_distances_together_by_hand():
    """Twice the same number: the level of each is its own, p-values too; the hull of both inner intervals."""
    distances = read([0.3, -0.1], [0.1, 0.2], root=np.array([[1.0, 0.0], [1.0, 0.0]]))
    chance = read([0.3, -0.1], [0.05, 0.1])
    joint = simultaneous.together(distances=distances, rng=np.random.default_rng(0), level=0.9, draws=8000)
    z = special.ndtri(0.95)
    np.testing.assert_allclose(joint.half, z * np.array([0.1, 0.2]), rtol=0.03)
    np.testing.assert_allclose(joint.alone, joint.half)
    np.testing.assert_allclose(joint.p, 2 * special.ndtr([-3.0, -0.5]), rtol=0.35)
    assert (joint.p >= distances.p_values()).all()
    inner = special.ndtri(0.9)
    np.testing.assert_allclose(joint.inner, [0.1 * inner, 0.2 * inner], rtol=1e-3)
    under = simultaneous.together(
        distances=distances, rng=np.random.default_rng(0), level=0.9, draws=8000, chance=chance
    )
    np.testing.assert_allclose(under.half, joint.half)
    sidak = special.ndtri((1 + np.sqrt(0.9)) / 2)
    np.testing.assert_allclose(under.alone, sidak * np.array([0.05, 0.1]), rtol=0.03)
    np.testing.assert_allclose(under.p[1], 1 - (1 - 2 * special.ndtr(-1.0)) ** 2, rtol=0.05)
    assert under.p[0] < 1e-6


def test_one_distance_under_chance_keeps_its_own_interval_and_the_p_value_of_chance():
    distances, chance = read([0.3], [0.1]), read([0.3], [0.2])
    joint = simultaneous.together(distances=distances, rng=None, chance=chance)
    np.testing.assert_array_equal(joint.half, distances.half_widths())
    np.testing.assert_array_equal(joint.alone, chance.half_widths(units=False))
    np.testing.assert_array_equal(joint.p, chance.p_values())


def ranks(distances, **more):
    best, worst = rank_sets.rank_sets(distances=distances, rng=np.random.default_rng(0), **more)
    return best.tolist(), worst.tolist()


def test_ranks_of_methods_of_which_only_some_are_told_apart():
    """The first and second are two errors apart, the third is far below both."""
    distances = read([1.0, 0.9, 0.0], [0.05, 0.05, 0.05])
    assert ranks(distances) == ([1, 1, 3], [2, 2, 3])
    assert ranks(distances, level=0.3) == ([1, 2, 3], [1, 2, 3])
    assert ranks(read([0.0, 1.0], [0.1, 0.1])) == ([2, 1], [2, 1])
    assert ranks(read([0.0, 0.1], [0.1, 0.1])) == ([1, 1], [2, 2])


def test_what_is_told_lowers_the_bar_for_the_rest():
    """A gap of 2.48 errors is too small for all comparisons at once (Tukey's 3.63/√2 = 2.57), not for what is left."""
    gap = 2.48 * 0.05 * np.sqrt(2)
    assert ranks(read([9.0, 6.0, gap, 0.0], [0.05] * 4), draws=20_000) == ([1, 2, 3, 4], [1, 2, 3, 4])
    assert ranks(read([gap, 0.0, 0.0, 0.0], [0.05] * 4), draws=20_000) == ([1] * 4, [4] * 4)


@pytest.mark.parametrize("seed", range(30))
def test_draws_that_happen_to_be_large_prove_no_less_than_bonferroni_s_bound(seed):
    """The larger of two numbers is 1.97 errors ahead; each of two comparisons is made at 0.025, beyond 1.96."""
    distances = read([1.97 * 0.05 * np.sqrt(2), 0.0], [0.05, 0.05])
    assert rank_sets.proven(distances=distances, rng=np.random.default_rng(seed), draws=1)[0, 1]


def test_ranks_without_units_are_narrower():
    still = read([1.0, 0.9], [0.01, 0.01])
    units = Distances(still.value, still.influence, still.models, Layer(np.eye(2), np.zeros((2, 2)), 1), still.design)
    assert ranks(units) == ([1, 1], [2, 2])
    assert ranks(units, units=False) == ([1, 2], [1, 2])
