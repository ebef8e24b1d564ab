"""Readings of a test on many targets: AUC, accuracy, and TPR at rates that one target can resolve or not."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit import stats
from unlearning_audit.plugins import registry
from unlearning_audit.stats import crossed, readings, separation
from unlearning_audit.stats.readings import MembershipTest

from stat_cases import three


def sides(*rows):
    """Weights of both sides from rows of +, − and a dot."""
    signs = np.array([list(row) for row in rows])
    return {"positive": (signs == "+") * 1.0, "negative": (signs == "-") * 1.0}


def test_the_auc_of_each_model_by_hand():
    both = sides("+-+-.", ".+-+-")
    score = np.array([[3.0, 2.0, 1.0, 1.0, np.nan], [np.nan, 0.0, 0.0, 5.0, 1.0]])  # on no side: never read
    actual = separation.auc(score=score, **both)
    np.testing.assert_allclose(actual.value, [(1 + 0.25) / 2, (0.25 + 1) / 2])
    # placements 1 and ¼ of positives, ½ and ¾ of negatives, each side with two imaginary ones
    placed = np.array([[1.0, 0.5, 0.25, 0.75, 0.0]])
    (_, above, above_imagined), (_, below, below_imagined) = (
        stats.mean_influence(value=placed, weight=both[side][:1]) for side in ("positive", "negative")
    )
    np.testing.assert_allclose(actual.influence[0], (above + below)[0])
    np.testing.assert_allclose(actual.imagined[0], np.r_[above_imagined[0], below_imagined[0]])
    weighed = {"positive": np.array([[0, 3.0, 1.0]]), "negative": np.array([[2.0, 0, 0]])}
    np.testing.assert_allclose(separation.auc(score=np.array([[2.0, 1.0, 3.0]]), **weighed).value, [0.25])


def test_samples_in_effect_by_hand():
    np.testing.assert_allclose(separation.effective_count(np.array([[1.0, 1, 1, 0], [3, 1, 0, 0]])), [3, 1.6])


@pytest.mark.parametrize(("fpr", "value", "j"), [(0.25, 0.5, 2), (0.5, 0.75, 3)])
def test_the_slope_and_the_optimism_of_a_tpr_by_hand(fpr, value, j):
    """Negatives 0 to 3 and a sample that is on no side; positives between them."""
    score = np.array([[0.0, 1.0, 2.0, 3.0, np.nan, 3.5, 2.5, 1.5, 0.5]])
    both = sides("----.++++")
    part, optimism = separation.tpr_at_fpr(score=score, **both, fpr=fpr)
    np.testing.assert_allclose(part.value, [value])
    spread = np.sqrt(fpr * (1 - fpr) / 4)
    high = np.ceil(4 * (fpr + spread)) / 4  # a whole number of negatives
    # The TPR of a cut between negatives; of all four, at the ends, it is 1 as that of three.
    at = [min(0.25 + np.floor(4 * level) / 4, 1) for level in (fpr - spread, high)]
    slope = (at[1] - at[0]) / (min(high, separation.MOST) - fpr + spread)
    np.testing.assert_allclose(optimism, [slope * (j / 5 - fpr)])
    hits, alarms = (crossed.per_model(value=(score > 3 - 4 * fpr) * 1.0, weight=side) for side in both.values())
    expected = crossed.difference(hits, alarms, slope)
    np.testing.assert_allclose(part.influence, expected.influence)
    np.testing.assert_allclose(part.imagined, expected.imagined)


@pytest.mark.parametrize(
    ("score", "rows", "fpr", "value", "rise", "width", "j"),
    [
        # Positives that tie with a cut are not accepted: by the cuts 3, 2 and 1 none, three and all of four.
        ([0.0, 1, 2, 3, 3, 3, 2.5, 2], "----++++", 0.25, 0.75, 1.0, 0.25 + np.sqrt(0.1875 / 4), 2 / 5),
        # Of two negatives none may be accepted at 30 %; the slope is measured from 0, where half of the positives are.
        ([0.0, 1, 2, 0.5], "--++", 0.3, 0.5, 0.5, 1 - 1e-6, 1 / 3),
        # The spread of a rate near one reaches beyond all negatives: from the cut 1 to the cut 0.
        ([0.0, 1, 2, 0.5], "--++", 0.75, 1.0, 0.5, 1 - 1e-6 - 0.75 + np.sqrt(0.1875 / 2), 2 / 3),
    ],
)
def test_a_slope_at_the_ends_of_the_curve_and_at_ties(score, rows, fpr, value, rise, width, j):
    part, optimism = separation.tpr_at_fpr(score=np.array([score]), **sides(rows), fpr=fpr)
    assert part.value == [value]
    np.testing.assert_allclose(optimism, [rise / width * (j - fpr)])


def test_optimism_is_how_much_too_high_a_rate_reads_on_average():
    """60 negatives, 10 %: among new negatives 7 of 61 lie above the threshold; the mean over many draws shows it."""
    rng, high, optimism = np.random.default_rng(1), [], []
    for _ in range(200):
        score = np.concatenate([rng.normal(1, 1, 400), rng.normal(0, 1, 60)])[None]
        result = readings.tpr_at(score, *sides("+" * 400 + "-" * 60).values(), fpr=0.1)
        high.append(result.of_models.value[0] - special.ndtr(1 + special.ndtri(0.1)))
        optimism.append(result.optimism)
    assert np.mean(optimism) > 0.015
    assert np.mean(high) == pytest.approx(np.mean(optimism), abs=4 * np.std(high) / np.sqrt(200))
    assert result.note == f"reads about {result.optimism:.3f} high, because 60 negatives set the threshold"


def question(score, *rows, missing=""):
    return MembershipTest(np.array(score, dtype=float), *(side > 0 for side in sides(*rows).values()), missing)


def test_readings_of_two_targets_by_hand():
    """A log-odds of 0 says negative; a target without one side is left out, with what its samples scored."""
    targets = question([[1, 0, -1, 2, np.nan], [3, 1, np.nan, -2, -1], [9, 9, np.nan, np.nan, np.nan]],
                       "++--.", "+-.-+", "++...")  # fmt: skip
    estimates = readings.readings(targets, fpr=(0.5,))
    expected = {"accuracy": 0.5, "auc": (0.5 + 0.75) / 2, "tpr_at_50pct_fpr": 1.0}
    assert {name: estimate.value for name, estimate in estimates.items()} == pytest.approx(expected)
    assert {estimate.n for estimate in estimates.values()} == {5}
    assert readings.tprs(targets, fpr=(0.5,)) == {0.5: estimates["tpr_at_50pct_fpr"]}


@pytest.mark.parametrize(
    ("rows", "missing", "note"),
    [
        (("++.", "+.."), "", "no target has samples on both sides"),
        (("--.", "-.."), "", "no target has samples on both sides"),
        (("+-.", "-.."), "no shadow models", "no shadow models"),
    ],
)
def test_what_cannot_be_read_says_why(rows, missing, note):
    estimates = readings.readings(question(np.zeros((2, 3)), *rows, missing=missing), fpr=(0.01, 0.001))
    assert list(estimates) == ["accuracy", "auc", "tpr_at_1pct_fpr", "tpr_at_0.1pct_fpr"]
    assert {(str(estimate.value), estimate.n, estimate.note) for estimate in estimates.values()} == {("nan", 2, note)}


def test_balanced_accuracy_is_half_of_the_advantage_above_one_half():
    both, decision = sides("+++-").values(), np.array([[True, True, False, True]])
    actual = readings.balanced_accuracy(decision, *both)
    advantage = crossed.difference(*(crossed.per_model(value=decision * 1.0, weight=side) for side in both))
    np.testing.assert_allclose(actual.value, [(2 / 3 + 0) / 2])
    np.testing.assert_allclose(actual.influence, advantage.influence / 2)
    np.testing.assert_allclose(actual.imagined, advantage.imagined / 2)


def test_the_lower_limit_makes_room_for_the_optimism():
    tpr = readings.Tpr(None, 0.2, "one threshold")
    estimate = tpr.corrected(stats.Estimate(0.5, 0.3, 0.7, 9, "one model"))
    assert three(estimate) == pytest.approx([0.5, 0.1, 0.7])
    assert estimate.note == "one model; one threshold"
    assert tpr.corrected(stats.Estimate(0.5, 0.1, 0.7, 9)) == stats.Estimate(0.5, 0.0, 0.7, 9, "one threshold")
    notes = [readings._optimism_note(optimism, 40.4) for optimism in (-0.2, 0.00499, 0.005)]
    assert notes == ["", "", "reads about 0.005 high, because 40 negatives set the threshold"]


def pooled():
    score, both = np.random.default_rng(0).normal(size=(3, 30)), sides(*["+" * 10 + "-" * 20] * 3)
    return {"score": score + both["positive"], **both}


def test_one_threshold_for_all_targets_by_hand():
    """Of 60 negatives three may be accepted at 5 %, of 20 just one: together by one threshold at 4 %."""
    test = pooled()
    assert readings.tpr_at(**test, fpr=0.05).note.startswith("reads about")
    tpr = readings.tpr_at(**test, fpr=0.04)
    whole, (optimism,) = separation.tpr_at_fpr(**{name: x.reshape(1, -1) for name, x in test.items()}, fpr=0.04)
    influence = 3 * whole.influence.reshape(3, 30)
    shift = influence.sum(axis=1)
    np.testing.assert_allclose(tpr.of_models.value, whole.value + shift - shift.mean())
    np.testing.assert_allclose(tpr.of_models.influence, influence)
    np.testing.assert_allclose(((tpr.of_models.imagined / 3) ** 2).sum(axis=0), whole.imagined[0] ** 2)
    assert tpr.optimism == optimism
    assert tpr.note.startswith("one threshold for 3 targets: 20 negatives in one are too few; reads about")
    assert tpr.note.endswith("because 60 negatives set the threshold")
    asked = MembershipTest(
        *(test[name].astype(of) for name, of in (("score", float), ("positive", bool), ("negative", bool)))
    )
    estimate, empty = readings.tprs(asked, fpr=(0.04, 0.01)).values()
    assert (estimate.value, estimate.n, estimate.note) == (pytest.approx(whole.value[0]), 30, tpr.note)
    assert np.isnan(empty.value)
    assert (empty.n, empty.note) == (30, "60 negatives cannot resolve a false positive rate of 0.01")


def test_the_target_with_fewest_negatives_decides_whether_each_has_a_threshold():
    test = pooled()
    test["negative"][1, 12:] = 0
    note = readings.tpr_at(**test, fpr=0.3).note
    assert note.startswith("one threshold for 3 targets: 2 negatives in one are too few")
    separate = readings.tpr_at(**test, fpr=0.5)
    part, optimism = separation.tpr_at_fpr(**test, fpr=0.5)
    np.testing.assert_allclose(separate.of_models.value, part.value)
    np.testing.assert_allclose(separate.optimism, optimism.mean())
    assert separate.note == readings._optimism_note(optimism.mean(), 2)


@pytest.mark.parametrize("name", ["phi", "published", "ruli", "ruli_on_pairs", "swap"])
def test_what_is_no_rate_of_false_alarms_is_refused(name):
    for fpr in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="fpr"):
            registry.load("metrics", name).Options(fpr=[fpr])


def test_intervals_over_units_are_wider_where_units_differ():
    """Of two pairs of four targets each, one tells forgotten samples from others and the other takes them for these."""
    rng, pair = np.random.default_rng(0), np.repeat([1, -1], 4)
    positive = np.stack([rng.permutation(200) < 100 for _ in pair])
    score = rng.standard_normal(positive.shape) + 0.5 * pair[:, None] * positive
    alone, of_units = (
        readings.readings(MembershipTest(score, positive, ~positive, unit=unit), fpr=(0.1,)) for unit in (None, pair)
    )
    for name, number in of_units.items():
        assert number.value == alone[name].value
        assert number.high - number.low > 1.5 * (alone[name].high - alone[name].low), name
