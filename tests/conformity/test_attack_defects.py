"""Widespread formulas that are wrong, beside ours: equal where the mistake does not matter, different where it does."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from unlearning_audit.attacks import kde
from unlearning_audit.evaluation.reference import Reference
from unlearning_audit.stats.readings import Question, tprs

pytestmark = pytest.mark.slow


@pytest.fixture
def rng():
    return np.random.default_rng(41)


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def nearest_tpr(score, positive, fpr):
    """RULI's rule: the TPR at the point of the ROC curve whose FPR is nearest."""
    rates = roc_curve(positive, score, drop_intermediate=False)
    return rates[1][np.argmin(np.abs(rates[0] - fpr))]


def test_tpr_is_the_largest_within_the_rate_and_empty_where_it_cannot_be_read(rng):
    positive = np.arange(800) < 400
    for _ in range(5):
        score = rng.normal(size=800) + 2 * positive
        first = np.argmax(~positive[np.argsort(-score)])
        assert nearest_tpr(score, positive, 0.001) == 0.0  # 1/400 is further from .001 than 0 is
        question = Question(score[None], positive[None], ~positive[None])
        readings = tprs(question, fpr=(0.001, 0.01))
        empty, at_one = readings.values()
        assert np.isnan(empty.value)
        assert "400 negatives" in empty.note
        largest = (score[positive] > np.sort(score[~positive])[-5]).mean()
        assert at_one.value == pytest.approx(largest, abs=1e-12)
        assert largest >= first / 400
        assert nearest_tpr(score, positive, 0.01) < largest


def published_phi(logits, y):
    """RULI's score: softmax in float32, both parts cut at 1e-6."""
    p = softmax(logits.astype(np.float32))
    p_label = np.take_along_axis(p, y[..., None], -1)[..., 0]
    rest = p.sum(-1) - p_label
    return np.log(np.clip(p_label, 1e-6, 1 - 1e-6)) - np.log(np.clip(rest, 1e-6, None))


def test_kde_of_ruli_and_the_ratio_that_underflows(rng):
    """With bandwidth 1 and clip 1e-6 we reproduce the published score; without the clip only log space survives."""
    samples = 200
    y = rng.integers(3, size=samples)
    member = rng.random((4, samples)) < 0.5
    logits = 4 * rng.normal(size=(4, samples, 3)).astype(np.float32)
    np.put_along_axis(logits, np.broadcast_to(y, (4, samples))[..., None], 6.0, axis=-1)
    phi = published_phi(logits, np.broadcast_to(y, (4, samples)))
    reference = Reference(logits, y, member, ~member)

    def ratio(at, points):
        return np.exp(-0.5 * (at[:, None] - points) ** 2).mean(-1) / np.sqrt(2 * np.pi)

    p, q = (ratio(phi[0].astype(np.float64), phi[side].astype(np.float64)) for side in (member, ~member))
    computed, decision = kde.score(logits[:1], y, reference, kde.Options(bandwidth=1.0, clip=1e-6), rng)
    np.testing.assert_allclose(1 / (1 + np.exp(-computed[0])), p / (p + q), atol=2e-3)
    far = np.full((1, samples, 3), 0, dtype=np.float32)
    np.put_along_axis(far, y[None, :, None], 80.0, axis=-1)
    with np.errstate(invalid="ignore"):
        p, q = (ratio(np.full(1, 80.0), phi[side].astype(np.float64)) for side in (member, ~member))
        assert np.isnan(p / (p + q)).all()
    assert np.isfinite(kde.score(far, y, reference, kde.Options(bandwidth=1.0), rng)[0]).all()
    assert decision.shape == (1, samples)
