"""Differences of every two of many numbers: errors as of a matrix of them, and draws with their correlation."""

import numpy as np
import pytest
from unlearning_audit.stats import gaps, rank_sets, simultaneous

from audit_worlds import World

MANY = gaps.MOST_CORRELATED + 5


def world(methods: int, **more) -> World:
    return World(truth=tuple(np.linspace(0, 0.2, methods)), pair=0.05, model=0.05, **more)


@pytest.fixture(scope="module", params=[{}, {"models": 1}, {"pairs": 1, "models": 1}], ids=str)
def distances(request):
    return world(7, **request.param).read(np.random.default_rng(1))


def by_matrix(distances):
    first, second = np.triu_indices(len(distances.value), 1)
    rows = np.eye(len(distances.value))
    return distances.of(rows[first] - rows[second])


@pytest.mark.parametrize("units", [True, False])
def test_differences_have_the_errors_that_a_matrix_of_them_gives(distances, units):
    pairs, matrix = gaps.between(distances), by_matrix(distances)
    for tail in (0.4, 0.025, 1e-6):
        expected = matrix.spread.squares(tail, units=units)
        np.testing.assert_allclose(pairs.spread.squares(tail, units=units), expected, rtol=1e-12)
    np.testing.assert_array_equal(pairs.value, matrix.value)
    upwards, downwards = pairs.beyond(1.5, units=units)
    deviates = matrix.p_values(units=units) < 2 * 0.06680720126885807  # 1 − Φ(1.5)
    np.testing.assert_array_equal(upwards, deviates & (matrix.value > 0))
    np.testing.assert_array_equal(downwards, deviates & (matrix.value < 0))


def test_draws_of_numbers_have_the_correlation_of_their_differences(distances):
    pairs, draws = gaps.between(distances), 40_000
    sample = pairs.draw_by_number(rng=np.random.default_rng(2), draws=draws)
    deviations = (sample.samples[pairs.first] - sample.samples[pairs.second]) * sample.scale[:, None]
    deviations += (sample.models[pairs.first] - sample.models[pairs.second]) * sample.scale_of_models[:, None]
    products = deviations @ deviations.T / draws
    np.testing.assert_allclose(products, by_matrix(distances).correlation, atol=5 * np.sqrt(2 / draws))


def test_the_largest_deviation_is_that_of_the_family():
    pairs = gaps.between(world(6).read(np.random.default_rng(3)))
    sample = pairs.draw_by_number(rng=np.random.default_rng(4), draws=600)
    deviations = (sample.samples[pairs.first] - sample.samples[pairs.second]) * sample.scale[:, None]
    deviations += (sample.models[pairs.first] - sample.models[pairs.second]) * sample.scale_of_models[:, None]
    family = np.random.default_rng(5).random((2, len(pairs.value))) < 0.5
    expected = np.concatenate([deviations[family[0]], -deviations[family[1]]]).max(axis=0)
    np.testing.assert_array_equal(sample.largest(family), expected)
    np.testing.assert_array_equal(gaps.Deviations(deviations.T).largest(family), expected)


def test_two_numbers_that_are_one_deviate_by_nothing():
    distances = world(3).read(np.random.default_rng(6)).of(np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]]))
    pairs = gaps.between(distances)
    sample = pairs.draw_by_number(rng=np.random.default_rng(7), draws=2000)
    assert not pairs.beyond(0.1, units=True)[:, 0].any()
    assert np.isfinite(sample.largest(np.ones((2, 3), dtype=bool))).all()


def test_few_and_many_numbers_have_the_same_critical_value():
    pairs = gaps.between(world(gaps.MOST_CORRELATED).read(np.random.default_rng(8)))
    both = np.ones((2, len(pairs.value)), dtype=bool)
    small = pairs.draw(rng=np.random.default_rng(9), draws=20_000)
    large = pairs.draw_by_number(rng=np.random.default_rng(10), draws=20_000)
    assert isinstance(small, gaps.Deviations)
    critical = [np.quantile(sample.largest(both), 0.95) for sample in (small, large)]
    assert critical[0] == pytest.approx(critical[1], abs=0.05)


def test_rank_sets_of_many_methods_hold_the_truth():
    truth, rng, audits, inside = np.repeat([0.0, 0.1, 0.3], MANY // 3), np.random.default_rng(11), 60, 0
    rank = 1 + (truth[None] > truth[:, None] + 1e-12).sum(axis=1)
    audit = World(truth=tuple(truth), pairs=3, pair=0.05, model=0.05)
    for _ in range(audits):
        best, worst = rank_sets.rank_sets(distances=audit.read(rng), rng=rng, draws=300)
        inside += ((best <= rank) & (rank <= worst)).all()
    assert inside / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_many_methods_far_apart_have_one_rank_each():
    truth = np.random.default_rng(12).permutation(MANY).astype(float)
    distances = World(truth=tuple(truth), pairs=8).read(np.random.default_rng(13))
    best, worst = rank_sets.rank_sets(distances=distances, rng=np.random.default_rng(14), draws=simultaneous.DRAWS)
    np.testing.assert_array_equal(best, MANY - truth)
    np.testing.assert_array_equal(worst, best)
