"""What published implementations of the metrics do wrong, shown by small ports of the lines, and what ours does."""

import numpy as np
import pytest
import yaml
from scipy.special import expit
from sklearn.neighbors import KernelDensity
from unlearning_audit.metrics import _reference, blind, ruli
from unlearning_audit.metrics._epsilon import epsilons, points

from workplace import ROOT

pytestmark = pytest.mark.slow


def test_perfect_unlearning_does_not_score_one_and_scale_matters():
    rng = np.random.default_rng(1)
    u, r = rng.normal(size=(2, 128, 150))
    quality = {
        (sd, rule): points(epsilons(unlearned=u * sd, retrained=r * sd, rule=rule), models=128).mean()
        for sd, rule in ((1.5, "exact"), (1.5, "grid"), (0.3, "exact"), (0.3, "grid"))
    }
    assert all(q < 0.25 for q in quality.values())
    assert quality[1.5, "exact"] > 2 * quality[0.3, "exact"]
    assert abs(quality[1.5, "exact"] - quality[1.5, "grid"]) < 0.01
    assert quality[0.3, "grid"] > quality[0.3, "exact"]  # the grid misses cuts where phi hardly varies


def test_the_study_of_the_paper_computes_the_published_ratio():
    """S = p/(p + q) of sklearn's KernelDensity at its bandwidth of 1, phi clipped: same values, same decisions."""
    options = yaml.safe_load((ROOT / "studies" / "ruli.yaml").read_text())["scenarios"]["compat"]["metrics"]["ruli"]
    compat = ruli.Options(**options)
    rng = np.random.default_rng(5)
    phi, at = rng.normal(size=(30, 20)) * 4 + 3, rng.normal(size=(2, 20)) * 6
    out = np.arange(30) % 2 == 0
    masks = [np.broadcast_to(m[:, None], phi.shape) for m in (~out, out)]
    clipped, query = _reference.clip(phi, compat.clip), _reference.clip(at, compat.clip)
    p, q = (_reference.log_density(clipped, m, query, side="x", bandwidth=compat.bandwidth) for m in masks)
    published = np.empty(at.shape)
    for s in range(20):
        a, b = (
            np.exp(KernelDensity().fit(clipped[side, s, None]).score_samples(query[:, s, None])) for side in (~out, out)
        )
        published[:, s] = a / (a + b)
    np.testing.assert_allclose(expit(p - q), published, rtol=1e-9)
    np.testing.assert_array_equal(p - q > 0, published > 0.5)
    assert compat.test_model == "original"
    assert compat.population == "trained"


def test_ratios_of_vanishing_probabilities():
    # exp before the ratio: 0/0 once phi is not clipped; the difference of log densities knows the answer
    points_in, points_out, far = np.full((5, 1), 20.0), np.full((5, 1), 0.0), np.array([[80.0]])
    p, q = (np.exp(KernelDensity().fit(x).score_samples(far)) for x in (points_in, points_out))
    with np.errstate(invalid="ignore"):
        assert np.isnan(p / (p + q)).all()
    everyone = np.ones((5, 1), bool)
    computed = [_reference.log_density(x, everyone, far, side="x", bandwidth=1.0) for x in (points_in, points_out)]
    assert computed[0] - computed[1] == pytest.approx((80**2 - 60**2) / 2)


def test_label_overlap_by_classes_would_see_nothing():
    # all ten classes on both sides, in opposite proportions
    y = np.repeat(np.arange(10), 50)
    rank = np.tile(np.arange(50), 10)
    forget = rank < 5 * y
    assert set(y[forget]) | {0} == set(y[~forget])
    assert blind.label_overlap(y[forget], y[~forget]) < 0.7
