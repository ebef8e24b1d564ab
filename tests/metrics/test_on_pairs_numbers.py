"""The competition's score on swapped pairs where every ε is 0 or the cap, and its intervals in closed form."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _pairs, competition, competition_on_pairs
from unlearning_audit.metrics.competition_on_pairs import NO_NULL, Split, estimates

import metric_calls as call
from held_answers import Held

ONE = (1.0, 1.0)
NO_SCORE = "the final score needs the accuracy of retrained models on a test part, above 0"


def splits(*f: float, null: float = 1.0, test: tuple[float, float] = ONE) -> list[Split]:
    """One split of each of so many pairs, all of whose samples have the same points."""
    return [Split(block, np.full(4, point), np.full(4, null), ONE, test) for block, point in enumerate(f)]


def limits(estimate):
    return estimate.value, estimate.low, estimate.high


def test_three_pairs_are_enough_for_students_interval():
    results = estimates(splits(0.4, 0.5, 0.9))
    half = student(2).ppf(0.975) * math.sqrt(0.07 / 3)
    for name, end in (
        ("forgetting_quality", 1.0), ("forgetting_quality_over_null", 0.6 + half), ("score", 0.6 + half)
    ):  # fmt: skip
        assert limits(results[name]) == pytest.approx((0.6, max(0.6 - half, 0), end))
        assert (results[name].n, results[name].note) == (12, "")
    narrow = estimates(splits(0.5, 0.6, 0.7))["forgetting_quality"]
    assert narrow.low == pytest.approx(0.6 - student(2).ppf(0.975) * 0.1 / math.sqrt(3))


def test_two_pairs_have_an_interval_over_samples():
    h, null = np.array([0.0, 1, 0, 1, 0, 1, 0, 1]), np.full(8, 0.5)
    results = estimates([Split(b, h[4 * b :][:4], null[:4], (0.8, 0.9), (0.6, 0.9)) for b in range(2)])
    half = student(7).ppf(0.975) * math.sqrt(2 / 7 / 8)
    for name, scale in (
        ("forgetting_quality", 1), ("forgetting_quality_over_null", 2), ("score", 0.8 / 0.9 * 0.6 / 0.9)
    ):  # fmt: skip
        assert limits(results[name]) == pytest.approx((0.5 * scale, (0.5 - half) * scale, (0.5 + half) * scale))
        assert "too few models for an interval over models" in results[name].note
    assert limits(results["forgetting_quality_null"]) == (0.5, 0.5, 0.5)
    rare = estimates([Split(0, np.eye(8)[0], null, ONE, ONE)])
    assert {rare[name].low for name in ("forgetting_quality", "forgetting_quality_over_null", "score")} == {0}


def test_a_quality_ends_at_one():
    h, null = np.array([1.0, 1, 1, 0.25]), np.array([0.5, 0.5, 0.25, 1.0])
    results = estimates([Split(0, h, null, ONE, ONE)])
    assert results["forgetting_quality"].high == results["forgetting_quality_null"].high == 1
    assert results["score"].high > 1


#: F₀ of two samples, of which one has no points, and of three pairs, of which two have none.
ONE_SAMPLE = [Split(0, np.array([1.0, 0.5]), np.array([0.5, 0.0]), ONE, ONE)]
ONE_PAIR = [Split(0, np.full(4, 0.5), np.full(4, 1.0), ONE, ONE), *splits(0.5, 0.5, 0.5, null=0.0)[1:]]


@pytest.mark.parametrize(
    ("some", "name", "value", "note"),
    [
        (splits(0.5, 0.5, null=0.0), "forgetting_quality_over_null", math.nan, "F₀ is 0"),
        (splits(0.5, 0.5, null=math.nan), "forgetting_quality_over_null", math.nan, NO_NULL),
        (splits(0.5, 0.5, null=math.nan), "forgetting_quality_null", math.nan, NO_NULL),
        *((splits(0.5, 0.5, 0.5, test=test), "score", math.nan, NO_SCORE) for test in ((0.5, 0.0), (math.nan,) * 2)),
        (ONE_SAMPLE, "forgetting_quality_over_null", 3, competition.NO_INTERVAL),
        (ONE_PAIR, "forgetting_quality_over_null", 1.5, "without one of the pairs there is no number, so no interval"),
    ],
)
def test_what_is_missing_is_said(some, name, value, note):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = estimates(some)
    np.testing.assert_array_equal(limits(results[name]), (value, math.nan, math.nan))
    assert (results[name].n, results[name].note) == (sum(len(split.h) for split in some), note)
    assert results["forgetting_quality"].value >= 0.5, "the others are there"


# ---------------------------------------------------------------- a case


def logits(phi: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of two classes, with this logit-scaled confidence in the labels ``y``, both [models, samples]."""
    return np.where(np.eye(2)[y] > 0, phi[..., None], 0.0)


def case(*, control=True, test=True, method="own"):
    """A shadow model, then one pair: two models forget samples 0 to 3, two 4 to 7; 8 and 9 are kept, 10 to 13 tested.

    Unlearned models tell two of each four apart from retrained ones; retrained ones of the other split and the control
    tell one apart."""
    count, samples = 5, 14
    forget, heldout = np.zeros((2, count, samples), bool)
    forget[1:3, :4] = heldout[3:, :4] = forget[3:, 4:8] = heldout[1:3, 4:8] = True
    train = ~heldout & (np.arange(samples) < 10)
    split = np.array([0, 0, 0, 1, 1])
    member = Membership(train, forget, heldout, np.arange(count), split, np.zeros(count, int), np.arange(count) == 0)
    y = np.tile([0, 1, 1, 0, 1, 0, 1], 2)
    phi = np.full((count, samples), 5.0)
    unlearned, retrain, second = phi.copy(), phi.copy(), phi.copy()
    unlearned[:, [0, 1, 4, 5]] = 9
    retrain[1:3, 4] = retrain[3:, 0] = 1  # what a split of the other side says of one sample
    second[:, [0, 4]] = 7
    unlearned[1:3, 8], unlearned[:, 10:12], retrain[:, 10] = -5, -5, -5
    arrays = {"own": logits(unlearned, y), "retrain": logits(retrain, y), "control": logits(second, y)}
    return SimpleNamespace(
        membership=member, labels=y, unlearned_files=[method], retrained_files=["retrain"],
        control_files=["control"] if control else None, arrays=arrays, answers=lambda files: Held(arrays[files[0]]),
        data=SimpleNamespace(part=(np.arange(samples) >= (10 if test else 99)) * 1, y_clean=y),
    )  # fmt: skip


def read(example: SimpleNamespace, split: int = 0) -> Split:
    return competition_on_pairs.read_split(example, _pairs.groups(example.membership)[split], "exact")


def test_accuracies_are_those_of_a_split_and_of_models_retrained_for_it():
    result = read(case())
    assert (result.block, result.retain, result.test) == (0, (0.5, 1), (0.5, 0.75))
    assert read(case(), 1).retain == (1, 1)
    assert math.isnan(read(case(test=False)).test[0])
    assert result.h.tolist() == [0, 0, 0, 0], "two models on a side have no bins: ⌈ln 1⌉ = 0"


def more(example: SimpleNamespace) -> SimpleNamespace:
    """The same with every model three times."""
    again = np.repeat(np.arange(5), 3)
    example.membership = example.membership[again]
    example.arrays.update({name: logits[again] for name, logits in example.arrays.items()})
    return example


@pytest.mark.parametrize(
    ("method", "control", "h", "null"),
    [
        ("own", True, [0, 0, 1, 1], [0, 1, 1, 1]),
        ("retrain", True, [0, 1, 1, 1], [0, 1, 1, 1]),
        ("retrain", False, [0, 1, 1, 1], [math.nan] * 4),
    ],
)
def test_points_and_their_null(method, control, h, null):
    for split in (0, 1):
        result = read(more(case(method=method, control=control)), split)
        np.testing.assert_array_equal([result.h, result.null], [h, null])


def test_rows_of_a_case_say_how_many_models_were_compared():
    rows = {row.metric: row for row in call.rows(competition_on_pairs, more(case()), {})}
    assert {name: row.value for name, row in rows.items()} == pytest.approx({
        "forgetting_quality": 0.5, "forgetting_quality_null": 0.75, "forgetting_quality_over_null": 0.5 / 0.75,
        "score": 0.5 * 0.75 * (0.5 / 0.75),
    })  # fmt: skip
    assert rows["score"].note.startswith("6 against 6 models for each of 2 forget sets; ")
    assert rows["score"].n == 8
