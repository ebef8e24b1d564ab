"""AUC, placements, cuts and thresholds against slow loops, by hand, and coverage; what is refused."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats import separation

from stat_cases import at_least, three


def tied(seed, n=60, levels=9):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return rng.integers(0, levels, n) / 4 + positive * 0.25, positive


@pytest.mark.parametrize("seed", range(3))
def test_auc_is_the_pairwise_win_rate_and_weights_are_repetitions(seed):
    score, positive = tied(seed)
    # of each positive against each negative: 1, ½ for a tie, or 0
    wins = np.sign(score[positive][:, None] - score[~positive]) / 2 + 0.5
    assert stats.auc(score=score, positive=positive).value == pytest.approx(wins.mean(), abs=1e-14)
    weight = np.random.default_rng(seed).integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    value = stats.auc(score=score, positive=positive, weight=weight).value
    assert value == pytest.approx(stats.auc(score=score[repeated], positive=positive[repeated]).value, abs=1e-14)


def test_auc_of_infinite_scores():
    score, positive = np.array([np.inf, np.inf, 0.0, -np.inf]), np.array([True, False, True, False])
    assert stats.auc(score=score, positive=positive).value == pytest.approx(0.625, abs=1e-15)


def test_placements_by_hand():
    score, positive = np.array([3.0, 1.0, 2.0, 2.0, 0.0]), np.array([True, True, False, True, False])
    np.testing.assert_allclose(stats.placements(score=score, positive=positive), [1, 0.5, 0.5, 0.75, 1])
    placements = stats.placements(score=score, positive=positive, weight=np.array([1.0, 1.0, 3.0, 2.0, 1.0]))
    np.testing.assert_allclose(placements, [1, 0.25, 0.5, 0.25 + 0.375, 1])


def test_the_interval_of_an_auc_by_hand_counts_rows_that_weigh():
    score, positive = np.array([0.1, 0.4, 0.35, 0.8, 0.9]), np.array([False, False, True, True, True])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    estimate = stats.auc(score=score, positive=positive, weight=weight, level=0.5)
    # placements ½ and 1 of either side: centre (1.5 + 1)/4, two imaginary rows at 0 and 1 on each
    squares = np.array([0.5, 1.0, 0.0, 1.0] * 2) - 0.625
    variance, fourth = (squares**2).sum() / 16, (squares**4).sum() / 256
    half = special.stdtrit(2 * variance**2 / fourth, 0.75) * np.sqrt(variance)
    np.testing.assert_allclose(three(estimate), [0.75, 0.75 - half, 0.75 + half])
    assert estimate.n == 4


@pytest.mark.parametrize(("shift", "n"), [(0.0, 20), (3.0, 25)])
def test_auc_interval_covers(shift, n):
    rng, positive, audits = np.random.default_rng(11), np.arange(2 * n) < n, 250
    truth = special.ndtr(shift / np.sqrt(2))
    drawn = [stats.auc(score=rng.normal(size=2 * n) + shift * positive, positive=positive) for _ in range(audits)]
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in drawn]) >= at_least(0.95, audits)


TWO = np.array([True, False])


@pytest.mark.parametrize(
    ("score", "positive", "weight", "words"),
    [
        ([0.0, 1], [True, True], None, "both sides"),
        ([0.0, 1], TWO, np.array([0.0, 1.0]), "both sides"),
        ([np.nan, 1], TWO, None, "NaN"),
    ],
)
def test_two_sides_that_are_none_are_refused(score, positive, weight, words):
    for name, function in (("score", stats.auc), ("score", stats.placements), ("value", stats.best_threshold)):
        with pytest.raises(ValueError, match=words):
            function(**{name: np.array(score)}, positive=np.array(positive), weight=weight)


@pytest.mark.parametrize("fpr", [0.03, 0.05, 0.1, 0.5, 0.9])
def test_a_cut_is_the_best_that_is_allowed_and_weights_are_repetitions(fpr):
    score, positive = tied(2, n=120, levels=40)
    rates = np.array([(score[side][:, None] > [*score, -1]).mean(axis=0) for side in (~positive, positive)])
    both = {"positive": positive[None] * 1.0, "negative": ~positive[None] * 1.0}
    part, _ = separation.tpr_at_fpr(score=score[None], **both, fpr=fpr)
    assert part.value == pytest.approx(rates[1, rates[0] <= fpr].max(), abs=1e-12)
    weight = np.random.default_rng(2).integers(1, 5, len(score))
    expected = stats.cut_at_fpr(negative_score=np.repeat(score, weight), fpr=fpr)
    assert stats.cut_at_fpr(negative_score=score, weight=weight, fpr=fpr) == expected


def test_a_cut_accepts_as_many_negatives_as_it_may_and_splits_no_ties():
    cuts = [stats.cut_at_fpr(negative_score=np.arange(5.0), fpr=fpr) for fpr in (0.0, 0.19, 0.2, 0.39, 0.4, 0.99)]
    assert cuts == [4, 4, 3, 3, 2, 0]
    assert stats.cut_at_fpr(negative_score=np.zeros(20), fpr=0.5) == 0


def test_one_negative_may_be_accepted_where_the_rate_says_exactly_one():
    for negatives, fpr in ((1 / 3 * 30, 0.1), (3, 1 / 3), (100, 0.01), (1, 1.0)):
        assert stats.unresolved(negatives=negatives, fpr=fpr) == ""
    assert stats.unresolved(negatives=9.99, fpr=0.1) == "10 negatives cannot resolve a false positive rate of 0.1"


def slow_threshold(value, positive, weight):
    best, threshold = -1.0, None
    for t in value:
        accepted = value >= t
        tpr = (weight * (accepted & positive)).sum() / weight[positive].sum()
        tnr = (weight * (~accepted & ~positive)).sum() / weight[~positive].sum()
        if (tpr + tnr) / 2 > best + 1e-12:
            best, threshold = (tpr + tnr) / 2, t
    return threshold


@pytest.mark.parametrize("seed", range(12))
def test_best_threshold_is_that_of_the_slow_loop(seed):
    """Of equally good values the first."""
    value, positive = tied(seed, n=25, levels=8)
    assert stats.best_threshold(value=value, positive=positive) == slow_threshold(value, positive, np.ones(25))
    weight = np.random.default_rng(seed).integers(1, 4, 25).astype(float)
    expected = slow_threshold(value, positive, weight)
    assert stats.best_threshold(value=value, positive=positive, weight=weight) == expected


def test_many_light_positives_do_not_move_the_threshold():
    value = np.array([3.0] * 10 + [2, 1, 0])
    weight = np.array([0.1] * 10 + [1, 0.8, 1])
    assert stats.best_threshold(value=value, positive=np.isin(value, [3, 1]), weight=weight) == 3  # 5/9 against 1/2
