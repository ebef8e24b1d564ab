"""Readings of a test on many targets by hand: AUC, accuracy, and TPR at rates that one target can resolve or not."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.stats import crossed, readings, separation
from unlearning_audit.stats.readings import Question


def sides(*rows):
    """Weights of both sides from rows of +, − and a dot."""
    signs = np.array([list(row) for row in rows])
    return (signs == "+") * 1.0, (signs == "-") * 1.0


def test_the_auc_of_each_model_by_hand():
    positive, negative = sides("+-+-.", ".+-+-")
    score = np.array([[3.0, 2.0, 1.0, 1.0, np.nan], [np.nan, 0.0, 0.0, 5.0, 1.0]])  # on no side: never read
    actual = separation.auc(score=score, positive=positive, negative=negative)
    np.testing.assert_allclose(actual.value, [(1 + 0.25) / 2, (0.25 + 1) / 2])
    # placements 1 and ¼ of positives, ½ and ¾ of negatives, each side with two imaginary ones
    placed = np.array([1.0, 0.5, 0.25, 0.75, np.nan])
    for side, samples in ((0, [0, 2]), (1, [1, 3])):
        weight = (positive, negative)[side][:1]
        _, influence, imagined = stats.mean_influence(value=np.nan_to_num(placed)[None], weight=weight)
        np.testing.assert_allclose(actual.influence[0, samples], influence[0, samples])
        np.testing.assert_allclose(actual.imagined[0, 2 * side : 2 * side + 2], imagined[0])
    assert actual.influence[0, 4] == actual.influence[1, 0] == 0


def test_the_auc_of_weighted_sides():
    actual = separation.auc(
        score=np.array([[2.0, 1.0, 3.0]]), positive=np.array([[0, 3.0, 1.0]]), negative=np.array([[2.0, 0, 0]])
    )
    np.testing.assert_allclose(actual.value, [0.25])


def test_samples_in_effect_by_hand():
    np.testing.assert_allclose(separation.effective_count(np.array([[1.0, 1, 1, 0], [3, 1, 0, 0]])), [3, 1.6])


@pytest.mark.parametrize(("fpr", "value", "j"), [(0.25, 0.5, 2), (0.5, 0.75, 3)])
def test_the_slope_and_the_optimism_of_a_tpr_by_hand(fpr, value, j):
    """Negatives 0 to 3 and a sample that is on no side; positives between them."""
    score = np.array([[0.0, 1.0, 2.0, 3.0, np.nan, 3.5, 2.5, 1.5, 0.5]])
    positive, negative = sides("----.++++")
    part, optimism = separation.tpr_at_fpr(score=score, positive=positive, negative=negative, fpr=fpr)
    np.testing.assert_allclose(part.value, [value])
    spread = np.sqrt(fpr * (1 - fpr) / 4)
    at = [0.25 + np.floor(4 * (fpr + way * spread)) / 4 for way in (-1, 1)]  # the TPR of a cut between negatives
    slope = (at[1] - at[0]) / (2 * spread)
    np.testing.assert_allclose(optimism, [slope * (j / 5 - fpr)])
    hits, alarms = (crossed.per_model(value=(score > 3 - 4 * fpr) * 1.0, weight=side) for side in (positive, negative))
    np.testing.assert_allclose(part.influence, hits.influence - slope * alarms.influence)
    np.testing.assert_allclose(part.imagined, np.concatenate([hits.imagined, -slope * alarms.imagined], axis=1))


def test_a_positive_that_ties_with_a_cut_is_not_accepted():
    """From the cut 3 to the cut 2: none and three of four positives."""
    positive, negative = sides("----++++")
    score = np.array([[0.0, 1.0, 2.0, 3.0, 3.0, 3.0, 2.5, 2.0]])
    part, optimism = separation.tpr_at_fpr(score=score, positive=positive, negative=negative, fpr=0.25)
    assert part.value == [0.75]
    np.testing.assert_allclose(optimism, [0.75 / (2 * np.sqrt(0.1875 / 4)) * (2 / 5 - 0.25)])


def test_the_spread_of_a_rate_ends_at_0():
    """Of two negatives none may be accepted at 30 %; the slope is measured from 0, where half of the positives are."""
    positive, negative = sides("--++")
    score = np.array([[0.0, 1.0, 2.0, 0.5]])
    part, optimism = separation.tpr_at_fpr(score=score, positive=positive, negative=negative, fpr=0.3)
    assert part.value == [0.5]
    np.testing.assert_allclose(optimism, [0.5 / (0.3 + np.sqrt(0.21 / 2)) * (1 / 3 - 0.3)])


def question(score, *rows, missing=""):
    positive, negative = sides(*rows)
    return Question(np.array(score, dtype=float), positive > 0, negative > 0, missing)


def test_readings_of_two_targets_by_hand():
    """A log-odds of 0 says negative; a target without one side is left out, with what its samples scored."""
    targets = question([[1, 0, -1, 2, np.nan], [3, 1, np.nan, -2, -1], [9, 9, np.nan, np.nan, np.nan]],
                       "++--.", "+-.-+", "++...")  # fmt: skip
    estimates = readings.readings(targets, fpr=(0.5,))
    assert list(estimates) == ["accuracy", "auc", "tpr_at_50pct_fpr"]
    np.testing.assert_allclose(estimates["accuracy"].value, 0.5)
    np.testing.assert_allclose(estimates["auc"].value, (0.5 + 0.75) / 2)
    np.testing.assert_allclose(estimates["tpr_at_50pct_fpr"].value, 1.0)
    assert {estimate.n for estimate in estimates.values()} == {5}
    assert readings.tprs(targets, fpr=(0.5,)) == {0.5: estimates["tpr_at_50pct_fpr"]}


@pytest.mark.parametrize(
    ("rows", "missing", "note"),
    [
        (("++.", "+.."), "", "no target has samples on both sides"),
        (("--.", "-.."), "", "no target has samples on both sides"),
        (("+-.", "-.."), "no shadow models", "no shadow models"),
        (("++.", "+.."), "no shadow models", "no shadow models"),
    ],
)
def test_what_cannot_be_read_says_why(rows, missing, note):
    targets = question(np.zeros((2, 3)), *rows, missing=missing)
    estimates = readings.readings(targets, fpr=(0.01, 0.001))
    assert list(estimates) == ["accuracy", "auc", "tpr_at_1pct_fpr", "tpr_at_0.1pct_fpr"]
    for estimate in (*estimates.values(), *readings.tprs(targets, fpr=(0.01,)).values()):
        assert np.isnan(estimate.value)
        assert (estimate.n, estimate.note) == (2, note)


def test_balanced_accuracy_is_half_of_the_advantage_above_one_half():
    positive, negative = sides("+++-")
    decision = np.array([[True, True, False, True]])
    actual = readings.balanced_accuracy(decision, positive, negative)
    parts = [crossed.per_model(value=decision * 1.0, weight=side) for side in (positive, negative)]
    np.testing.assert_allclose(actual.value, [(2 / 3 + 0) / 2])
    np.testing.assert_allclose(actual.influence, (parts[0].influence - parts[1].influence) / 2)
    np.testing.assert_allclose(actual.imagined, np.concatenate([parts[0].imagined, -parts[1].imagined], axis=1) / 2)


def test_a_mean_over_targets_has_student_s_interval_where_samples_are_certain():
    values = np.array([0.2, 0.5, 0.8])
    still = crossed.PerModel(values, np.zeros((3, 4)), np.zeros((3, 2)))
    (estimate,) = readings.over_models([still], n=4)
    half = special.stdtrit(2, 0.975) * 0.3 / np.sqrt(3)
    np.testing.assert_allclose(
        [estimate.value, estimate.low, estimate.high], [0.5, max(0.5 - half, 0), min(0.5 + half, 1)]
    )
    assert estimate.n == 4


def test_the_lower_limit_makes_room_for_the_optimism():
    tpr = readings.Tpr(None, 0.2, "one threshold")
    estimate = tpr.estimate(stats.Estimate(0.5, 0.3, 0.7, 9, "one model"))
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [0.5, 0.1, 0.7])
    assert estimate.note == "one model; one threshold"
    assert tpr.estimate(stats.Estimate(0.5, 0.1, 0.7, 9)) == stats.Estimate(0.5, 0.0, 0.7, 9, "one threshold")


@pytest.mark.parametrize(("optimism", "note"), [
    (0.00499, ""), (-0.2, ""), (0.005, "reads about 0.005 high, because 40 negatives set the threshold"),
])  # fmt: skip
def test_a_rate_that_reads_half_a_percent_high_says_so(optimism, note):
    assert readings._high(optimism, 40.4) == note


def pooled():
    rng = np.random.default_rng(0)
    score, (positive, negative) = rng.normal(size=(3, 30)), sides(*["+" * 10 + "-" * 20] * 3)
    return score + positive, positive, negative


def test_one_threshold_for_all_targets_by_hand():
    """Of 60 negatives three may be accepted at 5 %, of 20 just one: together by one threshold at 4 %."""
    score, positive, negative = pooled()
    assert readings.tpr_at(score, positive, negative, fpr=0.05).note.startswith("reads about")
    tpr = readings.tpr_at(score, positive, negative, fpr=0.04)
    flat = {name: x.reshape(1, -1) for name, x in (("score", score), ("positive", positive), ("negative", negative))}
    whole, (optimism,) = separation.tpr_at_fpr(**flat, fpr=0.04)
    np.testing.assert_allclose(tpr.part.value.mean(), whole.value[0])
    per_target = whole.influence.reshape(3, 30).sum(axis=1)
    np.testing.assert_allclose(tpr.part.value - whole.value[0], 3 * (per_target - per_target.mean()), atol=1e-15)
    np.testing.assert_allclose(tpr.part.influence, 3 * whole.influence.reshape(3, 30))
    np.testing.assert_allclose(((tpr.part.imagined / 3) ** 2).sum(axis=0), whole.imagined[0] ** 2)
    assert tpr.optimism == optimism
    assert tpr.note.startswith("one threshold for 3 targets: 20 negatives in one are too few; reads about")
    assert tpr.note.endswith("because 60 negatives set the threshold")
    estimate = readings.mean_tpr(score, positive, negative, fpr=0.04, n=30)
    assert (estimate.n, estimate.note) == (30, tpr.note)
    np.testing.assert_allclose(estimate.value, whole.value[0])


def test_a_rate_that_all_negatives_cannot_resolve_is_empty():
    estimate = readings.mean_tpr(*pooled(), fpr=0.01, n=30)
    assert np.isnan(estimate.value)
    assert (estimate.n, estimate.note) == (30, "60 negatives cannot resolve a false positive rate of 0.01")


def test_the_target_with_fewest_negatives_decides_whether_each_has_a_threshold():
    score, positive, negative = pooled()
    negative[1, 12:] = 0
    tpr = readings.tpr_at(score, positive, negative, fpr=0.3)
    assert tpr.note.startswith("one threshold for 3 targets: 2 negatives in one are too few")
    separate = readings.tpr_at(score, positive, negative, fpr=0.5)
    assert "one threshold" not in separate.note
    part, optimism = separation.tpr_at_fpr(score=score, positive=positive, negative=negative, fpr=0.5)
    np.testing.assert_allclose(separate.part.value, part.value)
    np.testing.assert_allclose(separate.optimism, optimism.mean())
    assert separate.note == readings._high(optimism.mean(), 2)
