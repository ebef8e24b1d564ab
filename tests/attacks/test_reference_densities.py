"""Densities of what reference models say: scipy's and scikit-learn's, leaving a model out, cut probabilities."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import gaussian_kde, norm
from sklearn.neighbors import KernelDensity
from unlearning_audit import stats
from unlearning_audit.evaluation import density
from unlearning_audit.metrics import _reference


def ragged(rng, models: int = 12, samples: int = 40):
    phi = rng.normal(size=(models, samples)) * rng.uniform(0.1, 5, samples) + rng.normal(size=samples)
    mask = rng.random((models, samples)) < 0.6
    mask[:4] = True
    return phi, mask


def test_densities_are_those_of_scipy_and_scikit_learn():
    rng = np.random.default_rng(0)
    phi, mask = ragged(rng)
    at = rng.normal(size=(3, 40)) * 3
    silverman = _reference.log_density(phi, mask, at, side="in")
    fixed = _reference.log_density(phi, mask, at, side="in", bandwidth=1.0)
    gaussian = _reference.log_density(phi, mask, at, side="in", kind="gaussian")
    for s in range(40):
        points = phi[mask[:, s], s]
        np.testing.assert_allclose(
            silverman[:, s], gaussian_kde(points, bw_method="silverman").logpdf(at[:, s]), rtol=0, atol=1e-10
        )
        sklearn = KernelDensity(bandwidth=1.0).fit(points[:, None]).score_samples(at[:, s, None])
        np.testing.assert_allclose(fixed[:, s], sklearn, rtol=0, atol=1e-10)
        np.testing.assert_allclose(gaussian[:, s], norm(points.mean(), points.std()).logpdf(at[:, s]), atol=1e-10)


def test_a_pooled_spread_is_that_around_the_means_of_all_samples():
    phi, mask = np.array([[0.0, 10], [2, 16], [4, 13], [9, 99]]), np.ones((4, 2), bool)
    mask[3] = False
    actual = _reference.log_density(phi, mask, np.array([[3.0, 12.0]]), side="in", kind="pooled")
    sd = math.sqrt((4 + 4 + 9 + 9) / 6)
    np.testing.assert_allclose(actual[0], norm([2, 13], sd).logpdf([3, 12]), atol=1e-12)


def test_models_that_agree_have_the_smallest_bandwidth():
    """And two models have one: (4/(3·2))^⅕ of their standard deviation with divisor 1."""
    same = _reference.log_density(np.ones((3, 1)), np.ones((3, 1), bool), np.ones((1, 1)), side="in")
    assert same[0, 0] == pytest.approx(norm(0, density.SMALLEST_SPREAD).logpdf(0))
    two = _reference.log_density(np.array([[0.0], [2]]), np.ones((2, 1), bool), np.ones((1, 1)), side="in", minimum=2)
    assert two[0, 0] == pytest.approx(norm(0, (2 / 3) ** 0.2 * math.sqrt(2)).logpdf(1))


@pytest.mark.parametrize("models", [[7, 0, 11], [7, 0], [3]])
@pytest.mark.parametrize(
    ("kind", "bandwidth"), [("kde", "silverman"), ("kde", 0.7), ("gaussian", "silverman"), ("pooled", "silverman")]
)
def test_a_model_is_judged_by_the_others(kind, bandwidth, models, monkeypatch):
    rng = np.random.default_rng(2)
    phi, mask = ragged(rng)
    monkeypatch.setattr(_reference, "CHUNK", 12 * 7)  # several chunks of samples
    audited = np.array(models)
    how = {"side": "in", "kind": kind, "bandwidth": bandwidth}
    densities = _reference.log_density(phi, mask, phi[audited], audited=audited, **how)
    for row, m in zip(densities, audited, strict=True):
        rest = np.arange(12) != m
        expected = _reference.log_density(phi[rest], mask[rest], phi[m][None], **how)
        np.testing.assert_allclose(row, expected[0], rtol=1e-9)


def test_densities_stay_finite_where_probabilities_vanish():
    phi, mask = np.zeros((4, 2)), np.ones((4, 2), bool)
    phi[:, 1] = [1, 2, 3, 4]
    far = np.array([[1e4, -1e4]])
    for kind in ("kde", "gaussian"):
        actual = _reference.log_density(phi, mask, far, side="in", kind=kind)
        assert np.isfinite(actual).all()
        assert (actual < -1e5).all()
    mask[:2, 0] = False
    with pytest.raises(ValueError, match="sample 0 has 2 shadow models as held out, 1 samples"):
        _reference.log_density(phi, mask, far, side="held out")


def test_clipping_is_that_of_probabilities():
    logits = np.random.default_rng(3).normal(size=(500, 3)) * 15
    p = np.exp(log_softmax(logits, axis=1))
    expected = np.log(np.clip(p[:, 0], 1e-6, 1 - 1e-6)) - np.log(np.clip(p[:, 1] + p[:, 2], 1e-6, None))
    phi = stats.phi(logits=logits, y=np.zeros(500, np.int64))
    np.testing.assert_allclose(_reference.clip(phi, 1e-6), expected, atol=1e-9)
    assert _reference.clip(np.array([1e4, -1e4]), 1e-6) == pytest.approx([math.log(1e6 - 1), math.log(1e-6)])
    assert _reference.clip(phi, None) is phi
