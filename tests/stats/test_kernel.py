"""Kernel two-sample tests: the closed form of Gaussians, definitions, and p-values against all divisions."""

from itertools import combinations

import numpy as np
import pytest
from unlearning_audit.stats import kernel


def test_the_discrepancy_is_the_closed_form_of_two_gaussians():
    """E k(x, y) = (h²/(h² + 2))^(d/2) exp(−|μ|²/(2(h² + 2))) for N(0, 1) against N(μ, 1) in d dimensions."""
    rng, n, d, shift = np.random.default_rng(1), 1200, 2, 0.8
    points = rng.standard_normal((2 * n, d)) + shift * (np.arange(2 * n) >= n)[:, None]
    apart = ((points[:400, None] - points[None, :400]) ** 2).sum(-1)
    gram = kernel.gram(points=points)
    width = -apart[0, 1] / (2 * np.log(gram[0, 1]))
    common = (width / (width + 2)) ** (d / 2)
    truth = 2 * common * (1 - np.exp(-d * shift**2 / (2 * (width + 2))))
    assert kernel.discrepancy(kernel=gram, x=np.arange(n), y=np.arange(n, 2 * n)) == pytest.approx(truth, rel=0.1)


def test_the_discrepancy_is_its_definition():
    rng = np.random.default_rng(2)
    gram = kernel.gram(points=rng.standard_normal((7, 2)))
    x, y = np.array([0, 2, 5]), np.array([1, 3, 4, 6])
    inside = [np.mean([gram[i, j] for i in side for j in side if i != j]) for side in (x, y)]
    between = np.mean([gram[i, j] for i in x for j in y])
    assert kernel.discrepancy(kernel=gram, x=x, y=y) == pytest.approx(sum(inside) - 2 * between)
    squares = np.array([9, 9, 4, 0])  # of all points 1, 1, 4, 9, 9 lie above 0
    np.testing.assert_allclose(kernel.gram(points=np.array([[0.0], [0], [1], [3]]))[3], np.exp(-squares / 8))
    alike = {"u": np.array([0, 1]), "r": np.array([0, 1]), "o": np.array([0, 1])}
    assert np.isnan(kernel.nearer(kernel=gram, **alike)), "less than nothing lies between points that are the same"
    with pytest.raises(ValueError, match="needs two points on either side, not 1 and 4"):
        kernel.discrepancy(kernel=gram, x=x[:1], y=y)


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


def test_which_of_two_is_nearer_is_the_definition():
    gram = kernel.gram(points=np.random.default_rng(4).standard_normal((12, 2)) + np.repeat([0, 2, 5], 4)[:, None])
    u, r, o = np.split(np.arange(12), 3)
    to_o, to_r, between = (kernel.discrepancy(kernel=gram, x=a, y=b) for a, b in ((u, o), (u, r), (r, o)))
    assert kernel.nearer(kernel=gram, u=u, r=r, o=o) == pytest.approx((to_o - to_r) / between)
