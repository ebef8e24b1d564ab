"""Joint bands, adjusted p-values, differences of every two numbers, and rank sets: by hand, and error rates."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from unlearning_audit.stats import gaps, rank_sets, simultaneous

from audit_worlds import World
from slow_cases import slow
from stat_cases import at_least, at_most, normal, numbers


def largest(correlation):
    drawn = simultaneous.deviations(correlation=correlation, rng=np.random.default_rng(0), draws=40_000)
    return np.abs(drawn).max(axis=1)


def test_adjusted_p_values_are_sidak_s_of_independent_numbers_and_their_own_of_equal_ones():
    p, atol = np.array([0.001, 0.01, 0.2, 0.9]), 4 * 0.5 / np.sqrt(40_000)
    np.testing.assert_allclose(simultaneous.adjusted(p=p, largest=largest(np.eye(4))), 1 - (1 - p) ** 4, atol=atol)
    p = np.full(2, 0.03)
    np.testing.assert_allclose(simultaneous.adjusted(p=p, largest=largest(np.ones((2, 2)))), p, atol=atol)


def test_the_largest_of_independent_numbers_by_hand():
    """Nine draws 1…9: of |z| = 8 none is left but Bonferroni's, of |z| = 0 all."""
    drawn = np.array([3.0, 9, 1, 2, 8, 5, 7, 6, 4])
    p = 2 * ndtr(-np.array([6.9999, 30.0, 0.0]))
    np.testing.assert_allclose(simultaneous.adjusted(p=p, largest=drawn), [3 * p[0], 3 * p[1], 1.0])
    many = simultaneous.adjusted(p=np.full(100, 0.5), largest=np.linspace(0, 1, 99))
    np.testing.assert_allclose(many, (1 + (np.linspace(0, 1, 99) >= -ndtri(0.25)).sum()) / 100)


def test_the_level_of_each_lies_between_its_own_and_bonferroni_s():
    levels = [simultaneous.level_of_each(largest=np.full(9, z), count=2, level=0.9) for z in (1.8, 0.0, 9.0)]
    assert levels == pytest.approx([2 * ndtr(1.8) - 1, 0.9, 0.95])


def test_distances_together_by_hand():
    """Twice the same number: the level of each is its own, p-values too; under chance they are independent."""
    distances = normal([0.3, -0.1], [0.1, 0.2], root=[[1.0, 0.0], [1.0, 0.0]])
    how = {"distances": distances, "level": 0.9, "draws": 8000}
    joint = simultaneous.together(**how, rng=np.random.default_rng(0))
    np.testing.assert_allclose(joint.joint_half, ndtri(0.95) * np.array([0.1, 0.2]), rtol=0.03)
    np.testing.assert_allclose(joint.null_half, joint.joint_half)
    np.testing.assert_allclose(joint.p, 2 * ndtr([-3.0, -0.5]), rtol=0.35)
    for seed in range(9):
        few = simultaneous.together(**how | {"draws": 99}, rng=np.random.default_rng(seed))
        assert (few.p >= distances.p_values()).all()
    np.testing.assert_allclose(joint.inner_half, ndtri(0.9) * np.array([0.1, 0.2]), rtol=1e-3)
    under = simultaneous.together(**how, rng=np.random.default_rng(0), chance=normal([0.3, -0.1], [0.05, 0.1]))
    np.testing.assert_allclose(under.joint_half, joint.joint_half)
    np.testing.assert_allclose(under.null_half, ndtri((1 + np.sqrt(0.9)) / 2) * np.array([0.05, 0.1]), rtol=0.03)
    np.testing.assert_allclose(under.p[1], 1 - (1 - 2 * ndtr(-1.0)) ** 2, rtol=0.05)


def test_one_distance_under_chance_keeps_its_own_interval_and_the_p_value_of_chance():
    distances, chance = normal([0.3], [0.1]), normal([0.3], [0.2], units=(0.5, 0.0, 3))
    joint = simultaneous.together(distances=distances, rng=None, chance=chance)
    np.testing.assert_array_equal(joint.joint_half, distances.half_widths())
    np.testing.assert_array_equal(joint.null_half, chance.half_widths(units=False))
    np.testing.assert_array_equal(joint.p, chance.p_values())


@pytest.mark.slow
def test_the_strongest_of_several_is_told_as_rarely_as_promised():
    world, audits, rejections, within = World(truth=(0.0,) * 6, common=0.6), 400, 0, 0
    rng = np.random.default_rng(5)
    for _ in range(audits):
        read = world.read(rng)
        joint = simultaneous.together(distances=read, rng=rng, draws=1000)
        rejections += (joint.p <= 0.05).any()
        within += (np.abs(read.value) <= joint.joint_half).all()
    assert rejections / audits <= at_most(0.05, audits)
    assert within / audits >= at_least(0.95, audits)


@pytest.fixture(scope="module", params=[{}, {"models": 1}, {"pairs": 1, "models": 1}], ids=str)
def distances(request):
    world = World(truth=tuple(np.linspace(0, 0.2, 7)), pair=0.05, model=0.05, **request.param)
    return world.read(np.random.default_rng(1))


def by_matrix(distances):
    first, second = np.triu_indices(len(distances.value), 1)
    rows = np.eye(len(distances.value))
    return distances.combined(rows[first] - rows[second])


def test_differences_have_the_errors_that_a_matrix_of_them_gives(distances, monkeypatch):
    monkeypatch.setattr(gaps, "AT_A_TIME", 8)  # of 21, so that the last part is smaller
    pairs, matrix = gaps.between(distances), by_matrix(distances)
    np.testing.assert_array_equal(pairs.value, matrix.value)
    for tail in (0.4, 1e-6):
        for units in (True, False):
            expected = matrix.spread.squared_half_widths(tail, units=units)
            np.testing.assert_allclose(pairs.spread.squared_half_widths(tail, units=units), expected, rtol=1e-12)
    half = matrix.half_widths(level=1 - 2 * ndtr(-1.5))
    np.testing.assert_array_equal(pairs.beyond(1.5), [matrix.value > half, -matrix.value > half])


def deviations(pairs, sample):
    """Deviations of all differences, float64 [K, draws], from draws of the numbers."""
    parts = ((sample.samples, sample.scale), (sample.models, sample.scale_of_models))
    return sum((draws[pairs.first] - draws[pairs.second]) * scale[:, None] for draws, scale in parts)


def test_draws_of_numbers_have_the_correlation_of_their_differences(distances):
    pairs, draws = gaps.between(distances), 20_000
    drawn = deviations(pairs, pairs.draw_by_number(rng=np.random.default_rng(2), draws=draws))
    correlation = by_matrix(distances).correlation
    few = pairs.draw(rng=np.random.default_rng(9), draws=draws).values
    for sample in (drawn.T, few):
        np.testing.assert_allclose(sample.T @ sample / draws, correlation, atol=5 * np.sqrt(2 / draws))


def test_the_largest_deviation_is_that_of_the_family(distances):
    pairs = gaps.between(distances)
    sample = pairs.draw_by_number(rng=np.random.default_rng(4), draws=600)
    drawn, family = deviations(pairs, sample), np.random.default_rng(5).random((2, len(pairs.value))) < 0.5
    expected = np.concatenate([drawn[family[0]], -drawn[family[1]]]).max(axis=0)
    np.testing.assert_allclose(sample.largest(family), expected, rtol=1e-12)
    np.testing.assert_array_equal(gaps.Deviations(drawn.T).largest(family), expected)


def ranks(distances, **more):
    best, worst = rank_sets.rank_ranges(rank_sets.proven(distances=distances, rng=np.random.default_rng(0), **more))
    return best.tolist(), worst.tolist()


@pytest.mark.parametrize(
    ("value", "sets"),
    [
        ([1.0, 0.9, 0.0], ([1, 1, 3], [2, 2, 3])),  # two errors apart, and far below both
        ([0.0, 1.0], ([2, 1], [2, 1])),
        ([0.0, 0.05], ([1, 1], [2, 2])),
        # A gap of 2.48 errors is too small for all comparisons at once (Tukey's 3.63/√2 = 2.57), not for what is left.
        ([9.0, 6.0, 2.48 * 0.05 * np.sqrt(2), 0.0], ([1, 2, 3, 4], [1, 2, 3, 4])),
        ([2.48 * 0.05 * np.sqrt(2), 0.0, 0.0, 0.0], ([1] * 4, [4] * 4)),
    ],
)
def test_ranks_of_methods_of_which_only_some_are_told_apart(value, sets):
    assert ranks(normal(value, [0.05] * len(value)), draws=20_000) == sets


def test_ranks_hold_for_other_units():
    assert ranks(normal([1.0, 0.9], [0.01, 0.01])) == ([1, 2], [1, 2])
    assert ranks(normal([1.0, 0.9], [0.01, 0.01], units=(np.eye(2), 0.0, 1))) == ([1, 1], [2, 2])


def test_many_methods_far_apart_have_one_rank_each():
    many = gaps.MOST_CORRELATED + 5
    truth = np.random.default_rng(12).permutation(many)
    assert ranks(numbers(truth, 0.01 * np.eye(many))) == ((many - truth).tolist(),) * 2


@pytest.mark.parametrize("seed", range(10))
def test_draws_that_happen_to_be_large_prove_no_less_than_bonferroni_s_bound(seed):
    """The larger of two numbers is 1.97 errors ahead; each of two comparisons is made at 0.025, beyond 1.96."""
    distances = normal([1.97 * 0.05 * np.sqrt(2), 0.0], [0.05, 0.05])
    assert rank_sets.proven(distances=distances, rng=np.random.default_rng(seed), draws=1)[0, 1]


@pytest.mark.parametrize("truth", [(0.1,) * 5, (0.1, 0.1, 0.1, 0.3, 0.3), (0.0, 0.05, 0.1, 0.2, 0.4)])
@pytest.mark.parametrize(("pairs", "audits", "draws"), [(8, 80, 400), *slow((3, 250, 1000), (8, 250, 1000))])
def test_what_is_proven_is_true(truth, pairs, audits, draws):
    """Shares of the audits in which all that is proven is true, and in which anything is proven."""
    truth, rng, world = np.array(truth), np.random.default_rng(16), World(truth, pairs=pairs, pair=0.05, model=0.05)
    larger = [rank_sets.proven(distances=world.read(rng), rng=rng, draws=draws) for _ in range(audits)]
    right, found = np.array([(not x[truth[:, None] <= truth].any(), x.any()) for x in larger]).mean(axis=0)
    assert right >= at_least(0.95, audits)
    assert found > 0.5 or len(set(truth)) == 1 or pairs == 3
