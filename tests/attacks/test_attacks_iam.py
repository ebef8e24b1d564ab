"""IAM: what is kept of a sample in closed form, and models that keep a known share of what they learned."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from unlearning_audit import stats
from unlearning_audit.attacks import iam
from unlearning_audit.evaluation.shadow import Shadow

from attack_cases import logits_of


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


def test_a_model_that_kept_less_scores_higher_and_a_sample_that_every_shadow_model_saw_is_refused():
    rng = np.random.default_rng(3)
    y, member = np.zeros(50, int), rng.random((2, 50)) < 0.5
    after, before, unseen = rng.standard_normal((3, 2, 50))
    signals = {"before": before, "reference_logp": logp(unseen)}
    shadow = Shadow(logits_of(after, y), y, member, ~member, signals=signals)
    score, decision = iam.score(shadow.logits, y, shadow, **signals)
    np.testing.assert_allclose(score, 1 - iam.share_kept(after, before, logp(unseen)), atol=1e-6)
    best = stats.best_threshold(value=score.ravel(), positive=member.ravel())
    np.testing.assert_array_equal(decision, score >= best)
    signals["reference_logp"][:, 7] = np.nan
    with pytest.raises(ValueError, match="1 samples were seen by every shadow model"):
        iam.score(shadow.logits, y, shadow, **signals)
