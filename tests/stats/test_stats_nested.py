"""An analysis of variance of models within originals: mean squares by hand, limits that are exact, and coverage."""

import numpy as np
import pytest
from scipy.stats import chi2
from scipy.stats import f as fisher
from unlearning_audit.stats import nested


def test_mean_squares_are_the_textbooks():
    """Three originals with two models each: means 1, 3, 8; S_w² = (2·1 + 2·1 + 2·4)/3 = 4, S_b² = 2·13 = 26."""
    value = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])
    training, unlearning = nested.deviations(value=value, original=np.array([5, 5, 1, 1, 9, 9]))
    assert unlearning.value == pytest.approx(2.0)
    assert training.value == pytest.approx(np.sqrt((26 - 4) / 2))
    assert (training.n, unlearning.n) == (3, 6)
    assert unlearning.low == pytest.approx(np.sqrt(3 * 4 / 9.348404))
    assert training.low < training.value < training.high
    # of the last original three models: S_w² = 12/4, S_b² = 230/7, n₀ = (7 − 17/7)/2
    value, original = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 8.0, 10.0]), np.array([5, 5, 1, 1, 9, 9, 9])
    training, unlearning = nested.deviations(value=value, original=original)
    assert (training.value**2, unlearning.value**2) == pytest.approx((209 / 16, 3))


@pytest.mark.parametrize(("upper", "lower"), [(3, 8), (15, 4)])
def test_limits_are_exact_where_one_mean_square_is_0_and_where_f_cannot_tell_them_apart(upper, lower):
    """What Ting et al. (1990) chose their coefficients for."""
    f, of_upper, of_lower = (
        [law.ppf(p) for p in (0.05, 0.95)] for law in (fisher(upper, lower), chi2(upper), chi2(lower))
    )
    low, high = nested._limits(6.0, 0.0, upper, lower, 0.9)
    assert (low, high) == pytest.approx((6 * upper / of_upper[1], 6 * upper / of_upper[0]), rel=1e-6)
    low, high = nested._limits(0.0, 6.0, upper, lower, 0.9)
    assert (low, high) == pytest.approx((-6 * lower / of_lower[0], -6 * lower / of_lower[1]), rel=1e-6)
    assert nested._limits(6 * f[1], 6.0, upper, lower, 0.9)[0] == pytest.approx(0, abs=1e-6)
    assert nested._limits(6 * f[0], 6.0, upper, lower, 0.9)[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("training", "unlearning"), [(1.0, 0.3), (0.3, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("shape", [(4, 2), (8, 4)])
def test_intervals_cover(training, unlearning, shape):
    rng, hits, audits = np.random.default_rng(0), np.zeros(2), 300
    original = np.repeat(np.arange(shape[0]), shape[1])
    for _ in range(audits):
        value = training * rng.standard_normal(shape[0])[original] + unlearning * rng.standard_normal(len(original))
        estimates = nested.deviations(value=value, original=original)
        hits += [
            estimate.low <= truth <= estimate.high
            for estimate, truth in zip(estimates, (training, unlearning), strict=True)
        ]
    assert (hits / audits >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / audits)).all(), hits / audits


def test_what_a_design_does_not_show_is_said():
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.arange(4))
    assert training.note == unlearning.note == nested.SINGLE
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.zeros(4))
    assert training.note == nested.ALONE
    assert unlearning.value == pytest.approx(np.std(np.arange(4), ddof=1))
    with pytest.raises(ValueError, match="finite"):
        nested.deviations(value=np.array([np.nan, 1.0]), original=np.zeros(2))
