"""Kernel two-sample tests: definitions, and p-values against all divisions."""

from itertools import combinations

import numpy as np
import pytest
from unlearning_audit.stats import kernel


def test_discrepancies_are_their_definition():
    gram = kernel.gram(points=np.random.default_rng(2).standard_normal((9, 2)))
    u, r, o = np.array([0, 2, 5]), np.array([1, 3, 4, 6]), np.array([7, 8])

    def apart(x, y):
        inside = [np.mean([gram[i, j] for i in side for j in side if i != j]) for side in (x, y)]
        return sum(inside) - 2 * np.mean([gram[i, j] for i in x for j in y])

    assert kernel.discrepancy(kernel=gram, x=u, y=r) == pytest.approx(apart(u, r))
    assert kernel.nearer(kernel=gram, u=u, r=o, o=r) == pytest.approx((apart(u, r) - apart(u, o)) / apart(o, r))
    assert np.isnan(kernel.nearer(kernel=gram, u=u, r=u, o=u)), (
        "less than nothing lies between points that are the same"
    )


def test_the_width_is_the_median_between_different_points():
    squares = np.array([9, 9, 4, 0])  # of all squares 1, 1, 4, 9, 9 lie above 0
    np.testing.assert_allclose(kernel.gram(points=np.array([[0.0], [0], [1], [3]]))[3], np.exp(-squares / 8))
    assert (kernel.gram(points=np.ones((3, 2))) == 1).all()


def test_a_p_value_is_the_share_of_divisions_that_are_as_far_apart():
    """Two of six points against the other four, in 15 divisions; points that are all alike, and that are all apart."""
    rng = np.random.default_rng(3)
    gram, draws = kernel.gram(points=rng.standard_normal((8, 2))), 20_000
    x, y = np.array([1, 6]), np.array([0, 2, 3, 7])
    points, found = np.concatenate([x, y]), kernel.discrepancy(kernel=gram, x=x, y=y)
    apart = [kernel.discrepancy(kernel=gram, x=np.array(two), y=np.setdiff1d(points, two))
             for two in combinations(points, 2)]  # fmt: skip
    truth = np.mean(np.array(apart) >= found - 1e-9)
    assert 2 / 15 < truth < 1
    p = kernel.p_value(kernel=gram, x=x, y=y, rng=rng, draws=draws)
    assert abs(p - truth) < 4 * np.sqrt(truth * (1 - truth) / draws)
    assert kernel.p_value(kernel=np.ones((8, 8)), x=x, y=y, rng=rng, draws=9) == 1
    far = np.kron(np.eye(2), np.ones((20, 20)))
    assert kernel.p_value(kernel=far, x=np.arange(20), y=np.arange(20, 40), rng=rng, draws=9) == 0.1
