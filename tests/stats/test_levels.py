"""Levels of language models and their perplexity: closed forms and the coverage of the intervals."""

import math

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.metrics import perplexity
from unlearning_audit.metrics._text import nll
from unlearning_audit.stats import levels


def test_nll_and_perplexity_of_a_uniform_model():
    p = 1 / 50
    logits = np.zeros((2, 3, 2), np.float32)
    logits[..., 0] = math.log(p / (1 - p))
    np.testing.assert_allclose(nll(logits), math.log(50), rtol=1e-6)
    mean = stats.Estimate(math.log(50), math.log(40), math.log(60), 7, "")
    estimate = perplexity.exponential(mean)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [50, 40, 60])
    with pytest.raises(ValueError, match="5 classes"):
        nll(np.zeros((1, 2, 5)))


def test_intervals_of_levels_cover_when_samples_and_models_vary():
    """Samples and models each add their own; 400 studies of 6 models and 30 samples."""
    rng, inside, studies = np.random.default_rng(2), 0, 400
    for _ in range(studies):
        value = 5 + rng.normal(size=(1, 30)) + 0.3 * rng.normal(size=(6, 1)) + 0.5 * rng.normal(size=(6, 30))
        estimate = levels.level(
            value=value, rows=np.ones((6, 30), bool), split=np.zeros(6, int), block=np.zeros(6, int)
        )  # fmt: skip
        inside += estimate.low <= 5 <= estimate.high
    # Binomial with .95: four standard errors are .044.
    assert 0.95 - 0.044 <= inside / studies <= 0.95 + 0.044


@pytest.mark.slow
@pytest.mark.parametrize("models", [2, 3])
def test_two_and_three_models_that_differ_more_than_samples_explain_are_covered(models):
    """Models vary three times as much as the mean over 100 samples; 2,000 studies. Satterthwaite's degrees of freedom
    alone, which are many where so few models agree by chance, cover .89 with two models and about .92 with three."""
    rng, inside, studies = np.random.default_rng(3), 0, 2000
    places = {"rows": np.ones((models, 100), bool), "split": np.zeros(models, int), "block": np.zeros(models, int)}
    for _ in range(studies):
        value = rng.normal(size=100) + 0.3 * rng.normal(size=(models, 1)) + 0.5 * rng.normal(size=(models, 100))
        estimate = levels.level(value=value, **places)
        inside += estimate.low <= 0 <= estimate.high
    # Binomial with .95: four standard errors are .02.
    assert inside / studies >= 0.95 - 0.02


def test_an_interval_ends_where_the_mean_cannot_be():
    model_means = levels.per_model(value=np.array([[0.0, 0, 0, 1.0]]), weight=np.ones((1, 4)))
    groups = {"split": np.zeros(1, int), "block": np.zeros(1, int), "n": 4}
    free, cut = levels.of(model_means, **groups), levels.of(model_means, **groups, bounds=(0, 1))
    assert free.low < 0 < free.high < 1
    assert (cut.low, cut.value, cut.high) == (0, free.value, free.high)


def test_an_interval_over_units_knows_that_they_differ_where_models_of_each_agree():
    """Two pairs of models, 0.2 and 0.8 on all samples: Student's t with one degree of freedom is tan(0.475·π)."""
    value = np.repeat([0.2, 0.2, 0.8, 0.8], 5).reshape(4, 5)
    groups = {"split": np.zeros(4, int), "block": np.array([3, 3, 8, 8]), "n": 5}
    means = levels.per_model(value=value, weight=np.ones((4, 5)))
    alone, over_units = levels.of(means, **groups), levels.of(means, **groups, units=True)
    assert (alone.low, alone.high) == pytest.approx((0.5, 0.5))
    assert over_units.high - 0.5 == pytest.approx(0.3 * math.tan(0.475 * math.pi))


def test_a_loss_is_no_less_than_nought():
    value, one = np.array([[0.01, 0.02, 3.0, 0.01]]), np.zeros(1, int)
    places = {"rows": np.ones((1, 4), bool), "split": one, "block": one}
    assert levels.level(value=value, **places).low < 0
    loss = levels.level(value=value, **places, low=0.0)
    assert (loss.low, perplexity.exponential(loss).low) == (0, 1)
