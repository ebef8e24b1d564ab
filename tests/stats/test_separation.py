"""What is read at small false positive rates: the slope of the ROC curve, optimism, one threshold for all targets."""

import numpy as np
import pytest
import scipy.stats
from unlearning_audit.plugins import registry
from unlearning_audit.stats import separation
from unlearning_audit.stats.readings import Question, tpr_at, tprs


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
    estimate = tprs(Question(score, positive, ~positive), fpr=(0.01,))[0.01]
    assert estimate.value == 0.5
    assert "one threshold for 4 targets" in estimate.note
    half = scipy.stats.t.ppf(0.975, 3) * shares.std(ddof=1) / np.sqrt(4)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.02)


def test_a_note_says_how_much_too_high_a_rate_reads():
    """60 negatives, 10 %: among new negatives 7 of 61 lie above the threshold; the mean over many draws shows it."""
    rng, high, optimism = np.random.default_rng(1), [], []
    for _ in range(300):
        score = np.concatenate([rng.normal(1, 1, 400), rng.normal(0, 1, 60)])[None]
        positive = (np.arange(460) < 400)[None] * 1.0
        result = tpr_at(score, positive, 1 - positive, fpr=0.1)
        high.append(result.part.value[0] - scipy.stats.norm.sf(scipy.stats.norm.isf(0.1) - 1))
        optimism.append(result.optimism)
    assert np.mean(optimism) > 0.015
    assert np.mean(high) == pytest.approx(np.mean(optimism), abs=4 * np.std(high) / np.sqrt(300))
    assert result.note == f"reads about {result.optimism:.3f} high, because 60 negatives set the threshold"


def test_one_threshold_has_the_pooled_rate():
    rng = np.random.default_rng(2)
    score, positive = rng.normal(size=(3, 70)), np.tile(np.arange(70) < 20, (3, 1)) * 1.0
    score += positive
    result = tpr_at(score, positive, 1 - positive, fpr=0.01)
    cut = np.sort(score[positive == 0])[::-1][1]  # 150 negatives: one may be accepted
    assert result.part.value.mean() == pytest.approx((score > cut)[positive > 0].mean())
    assert tpr_at(score, positive, 1 - positive, fpr=0.001) == (
        "150 negatives cannot resolve a false positive rate of 0.001"
    )


@pytest.mark.parametrize("fpr", [0.9, 0.99, 1 - 1e-7])
def test_a_rate_near_one_is_read(fpr):
    """Its spread reaches beyond all negatives."""
    score = np.random.default_rng(0).normal(size=(1, 40))
    negative = (np.arange(40) < 20)[None] * 1.0
    part, optimism = separation.tpr_at_fpr(score=score, positive=1 - negative, negative=negative, fpr=fpr)
    cut = np.sort(score[0, :20])[max(20 - int(20 * fpr) - 1, 0)]
    assert part.value == (score[0, 20:] > cut).mean()
    assert np.isfinite(optimism).all()


@pytest.mark.parametrize("name", ["phi", "published", "ruli", "ruli_on_pairs", "swap"])
@pytest.mark.parametrize("fpr", [0, 1, -0.1, 1.5])
def test_what_is_no_rate_of_false_alarms_is_refused(name, fpr):
    with pytest.raises(ValueError, match="fpr"):
        registry.load("metrics", name).Options(fpr=[fpr])
