"""Signals, thresholds, the logistic regression, densities and per-sample statistics behind the attacks."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit.evaluation import density, logistic, signals, thresholds
from unlearning_audit.evaluation.shadow import Shadow

from attack_cases import logits_of, shadow_of


@pytest.mark.parametrize(
    "logits", [[0.5, -1.0, 2.0], [0.0, 0.0], [30.0, -3.0, 0.1], [300.0, 0.0, 299.0, -200.0], [1e4, 0.0, 0.0]]
)
def test_log_probabilities_and_complements_are_exact(logits):
    with localcontext() as context:
        context.prec = 400
        exponential = [Decimal(z).exp() for z in logits]
        total = sum(exponential)
        log_p = [float((e / total).ln()) for e in exponential]
        log_q = [float((sum(exponential[:i] + exponential[i + 1 :]) / total).ln()) for i in range(len(logits))]
    np.testing.assert_allclose(signals.log_probabilities(np.array(logits)), log_p, rtol=1e-13)
    np.testing.assert_allclose(signals.log_complements(np.array(logits)), log_q, rtol=1e-13)


def test_known_rows_keep_value_label_and_side_together(rng):
    phi = rng.normal(size=(4, 6))
    y = rng.integers(3, size=(4, 6))
    member, nonmember = np.zeros((4, 6), dtype=bool), np.zeros((4, 6), dtype=bool)
    member[0, [1, 4]] = member[3, 0] = nonmember[0, 2] = nonmember[2, 5] = True
    statistics = signals.statistics(signals.phi, Shadow(logits_of(phi, y), y, member, nonmember), classes=3)
    rows = [(0, 1), (0, 2), (0, 4), (2, 5), (3, 0)]
    np.testing.assert_allclose(statistics.value, [phi[r] for r in rows], atol=1e-6)
    assert statistics.label.tolist() == [y[r] for r in rows]
    assert statistics.member.tolist() == [True, False, True, False, True]


def test_thresholds_per_class_and_the_fallback():
    #         class 0: own threshold 5     class 1: members only    class 2: own threshold 1
    value = np.array([5.0, 6.0, 4.0, 3.0, 0.5, 0.6, 1.0, 2.0, 0.0, 0.1])
    label = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
    member = np.array([1, 1, 0, 0, 1, 1, 1, 1, 0, 0], dtype=bool)
    fit = thresholds.fit(value=value, label=label, member=member, classes=4, per_class=True)
    gain = {t: (value[member] >= t).mean() - (value[~member] >= t).mean() for t in value}
    everyone = max(gain, key=gain.get)
    assert everyone == 0.5
    assert fit.tolist() == [5.0, everyone, 1.0, everyone]
    assert thresholds.fit(value=value, label=label, member=member, classes=4, per_class=False).tolist() == [0.5] * 4


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_logistic_equals_scikit_learn(rng, share):
    from sklearn.linear_model import LogisticRegression

    x = rng.normal(size=(3000, 4)) * [1, 10, 0.1, 1] + [0, 100, 0, 3]
    member = rng.random(3000) < share
    x[member] += [0.5, 5, 0.2, -0.3]
    standardised = (x - x.mean(0)) / x.std(0)
    shadow = LogisticRegression(C=0.5, class_weight="balanced", tol=1e-12, max_iter=1000).fit(standardised, member)
    actual = logistic.fit(x, member, ridge=2.0).log_odds(x)
    np.testing.assert_allclose(actual, shadow.decision_function(standardised), atol=1e-5)


def test_a_feature_that_varies_by_rounding_has_no_say(rng):
    x, member = rng.normal(size=(200, 3)), rng.random(200) < 0.5
    x[:, 1] = 1e-16 * rng.integers(2, size=200)
    x[:, 2] = 0.3 + 1e-16 * member
    still = x * [1, 0, 0]
    np.testing.assert_allclose(logistic.fit(x, member).log_odds(x), logistic.fit(still, member).log_odds(x), atol=1e-6)


def test_logistic_separable_outlying_and_constant_features(rng):
    x = np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0], [1e9, 7.0]])
    model = logistic.fit(x, np.array([False, False, True, True]))
    assert np.isfinite(model.log_odds(x)).all()
    assert model.weight[1] == 0
    with pytest.raises(ValueError, match="members and non-members"):
        logistic.fit(x, np.ones(4, dtype=bool))
    x, member = rng.normal(size=(30, 40)), np.arange(30) < 10  # more features than rows
    np.testing.assert_array_equal(logistic.fit(x, member).log_odds(x) > 0, member)


@pytest.mark.parametrize(("farthest", "error"), [(2, 2e-5), (30, 1e-3)])
def test_merged_kernels_are_near_the_full_sum_near_the_points_and_less_so_farther_away(rng, farthest, error):
    """Few points, outliers and gaps."""
    for count in (2, 3, 5, 20, 300):
        for points in (
            rng.normal(size=count),
            rng.standard_t(2, size=count),
            np.r_[0, 0.02 * rng.random(count - 1), 40],
        ):
            bandwidth = density.silverman(points[:-1]) + 0.1
            at = np.linspace(points.min() - 30 * bandwidth, points.max() + 30 * bandwidth, 500)
            at = at[np.abs(at[:, None] - points).min(axis=1) <= farthest * bandwidth]
            binned, full = (density.kernel(points, at, bandwidth=bandwidth, bins=bins) for bins in (10.0, np.inf))
            assert (np.abs(binned - full) <= error * np.maximum(1, np.abs(full))).all()


def test_kernel_density_far_away_follows_the_nearest_point():
    value = density.kernel(np.array([0.0, 1.0]), np.array([101.0, -1e4]), bandwidth=0.5)
    constant = -np.log(2) - 0.5 * np.log(2 * np.pi) - np.log(0.5)
    np.testing.assert_allclose(value, [constant - 0.5 * 200.0**2, constant - 0.5 * 2e4**2], rtol=1e-12)


def test_gaussian_density_and_its_floor():
    assert density.gaussian(np.array(1.3), 0.2, 0.7) == pytest.approx(scipy_stats.norm.logpdf(1.3, 0.2, 0.7))
    assert density.gaussian(np.array(2e-6), 0.0, 0.0) == pytest.approx(scipy_stats.norm.logpdf(2e-6, 0, 1e-6))


def test_a_reference_that_does_not_fit_is_refused(rng):
    logits, y = rng.normal(size=(2, 5, 3)).astype(np.float32), np.zeros(5, dtype=np.int64)
    member = np.zeros((2, 5), dtype=bool)
    member[:, 0] = True
    good = shadow_of(logits, y, member)
    assert len(signals.statistics(signals.phi, good, classes=3).value) == 10
    cases = {
        "3 classes, the audited models 4": (good, 4),
        "shadow.member is empty": (Shadow(logits, y, ~member & member, member), 3),
        "shadow.nonmember is empty": (Shadow(logits, y, member, ~member & member), 3),
        "labels outside": (Shadow(logits, y + 3, member, ~member), 3),
        "NaN or infinite": (Shadow(np.where(member[..., None], np.nan, logits), y, member, ~member), 3),
    }
    for message, (shadow, classes) in cases.items():
        with pytest.raises(ValueError, match=message):
            signals.statistics(signals.phi, shadow, classes=classes)


def test_nine_of_ten_samples_must_have_the_labels_of_the_reference(rng):
    """Noisy labels differ in a few samples; columns in another order differ in most."""
    logits, y = rng.normal(size=(2, 20, 3)).astype(np.float32), np.zeros(20, dtype=np.int64)
    shadow = shadow_of(logits, y, rng.random((2, 20)) < 0.5)
    audited = rng.normal(size=(1, 20, 3)).astype(np.float32)
    signals.same_samples(audited, np.r_[np.ones(2, int), y[2:]], shadow)
    with pytest.raises(ValueError, match="3 of 20 samples have other labels"):
        signals.same_samples(audited, np.r_[np.ones(3, int), y[3:]], shadow)
