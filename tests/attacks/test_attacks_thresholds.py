"""Correctness, confidence, entropy and modified entropy: the attacks of Song and Mittal."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit import stats
from unlearning_audit.attacks import confidence, correctness, entropy, modified_entropy

from attack_cases import advantage, logits_of, run, same_order, shadow_of, two_gaussians


def softmax(logits):
    e = np.exp(logits.astype(np.float64))
    return e / e.sum(-1, keepdims=True)


def test_correctness_is_the_accuracy_gap(rng):
    logits = rng.normal(size=(5, 200, 4)).astype(np.float32)
    y, member = rng.integers(4, size=200), rng.random((5, 200)) < 0.3
    logits[np.arange(5)[:, None], np.arange(200), y] += 0.5 + member
    accuracy = [(logits.argmax(-1) == y)[side].mean() for side in (member, ~member)]
    assert accuracy[0] > accuracy[1] + 0.1
    for shadow in (None, shadow_of(-logits, y, ~member)):  # whatever the shadow models say
        score, decision = run(correctness, logits, y, shadow)
        assert advantage(decision, member) == accuracy[0] - accuracy[1]
        assert stats.auc(score=score.ravel(), positive=member.ravel()).value == pytest.approx(
            0.5 + (accuracy[0] - accuracy[1]) / 2
        )


def test_entropy_equals_scipy_and_ignores_the_label(rng):
    logits = 3 * rng.normal(size=(1, 50, 6)).astype(np.float32)
    want = -scipy_stats.entropy(softmax(logits[0]), axis=-1)
    for y in (np.zeros(50, int), np.full(50, 5)):
        np.testing.assert_allclose(entropy.negative_entropy(logits[0], y), want, rtol=1e-12)
    extremes = np.array([[0.0, 0, 0, 0], [1e4, 0, 0, 0]])
    assert entropy.negative_entropy(extremes, np.zeros(2, int)).tolist() == [pytest.approx(-np.log(4)), 0.0]


def test_modified_entropy_is_that_of_the_label_and_does_not_depend_on_the_batch(rng):
    logits = 4 * rng.normal(size=(500, 10)).astype(np.float32)
    y = rng.integers(10, size=500)
    together = modified_entropy.modified_entropy(logits, y)
    alone = [modified_entropy.modified_entropy(logits[[i]], y[[i]])[0] for i in range(500)]
    np.testing.assert_array_equal(together, alone)
    p = softmax(logits)
    p_label = p[np.arange(500), y]
    reverse = -p * np.log1p(-p)
    want = -(1 - p_label) * np.log(p_label) + reverse.sum(-1) - reverse[np.arange(500), y]
    np.testing.assert_allclose(together, want, rtol=1e-9, atol=1e-14)  # 1 − p rounds as it is written here


@pytest.mark.parametrize("gap", [5.0, 40.0, 300.0, 1e4])
def test_modified_entropy_is_exact_where_softmax_saturates(gap):
    right, wrong = modified_entropy.modified_entropy(np.array([[gap, 0.0]] * 2), np.array([0, 1]))
    small = np.exp(-gap)  # two classes: Mentr = 2 (1 − p_y) log(1/p_y)
    assert wrong == pytest.approx(2 * (gap + np.log1p(small)) / (1 + small), rel=1e-13)
    assert right == pytest.approx(2 * small * np.log1p(small) / (1 + small), rel=1e-13)


def test_confidence_decides_as_thresholds_on_the_probability_do(rng):
    pool, y, member = two_gaussians(rng, 6, 120, d=1.5)
    pool[:, y == 1, 1] += 3  # class 1 is easier: thresholds must differ
    audited = logits_of(rng.normal(size=(4, 120)), y)
    p, q = (np.take_along_axis(softmax(z), np.tile(y, (len(z), 1))[..., None], -1)[..., 0] for z in (pool, audited))
    want = np.zeros(q.shape, dtype=bool)
    for c in range(3):
        value, side = p[:, y == c].ravel(), member[:, y == c].ravel()
        gains = [(value[side] >= t).mean() - (value[~side] >= t).mean() for t in value]
        best = np.flatnonzero(np.isclose(gains, max(gains)))
        assert len(best) == 1
        want[:, y == c] = q[:, y == c] >= value[best[0]]
    score, decision = run(confidence, audited, y, shadow_of(pool, y, member))
    np.testing.assert_array_equal(decision, want)
    assert same_order(score, q)
    assert not same_order(-score, q)
