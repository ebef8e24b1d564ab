"""What published implementations of the metrics do wrong, shown by small ports of the lines, and what ours does."""

import math

import numpy as np
import pytest
import yaml
from scipy.special import expit
from sklearn.metrics import roc_curve
from sklearn.neighbors import KernelDensity
from unlearning_audit.metrics import _reference, blind, ruli
from unlearning_audit.metrics._epsilon import epsilons, points
from unlearning_audit.metrics._epsilon_bound import epsilon_bounds
from unlearning_audit.stats.readings import Question, readings

from workplace import ROOT

pytestmark = pytest.mark.slow


def test_competition_code_stops_at_an_assert():
    # `assert thr_eps` on all surviving thresholds: the truth value of an array is ambiguous
    def published(thr_eps):
        assert thr_eps, "all thresholds gave nan epsilon"

    with pytest.raises(ValueError, match="ambiguous"):
        published(np.array([0.3, 1.2]))
    x = np.random.default_rng(0).normal(size=(2, 20, 1))
    assert 0 <= epsilons(unlearned=x[0], retrained=x[1], rule="grid")[0] < 50


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


def test_resampled_models_fake_separation():
    # the interval a bootstrap over models would give F: its replicates lie far below F itself
    rng = np.random.default_rng(2)
    models = 32
    u, r = rng.normal(size=(2, models, 40)) * 1.5

    def quality(u, r):
        return points(epsilons(unlearned=u, retrained=r), models=models).mean()

    replicates = [quality(*(x[rng.integers(0, models, models)] for x in (u, r))) for _ in range(40)]
    assert np.quantile(replicates, 0.975) < quality(u, r)


def test_equation_2_as_printed_bounds_nothing():
    # upper limit of one rate, lower limit of the other: exceeds the true ε = 0 almost always
    from unlearning_audit.stats import clopper_pearson

    rng = np.random.default_rng(3)
    models, exceeded = 100, []
    for _ in range(200):
        fp, fn = rng.binomial(models, 0.5, 2)
        fpr, fnr = (clopper_pearson(successes=int(k), n=models) for k in (fp, fn))
        exceeded.append(max(math.log((1 - fpr.high) / fnr.low), math.log((1 - fnr.high) / fpr.low)) > 0)
    assert np.mean(exceeded) > 0.3
    u, r = rng.normal(size=(2, models, 200))
    half = models // 2
    bounds = epsilon_bounds(unlearned=(u[:half], u[half:]), retrained=(r[:half], r[half:]), confidence=0.95)
    assert (bounds > 0).mean() < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_tpr_at_the_nearest_fpr():
    # RULI reads tpr[argmin |fpr − x|]: with 400 negatives the nearest FPR to .1 % is 0, at the empty rule
    rng = np.random.default_rng(4)
    positive = np.arange(800) < 400
    perfect = positive + 0.1 * rng.random(800)
    fpr, tpr, _ = roc_curve(positive, perfect)
    assert tpr[np.argmin(np.abs(fpr - 0.001))] == 0
    values = readings(Question(perfect[None], positive[None], ~positive[None]), fpr=(0.001, 0.01))
    assert math.isnan(values["tpr_at_0.1pct_fpr"].value)
    assert "400 negatives cannot resolve" in values["tpr_at_0.1pct_fpr"].note
    assert values["tpr_at_1pct_fpr"].value == 1
    # and where 1 % is on the curve it takes the lowest TPR that has it
    lower = []
    for _ in range(50):
        score = rng.normal(size=800) + 0.3 * positive
        fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
        published = tpr[np.argmin(np.abs(fpr - 0.01))]
        value = readings(Question(score[None], positive[None], ~positive[None]), fpr=(0.01,))["tpr_at_1pct_fpr"].value
        assert published <= value
        lower.append(published < value)
    assert np.mean(lower) > 0.3


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


def test_confident_models_tie_at_the_clip():
    phi = np.array([15.0, 20.0, 30.0])
    assert len(np.unique(_reference.clip(phi, 1e-6))) == 1
    assert len(np.unique(_reference.clip(phi, None))) == 3


def test_label_overlap_by_classes_would_see_nothing():
    # all ten classes on both sides, in opposite proportions
    y = np.repeat(np.arange(10), 50)
    rank = np.tile(np.arange(50), 10)
    forget = rank < 5 * y
    assert set(y[forget]) | {0} == set(y[~forget])
    assert blind.label_overlap(y, forget, ~forget) < 0.7
