"""Shared statistics against closed forms, slow loops and independent libraries."""

import numpy as np
import pytest
import scipy.stats
from unlearning_audit import stats
from unlearning_audit.stats import separation
from unlearning_audit.stats.logits import lead


def test_phi_is_the_log_odds_of_softmax():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(0, 3, (4, 7, 5)), rng.integers(0, 5, 7)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    p_label = np.take_along_axis(p, np.broadcast_to(y, (4, 7))[..., None], -1)[..., 0]
    value = stats.phi(logits=logits, y=y)
    assert value.shape == (4, 7)
    np.testing.assert_allclose(value, np.log(p_label / (1 - p_label)), rtol=1e-10)


def test_phi_of_labels_per_model_and_of_one_row():
    logits = np.array([[[1.0, 2.0], [3.0, 0.5]], [[0.0, 4.0], [1.0, 1.0]]])
    y = np.array([[0, 1], [1, 0]])
    np.testing.assert_array_equal(stats.phi(logits=logits, y=y), [[-1.0, -2.5], [4.0, 0.0]])
    assert stats.phi(logits=logits[0, 0], y=1) == 1.0


def test_the_lead_is_that_over_the_next_class():
    logits = np.array([[2.0, 0.5, 1.0], [2.0, 0.5, 1.0], [-3.0, -1.0, -1.5]])
    np.testing.assert_array_equal(lead(logits=logits, y=np.array([0, 1, 2])), [1, -1.5, -0.5])


def test_phi_is_exact_where_softmax_saturates():
    logits = np.array(
        [[1000, 0, 0], [-800, 900, -900], [60, 20, 20], [-900, -800, -800], [0, -np.inf, -np.inf]], dtype=np.float32
    )
    expected = [1000 - np.log(2), -1700.0, 40 - np.log(2), -100 - np.log(2), np.inf]
    value = stats.phi(logits=logits, y=np.array([0, 0, 0, 0, 0]))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=1e-15)


def test_phi_does_not_change_its_input_and_shifts_away():
    logits = np.random.default_rng(1).normal(size=(3, 4))
    before = logits.copy()
    value = stats.phi(logits=logits, y=np.array([0, 3, 1]))
    np.testing.assert_array_equal(logits, before)
    np.testing.assert_allclose(stats.phi(logits=logits + 7, y=np.array([0, 3, 1])), value, rtol=1e-13)


def tied(seed, n=60, levels=9):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return rng.integers(0, levels, n) / 4 + positive * 0.25, positive


def test_auc_of_infinite_scores():
    score, positive = np.array([np.inf, np.inf, 0.0, -np.inf]), np.array([True, False, True, False])
    assert stats.auc(score=score, positive=positive).value == pytest.approx(0.625, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_the_pairwise_win_rate_and_the_area(seed):
    from sklearn.metrics import roc_curve

    score, positive = tied(seed)
    wins = np.sign(score[positive][:, None] - score[~positive]) / 2 + 0.5
    estimate = stats.auc(score=score, positive=positive)
    assert estimate.value == pytest.approx(wins.mean(), abs=1e-14)
    fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    assert estimate.value == pytest.approx(np.trapezoid(tpr, fpr), abs=1e-14)
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.n == len(score)


def test_weighted_auc_is_that_of_repeated_rows():
    from sklearn.metrics import roc_auc_score

    score, positive = tied(7, n=30)
    weight = np.random.default_rng(0).integers(0, 4, 30).astype(float)
    repeated = np.repeat(np.arange(30), weight.astype(int))
    value = stats.auc(score=score, positive=positive, weight=weight).value
    assert value == pytest.approx(stats.auc(score=score[repeated], positive=positive[repeated]).value, abs=1e-14)
    assert value == pytest.approx(roc_auc_score(positive, score, sample_weight=weight), abs=1e-12)


def delong(score, positive):
    win = np.sign(score[positive][:, None] - score[~positive]) / 2 + 0.5
    return win.mean(1).var(ddof=1) / positive.sum() + win.mean(0).var(ddof=1) / (~positive).sum()


def test_auc_interval_tends_to_delongs():
    rng = np.random.default_rng(4)
    positive = np.arange(4000) < 1500
    score = rng.normal(size=4000) + positive
    estimate = stats.auc(score=score, positive=positive)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.96 * np.sqrt(delong(score, positive)), rel=0.02)


@pytest.mark.parametrize(("shift", "n"), [(0.0, 20), (1.5, 25), (3.0, 25)])
def test_auc_interval_covers(shift, n):
    rng = np.random.default_rng(11)
    positive = np.arange(2 * n) < n
    truth = scipy.stats.norm.cdf(shift / np.sqrt(2))
    inside = 0
    for _ in range(400):
        estimate = stats.auc(score=rng.normal(size=2 * n) + shift * positive, positive=positive)
        inside += estimate.low <= truth <= estimate.high
    assert inside / 400 >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("n", [20, 50, 500])
def test_auc_interval_at_the_ends_has_an_honest_width(n):
    positive = np.arange(2 * n) < n
    best = stats.auc(score=positive.astype(float), positive=positive)
    worst = stats.auc(score=-positive.astype(float), positive=positive)
    assert (best.value, best.high, worst.value, worst.low) == (1, 1, 0, 0)
    assert best.low == pytest.approx(1 - worst.high, abs=1e-12)
    # zero mistakes among n leave 3.7/n open on one side (Clopper–Pearson)
    assert 3 / n < 1 - best.low < 8 / n


@pytest.mark.parametrize("positive", [np.zeros(3, bool), np.ones(3, bool)])
def test_one_sided_data_are_refused(positive):
    for function in (stats.auc, stats.placements):
        with pytest.raises(ValueError, match="both sides"):
            function(score=np.arange(3.0), positive=positive)
    with pytest.raises(ValueError, match="both sides"):
        stats.best_threshold(value=np.arange(3.0), positive=positive)


def test_nan_scores_and_wrong_shapes_are_refused():
    positive = np.array([True, False])
    with pytest.raises(ValueError, match="NaN"):
        stats.auc(score=np.array([np.nan, 1]), positive=positive)
    with pytest.raises(ValueError, match="one length"):
        stats.auc(score=np.arange(3.0), positive=positive)
    with pytest.raises(ValueError, match="one length"):
        stats.auc(score=np.arange(2.0), positive=np.array([1, 0]))


def tpr_at_fpr(score, positive, fpr):
    sides = {"positive": positive[None].astype(float), "negative": (~positive)[None].astype(float)}
    return separation.tpr_at_fpr(score=score[None], **sides, fpr=fpr)[0].value[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fpr", [0.03, 0.05, 0.1, 0.5, 0.9])
def test_tpr_at_fpr_is_the_best_allowed_point_of_the_roc(seed, fpr):
    from sklearn.metrics import roc_curve

    score, positive = tied(seed, n=120, levels=40)
    at, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    assert tpr_at_fpr(score, positive, fpr) == pytest.approx(tpr[at <= fpr].max(), abs=1e-12)


def test_tpr_at_fpr_resolves_exactly_down_to_one_negative():
    score = np.concatenate([np.arange(100.0), np.arange(100.0) + 0.5])
    positive = np.arange(200) >= 100
    # one false alarm (99) allowed; 98.5 and 99.5 lie above 98
    assert tpr_at_fpr(score, positive, 0.01) == pytest.approx(0.02, abs=1e-12)
    assert stats.unresolved(negatives=100, fpr=0.01) == ""
    reason = "100 negatives cannot resolve a false positive rate of 0.0099"
    assert stats.unresolved(negatives=100, fpr=0.0099) == reason


def test_tpr_at_fpr_does_not_split_ties():
    assert tpr_at_fpr(np.zeros(40), np.arange(40) < 20, 0.5) == 0


def test_weighted_cut_is_that_of_repeated_negatives():
    rng = np.random.default_rng(2)
    score, weight = rng.normal(size=50), rng.integers(1, 5, 50)
    for fpr in (0.0, 0.05, 0.2, 0.7):
        expected = stats.cut_at_fpr(negative_score=np.repeat(score, weight), fpr=fpr)
        assert stats.cut_at_fpr(negative_score=score, weight=weight.astype(float), fpr=fpr) == expected


def slow_threshold(value, positive, weight):
    best, threshold = -1.0, None
    for t in value:
        accepted = value >= t
        tpr = (weight * (accepted & positive)).sum() / weight[positive].sum()
        tnr = (weight * (~accepted & ~positive)).sum() / weight[~positive].sum()
        if (tpr + tnr) / 2 > best + 1e-12:
            best, threshold = (tpr + tnr) / 2, t
    return threshold


@pytest.mark.parametrize("seed", range(30))
def test_best_threshold_is_that_of_the_slow_loop(seed):
    value, positive = tied(seed, n=25, levels=8)
    assert stats.best_threshold(value=value, positive=positive) == slow_threshold(value, positive, np.ones(25))
    weight = np.random.default_rng(seed).integers(1, 4, 25).astype(float)
    expected = slow_threshold(value, positive, weight)
    assert stats.best_threshold(value=value, positive=positive, weight=weight) == expected


def test_best_threshold_keeps_the_first_of_equal_values():
    positive = np.array([True, True, False, False])
    low_first, high_first = np.array([1.0, 3.0, 2.0, 0.0]), np.array([3.0, 1.0, 2.0, 0.0])
    assert stats.best_threshold(value=low_first, positive=positive) == 1.0
    assert stats.best_threshold(value=high_first, positive=positive) == 3.0


def test_best_threshold_of_inverted_values_accepts_all():
    assert stats.best_threshold(value=np.array([1.0, 2.0]), positive=np.array([True, False])) == 1.0


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (1, 1000), (500, 1000)])
def test_clopper_pearson_is_exact(successes, n):
    interval = stats.clopper_pearson(successes=successes, n=n)
    reference = scipy.stats.binomtest(successes, n).proportion_ci(method="exact")
    np.testing.assert_allclose([interval.low, interval.high], [reference.low, reference.high], rtol=1e-6, atol=1e-12)
    # its defining property: each limit leaves exactly 2.5 % beyond the observed count
    if successes:
        assert scipy.stats.binom.sf(successes - 1, n, interval.low) == pytest.approx(0.025, rel=1e-9)
    if successes < n:
        assert scipy.stats.binom.cdf(successes, n, interval.high) == pytest.approx(0.025, rel=1e-9)


def test_clopper_pearson_refuses_impossible_counts():
    for successes, n in ((-1, 3), (4, 3), (0, 0)):
        with pytest.raises(ValueError, match="successes"):
            stats.clopper_pearson(successes=successes, n=n)


def test_quantiles():
    assert stats.normal_quantile(0.975) == pytest.approx(1.959963984540054, rel=1e-12)
    assert stats.normal_probability(stats.normal_quantile(0.31)) == pytest.approx(0.31, rel=1e-12)
    assert stats.t_quantile(p=0.975, dof=4) == pytest.approx(2.7764451051977987, rel=1e-9)
    assert stats.t_quantile(p=0.975, dof=np.inf) == pytest.approx(1.959963984540054, rel=1e-9)


def test_mean_and_sd_intervals_are_the_textbook_ones():
    values = np.random.default_rng(5).normal(3, 2, 9)
    mean, sd = stats.mean_interval(values=values), stats.sd_interval(values=values)
    expected = scipy.stats.t.interval(0.95, 8, values.mean(), scipy.stats.sem(values))
    np.testing.assert_allclose([mean.low, mean.high], expected, rtol=1e-9)
    limits = np.sqrt(8 * values.var(ddof=1) / scipy.stats.chi2.ppf([0.975, 0.025], 8))
    np.testing.assert_allclose([sd.low, sd.high], limits, rtol=1e-9)
    assert sd.value == pytest.approx(values.std(ddof=1))
    assert (mean.n, sd.n) == (9, 9)


def test_mean_influence_is_the_variance_of_agresti_and_caffo():
    value = np.array([1.0, 1, 0, 1, 1, 1, 0])
    mean, influence, imagined = stats.mean_influence(value=value, weight=np.ones(7))
    centre = 6 / 9
    assert mean == pytest.approx(5 / 7)
    assert influence.sum() + imagined.sum() == pytest.approx(0, abs=1e-15)
    assert (influence**2).sum() + (imagined**2).sum() == pytest.approx(centre * (1 - centre) / 9, rel=1e-12)


def test_mean_influence_of_weights_is_scale_free_and_first_order_right():
    rng = np.random.default_rng(6)
    value, weight = rng.random(200), rng.random(200)
    mean, influence, _ = stats.mean_influence(value=value, weight=weight)
    scaled = stats.mean_influence(value=value, weight=5 * weight)
    np.testing.assert_allclose(scaled[1], influence, rtol=1e-12)
    assert mean == pytest.approx(np.average(value, weights=weight), rel=1e-12)
    step = np.zeros(200)
    step[3] = 1e-6
    moved = np.average(value, weights=weight * (1 + step)) - mean
    assert moved / 1e-6 == pytest.approx(influence[3], rel=0.03)
