"""What is read at small false positive rates: the slope of the ROC curve, optimism, one threshold for all targets."""

import numpy as np
import pytest
import scipy.stats

from unlearning.stats import separation
from unlearning.stats.readings import Question, tprs


@pytest.mark.parametrize(("n", "fpr", "j"), [(100, 0.1, 11), (100, 0.105, 11), (400, 0.05, 21)])
def test_optimism_is_the_share_above_the_next_negative_times_the_slope(n, fpr, j):
    """Both sides uniform: the ROC curve has the slope 1, and of new negatives j/(n + 1) lie above the j-th largest."""
    score = np.concatenate([np.arange(n) + 0.5, np.linspace(0, n, 20_001)])[None]
    negative = (np.arange(score.size) < n)[None].astype(float)
    part, optimism = separation.tpr_at_fpr(score=score, positive=1 - negative, negative=negative, fpr=fpr)
    spread = np.sqrt(fpr * (1 - fpr) / n)
    # cuts lie at whole numbers of negatives: the slope is measured between those of both ends of the spread
    steps = np.floor(n * (fpr + spread)) - np.floor(n * (fpr - spread))
    assert optimism == pytest.approx(steps / n / (2 * spread) * (j / (n + 1) - fpr), rel=1e-3)
    assert part.value == pytest.approx((j - 0.5) / n, abs=1e-3)


def test_one_threshold_for_all_targets_has_the_error_of_a_mean_over_few_targets():
    """Positives far above or far below all negatives: the threshold is beyond doubt, which targets leak is not."""
    rng = np.random.default_rng(0)
    shares = np.array([0.4, 0.6, 0.4, 0.6])
    n = 2000
    leaks = np.arange(n) < shares[:, None] * n
    score = np.concatenate([np.where(leaks, 100.0, -100.0), rng.normal(size=(4, 50))], axis=1)
    positive = np.tile(np.arange(n + 50) < n, (4, 1))
    found = tprs(Question(score, positive, ~positive), fpr=(0.01,))[0.01]
    assert found.value == 0.5
    assert "one threshold for 4 targets" in found.note
    half = scipy.stats.t.ppf(0.975, 3) * shares.std(ddof=1) / np.sqrt(4)
    assert found.high - found.value == pytest.approx(half, rel=0.02)
