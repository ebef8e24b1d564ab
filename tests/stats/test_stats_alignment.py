"""Likeness of representations: invariances, the definition tuple by tuple, variance and coverage."""

from itertools import permutations

import numpy as np
import pytest
from unlearning_audit.stats import alignment

from stat_cases import at_least


def normal(rng, samples, features, correlation=0.7):
    """Two sets of independent normal features, each of which has the ``correlation`` with one of the other set; the
    likeness of such populations is its square."""
    x, noise = rng.standard_normal((2, samples, features))
    return {"x": x, "y": correlation * x + np.sqrt(1 - correlation**2) * noise}


def test_rotation_reflection_scale_and_shift_change_nothing():
    rng = np.random.default_rng(0)
    x, y = normal(rng, 40, 5).values()
    turn, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    turn[:, 0] *= -1
    value, moved = alignment.linear_cka(x=x, y=y)
    for variant in (3 * y @ turn + 7, np.c_[y, np.full((40, 2), 4.0)]):
        same, also = alignment.linear_cka(x=x, y=variant)
        assert same == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(also, moved, atol=1e-9)
    value, moved = alignment.linear_cka(x=x, y=-2 * x)
    assert 1 - 1e-12 < value <= 1
    np.testing.assert_allclose(moved, 0.0, atol=1e-12)


def by_tuples(x, y):
    """HSIC of Song et al. (2012) as the mean over all ordered quadruples of different samples."""
    k, m = x @ x.T, y @ y.T
    quadruples = permutations(range(len(x)), 4)
    return np.mean([k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q]) for i, j, q, r in quadruples])


@pytest.mark.parametrize(("samples", "features"), [(7, 3), (4, 1)])
def test_it_is_the_mean_over_quadruples_of_samples(samples, features):
    x, y = normal(np.random.default_rng(3), samples, features).values()
    expected = by_tuples(x, y) / np.sqrt(by_tuples(x, x) * by_tuples(y, y))
    assert alignment.linear_cka(x=x, y=y)[0] == pytest.approx(expected, abs=1e-10)


def test_a_sample_moves_it_as_leaving_it_out_does():
    x, y = normal(np.random.default_rng(5), 150, 4).values()
    value, moved = alignment.linear_cka(x=x, y=y)
    without = np.array([alignment.linear_cka(x=np.delete(x, i, 0), y=np.delete(y, i, 0))[0] for i in range(150)])
    assert np.corrcoef(value - without, moved)[0, 1] > 0.99
    assert (moved**2).sum() == pytest.approx(((without - without.mean()) ** 2).sum() * 149 / 150, rel=0.15)
    assert moved.sum() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize(("samples", "features"), [(160, 8), (60, 64)])
def test_an_interval_by_what_samples_add_covers_the_population(samples, features):
    """Without the correction, 60 samples of 64 features would look much more alike than they are."""
    rng, hits, repeats = np.random.default_rng(6), 0, 150
    for _ in range(repeats):
        value, moved = alignment.linear_cka(**normal(rng, samples, features))
        hits += abs(value - 0.49) <= 1.96 * np.sqrt((moved**2).sum())
    assert hits / repeats >= at_least(0.95, repeats)


def test_nothing_is_said_of_what_does_not_vary_or_of_three_samples():
    x, y = normal(np.random.default_rng(7), 20, 3).values()
    constant = np.full((20, 2), 0.1, np.float32)
    rounded = -1 + 1e-7 * y[:, :2]  # as the last bits of float32 differ
    for pair in ((x, constant), (x, rounded), (x[:3], y[:3])):
        value, moved = alignment.linear_cka(x=pair[0], y=pair[1])
        assert np.isnan([value, *moved]).all()
