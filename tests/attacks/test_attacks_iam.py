"""IAM: what is kept of a sample in closed form, and models that keep a known share of what they learned."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit import stats
from unlearning_audit.attacks import iam
from unlearning_audit.evaluation.reference import Reference

from attack_cases import advantage, logits_of

MODELS, SAMPLES = 6, 600


def logp(phi):
    """log p of a label with this φ."""
    return -np.logaddexp(0.0, -phi)


def test_without_a_gap_it_is_the_place_among_models_that_never_saw_a_sample():
    rng = np.random.default_rng(0)
    unseen, after = rng.standard_normal((2, 1, 50))
    actual = iam.share_kept(after, unseen, logp(unseen), 100)
    np.testing.assert_allclose(actual, scipy_stats.norm.cdf((after - unseen) / unseen.std()), atol=1e-9)


@pytest.mark.parametrize("steps", [2, 10, 100])
@pytest.mark.parametrize("share", [-1.0, 0.0, 0.5, 1.0])
def test_a_share_of_one_gap_has_the_value_of_the_definition(share, steps):
    """All samples have the gap 3: σ is that of samples, and the value the weighted mean of Φ((share − α)·3/σ)."""
    unseen = np.random.default_rng(1).standard_normal((1, 80))
    actual = iam.share_kept(unseen + 3 * share, unseen + 3.0, logp(unseen), steps)
    places = np.arange(steps - 1) / (steps - 1)
    weight = np.arange(1, steps) / np.arange(1, steps).sum()
    expected = weight @ scipy_stats.norm.cdf((share - places) * 3 / unseen.std())
    np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_more_confidence_is_more_kept():
    unseen = np.random.default_rng(2).standard_normal((1, 40))
    values = [iam.share_kept(unseen + shift, unseen + 2.0, logp(unseen), 20) for shift in (-50.0, -1.0, 0.0, 1.0, 50.0)]
    assert (np.diff(np.concatenate(values), axis=0) > 0).all()
    np.testing.assert_allclose(values[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(values[-1], 1.0, atol=1e-9)


def game(rng, share):
    """Models that forget half of the samples, of which they keep a ``share`` of what they learned (3), and what the
    adversary reads of them."""
    y, hard = rng.integers(3, size=SAMPLES), rng.standard_normal(SAMPLES)
    member = rng.random((MODELS, SAMPLES)) < 0.5
    before = hard + 3.0 * member + 0.5 * rng.standard_normal(member.shape)
    after = hard + 3.0 * share * member + 0.5 * rng.standard_normal(member.shape)
    return logits_of(after, y), y, member, before, np.broadcast_to(logp(hard), member.shape)


def audited(share, seed=3):
    """Score, decision and truth of three models, the others being the adversary's."""
    logits, y, member, before, unseen = game(np.random.default_rng(seed), share)
    half = MODELS // 2
    audited, known = (
        {"before": before[rows], "reference_logp": unseen[rows]} for rows in (slice(half), slice(half, None))
    )
    reference = Reference(logits[half:], y, member[half:], ~member[half:], signals=known)
    score, decision = iam.score(logits[:half], y, reference, iam.Options(), np.random.default_rng(0), **audited)
    return score, decision, member[:half]


def test_models_that_lost_what_they_learned_are_told_and_less_so_what_they_kept():
    """What was learned is the gap, 3, which retraining loses: samples that were never learned have none to lose."""
    areas = []
    for share in (-1.0, 0.0, 0.5, 1.0):
        score, decision, member = audited(share)
        areas.append(stats.auc(score=score.ravel(), positive=member.ravel()).value)
        assert ((score >= 0) & (score <= 1)).all()
        assert share != 0 or advantage(decision, member) > 0.8
    assert (np.diff(areas) < 0).all()
    assert areas[-1] < 0.5
    assert areas[1] > 0.95


def test_a_sample_that_every_shadow_model_saw_is_refused():
    logits, y, member, before, unseen = game(np.random.default_rng(4), 0.5)
    unseen = unseen.copy()
    unseen[:, 7] = np.nan
    reference = Reference(logits, y, member, ~member, signals={"before": before, "reference_logp": unseen})
    with pytest.raises(ValueError, match="1 samples were seen by every shadow model"):
        iam.score(logits, y, reference, iam.Options(), None, before=before, reference_logp=unseen)
