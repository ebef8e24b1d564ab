"""Likelihood ratio, kernel densities, logistic regressions, the support vector classifier and the control."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit import stats
from unlearning_audit.attacks import kde, likelihood_ratio, loss, population, svc
from unlearning_audit.attacks import random as control

from attack_cases import advantage, logits_of, run, same_order, shadow_of, two_gaussians

D = 1.5
N = (20, 500)


@pytest.fixture(scope="module")
def game():
    """A reference and audited phi, all drawn from N(D, 1) for members and N(0, 1) for non-members."""
    rng = np.random.default_rng(29)
    pool, y, member = two_gaussians(rng, *N, d=D)
    inside = rng.random(N) < 0.5
    phi = rng.normal(size=N) + D * inside
    return shadow_of(pool, y, member), logits_of(phi, y), y, phi, inside


def test_loss_ranks_and_decides_by_cross_entropy(game):
    shadow, logits, y, phi, inside = game
    score, decision = run(loss, logits, y, shadow)
    assert same_order(score, phi)
    assert advantage(decision, inside) == pytest.approx(2 * scipy_stats.norm.cdf(D / 2) - 1, abs=0.03)
    np.testing.assert_array_equal(decision, score > 0)
    np.testing.assert_allclose(loss.cross_entropy(logits[0], y), np.logaddexp(0, -phi[0]), rtol=1e-5)
    certain = loss.cross_entropy(np.array([[0.0, 800.0], [50.0, 0.0]]), np.array([0, 0]))
    np.testing.assert_allclose(certain, [800.0, np.exp(-50)], rtol=1e-12)


def test_population_gives_the_log_odds_of_phi(game):
    shadow, logits, y, phi, _ = game
    score, decision = run(population, logits, y, shadow)
    np.testing.assert_array_equal(decision, score > 0)
    slope, intercept = np.polyfit(phi.ravel(), score.ravel(), 1)
    assert slope == pytest.approx(D, abs=0.12)  # three standard errors with 10,000 rows
    assert intercept == pytest.approx(-(D**2) / 2, abs=0.12)
    np.testing.assert_allclose(score, slope * phi + intercept, atol=1e-5)


def test_likelihood_ratio_equals_normal_densities(rng):
    # Class 2 has too few rows, one a side, for a centre of its own; class 3 has two.
    y = np.repeat([0, 1, 2, 3], [20, 30, 2, 4])
    member = np.tile([True, False], 28)[None]
    phi = rng.normal(size=(1, 56)) * (1 + y) + 3 * y + member
    phi[0, -4:] = 9, 6, 13, 11
    at = rng.normal(size=(2, 56)) * 4
    shadow = shadow_of(logits_of(phi, y, 4), y, member)
    score, decision = run(likelihood_ratio, logits_of(at, y, 4), y, shadow)
    want = np.zeros((2, 56))
    for c in range(4):
        for side, sign in ((member[0], 1), (~member[0], -1)):
            residual = phi[0] - phi[0, side].mean()
            for group in [side & (y == k) for k in (0, 1, 3)]:
                residual[group] = phi[0, group] - phi[0, group].mean()
            median = np.median(phi[0, side & (y == c) if c != 2 else side])
            width = np.sqrt((residual[side] ** 2).mean())
            want[:, y == c] += sign * scipy_stats.norm.logpdf(at[:, y == c], median, width)
    np.testing.assert_allclose(score, want, atol=1e-4)  # logits are float32
    np.testing.assert_array_equal(decision, score > 0)


@pytest.mark.parametrize("bandwidth", ["silverman", 1.0])
def test_kde_equals_scipy(game, bandwidth):
    shadow, logits, y, phi, _ = game
    score, decision = run(kde, logits[:2], y, shadow, bandwidth=bandwidth)
    reference_phi = stats.phi(logits=shadow.logits, y=y)
    want = np.zeros(2 * N[1])
    for side, sign in ((shadow.member, 1), (shadow.nonmember, -1)):
        rule = bandwidth if bandwidth == "silverman" else bandwidth / reference_phi[side].std(ddof=1)
        want += sign * scipy_stats.gaussian_kde(reference_phi[side], bw_method=rule).logpdf(phi[:2].ravel())
    np.testing.assert_allclose(score.ravel(), want, atol=2e-5)
    np.testing.assert_array_equal(decision, score > 0)


def test_kde_clip_cuts_phi_at_the_probability(game):
    shadow, _, y, _, _ = game
    edge = np.log((1 - 1e-3) / 1e-3)
    at = np.resize([edge, edge + 1, 50.0, -edge, -edge - 1, -50.0], N[1])
    score, _ = run(kde, logits_of(at[None], y), y, shadow, clip=1e-3)
    np.testing.assert_allclose(score[0, 1:3], score[0, 0], atol=1e-4)
    np.testing.assert_allclose(score[0, 4:6], score[0, 3], atol=1e-4)
    with pytest.raises(ValueError, match="clip"):
        kde.Options(clip=0.5)


def test_svc_equals_the_published_classifier(rng):
    from sklearn.svm import SVC

    y = rng.integers(3, size=200)
    member = np.tile(np.arange(200) % 4 == 0, (2, 1))  # 100 members, of whom as many non-members are taken
    pool = logits_of(rng.normal(size=(2, 200)) + 2 * member, y)
    audited = logits_of(np.linspace(-6, 6, 200)[None], y)
    confidence = [np.exp(-np.logaddexp(0, -stats.phi(logits=z, y=y))) for z in (pool, audited)]
    for rows in (1000, 30):
        score, decision = run(svc, audited, y, shadow_of(pool, y, member), rows=rows)
        rng = np.random.default_rng(0)
        sample = np.concatenate([rng.permutation(confidence[0][side])[: min(rows, 100)] for side in (member, ~member)])
        published = SVC(C=3, gamma="auto", kernel="rbf").fit(sample[:, None], np.arange(len(sample)) < len(sample) / 2)
        np.testing.assert_allclose(score.ravel(), published.decision_function(confidence[1].reshape(-1, 1)), atol=1e-9)
        np.testing.assert_array_equal(decision, score > 0)


def test_the_control_knows_nothing(game):
    shadow, logits, y, _, inside = game
    score, decision = run(control, logits, y, shadow)
    auc = stats.auc(score=score.ravel(), positive=inside.ravel())
    assert auc.low < 0.5 < auc.high
    assert abs(advantage(decision, inside)) < 3 * np.sqrt(2 * 0.25 / inside.sum())
    assert decision.mean() == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(decision.size))
    np.testing.assert_array_equal(run(control, -logits, y[::-1], None)[0], score)
    assert (run(control, logits, y, shadow, seed=1)[0] != score).all()
