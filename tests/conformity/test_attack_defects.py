"""Widespread formulas that are wrong, beside ours: equal where the mistake does not matter, different where it does."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from unlearning_audit.stats.readings import MembershipTest, tprs

pytestmark = pytest.mark.slow


def nearest_tpr(score, positive, fpr):
    """RULI's rule: the TPR at the point of the ROC curve whose FPR is nearest."""
    rates = roc_curve(positive, score, drop_intermediate=False)
    return rates[1][np.argmin(np.abs(rates[0] - fpr))]


def test_tpr_is_the_largest_within_the_rate_and_empty_where_it_cannot_be_read():
    rng, positive = np.random.default_rng(41), np.arange(800) < 400
    for _ in range(5):
        score = rng.normal(size=800) + 2 * positive
        first = np.argmax(~positive[np.argsort(-score)])
        assert nearest_tpr(score, positive, 0.001) == 0.0  # 1/400 is further from .001 than 0 is
        question = MembershipTest(score[None], positive[None], ~positive[None])
        readings = tprs(question, fpr=(0.001, 0.01))
        empty, at_one = readings.values()
        assert np.isnan(empty.value)
        assert "400 negatives" in empty.note
        largest = (score[positive] > np.sort(score[~positive])[-5]).mean()
        assert at_one.value == pytest.approx(largest, abs=1e-12)
        assert largest >= first / 400
        assert nearest_tpr(score, positive, 0.01) < largest
