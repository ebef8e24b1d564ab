"""An analysis of variance of models within originals: mean squares by hand, limits that are exact, and coverage."""

import numpy as np
import pytest
from scipy.stats import chi2
from scipy.stats import f as fisher
from unlearning_audit.stats import nested

from stat_cases import at_least


def test_mean_squares_are_the_textbooks():
    """Three originals with two models each: means 1, 3, 8; S_w² = (2·1 + 2·1 + 2·4)/3 = 4, S_b² = 2·13 = 26."""
    value = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 10.0])
    training, unlearning = nested.deviations(value=value, original=np.array([5, 5, 1, 1, 9, 9]))
    assert (training.value, unlearning.value) == pytest.approx((np.sqrt((26 - 4) / 2), 2.0))
    assert (training.n, unlearning.n) == (3, 6)
    assert (unlearning.low, unlearning.high) == pytest.approx(np.sqrt(12 / chi2.ppf([0.975, 0.025], 3)))
    assert (training.low, training.high) == pytest.approx(np.sqrt(np.maximum(nested._limits(26.0, 4.0, 2, 3), 0) / 2))
    # of the last original three models: S_w² = 12/4, S_b² = 230/7, n₀ = (7 − 17/7)/2
    value, original = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 8.0, 10.0]), np.array([5, 5, 1, 1, 9, 9, 9])
    training, unlearning = nested.deviations(value=value, original=original)
    assert (training.value**2, unlearning.value**2) == pytest.approx((209 / 16, 3))


@pytest.mark.parametrize(("upper", "lower"), [(3, 8), (15, 4)])
def test_limits_are_exact_where_one_mean_square_is_0_and_where_f_cannot_tell_them_apart(upper, lower):
    """What Ting et al. (1990) chose their coefficients for."""
    f, of_upper, of_lower = (law.ppf([0.025, 0.975]) for law in (fisher(upper, lower), chi2(upper), chi2(lower)))
    assert nested._limits(6.0, 0.0, upper, lower) == pytest.approx(6 * upper / of_upper[::-1], rel=1e-6)
    assert nested._limits(0.0, 6.0, upper, lower) == pytest.approx(-6 * lower / of_lower, rel=1e-6)
    assert nested._limits(6 * f[1], 6.0, upper, lower)[0] == pytest.approx(0, abs=1e-6)
    assert nested._limits(6 * f[0], 6.0, upper, lower)[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("training", "unlearning"), [(1.0, 0.3), (0.3, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("shape", [(4, 2), (8, 4)])
def test_intervals_cover(training, unlearning, shape):
    rng, audits = np.random.default_rng(0), 300
    original = np.repeat(np.arange(shape[0]), shape[1])
    hits = np.zeros((audits, 2))
    for audit in range(audits):
        value = training * rng.standard_normal(shape[0])[original] + unlearning * rng.standard_normal(len(original))
        first, second = nested.deviations(value=value, original=original)
        hits[audit] = first.low <= training <= first.high, second.low <= unlearning <= second.high
    assert (hits.mean(axis=0) >= at_least(0.95, audits)).all()


def test_what_a_design_does_not_show_is_said():
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.arange(4))
    assert training.note == unlearning.note == nested.SINGLE
    training, unlearning = nested.deviations(value=np.arange(4.0), original=np.zeros(4))
    assert (training.note, unlearning.value) == (nested.ALONE, pytest.approx(np.std(np.arange(4), ddof=1)))
    with pytest.raises(ValueError, match="finite"):
        nested.deviations(value=np.array([np.nan, 1.0]), original=np.zeros(2))
