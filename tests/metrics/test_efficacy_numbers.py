"""Efficacy's rows of a case counted by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import efficacy

import metric_calls as call
from row_places import about

NORMS = np.array([[1.0, 3.0], [4.0, 4.0], [0.0, 16.0]])  # ι: 2, 4, 8


def case(norms=NORMS, scores=None):
    """Three targets after a shadow model; each keeps samples 0 to 2, forgets 3 and 4, and is tested on 5 to 7."""
    part = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    forget = np.tile((np.arange(8) == 3) | (np.arange(8) == 4), (4, 1))
    train = np.tile(part == 0, (4, 1))
    member = Membership(
        train=train, forget=forget, heldout=~train, seed=np.arange(4), split=np.zeros(4, int),
        block=np.zeros(4, int), shadow=np.arange(4) == 0,
    )  # fmt: skip
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    right = np.array([
        [1, 1, 0, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 1, 0],
    ], bool)  # fmt: skip
    clean = y.copy()
    clean[7] = 0  # of the test part, the truth counts; of what was taught, the labels that were
    guess = np.where(right, y, 1 - y)
    return SimpleNamespace(
        gradients=(norms, norms.mean(1) / 4), membership=member, target=~member.shadow, unlearned_files=["own"],
        scores_file=scores and "scores", scores=scores, labels_of=lambda models: y,
        data=SimpleNamespace(part=part, y_clean=clean),
        answers=lambda files: SimpleNamespace(predicted=lambda models: guess),
    )  # fmt: skip


def by_name(rows):
    table = {(row.attack, row.metric, about(row)): row for row in rows}
    assert len(table) == len(rows)
    return table


def test_rows_of_a_case():
    table = by_name(call.rows(efficacy, case(), {}))
    assert [table["", "efficacy", f"model={m}"].value for m in range(3)] == [1 / 2, 1 / 4, 1 / 8]
    assert [table["", "efficacy_upper_bound", f"model={m}"].value for m in range(3)] == [2, 1, 1 / 2]
    row = table["", "information", "model=2"]
    assert (row.value, row.n) == (8, 1)
    assert math.isnan(row.ci_low)
    assert math.isnan(row.ci_high)
    assert table["", "efficacy_median", ""].value == 1 / 4
    assert table["", "information", ""].value == pytest.approx(14 / 3)
    # shares that are right: retain 2/3, 1, 1/3; forget 1, 1/2, 0; test 2/3, 2/3, 1
    spread = {role: table["", "accuracy_sd", f"role={role}"].value for role in ("retain", "forget", "test")}
    assert spread == pytest.approx({"retain": 1 / 3, "forget": 1 / 2, "test": math.sqrt(1 / 27)})
    assert ("", "accuracy_sd", "role=heldout") not in table
    assert not [metric for _, metric, _ in table if metric.startswith("attack_probability")]


def test_accuracy_has_no_spread_where_a_model_has_nothing_to_be_right_about():
    without = case()
    without.data.part = np.zeros(8)
    without.membership.forget[2] = False
    table = by_name(efficacy._accuracy_spread(without))
    assert list(table) == [("", "accuracy_sd", "role=retain")]


def test_attacks_give_the_mean_probability_of_the_forgotten():
    score = np.full((3, 8), np.nan)
    score[:, 3:5] = [[0.0, 1.0], [0.5, 1.0], [0.25, 0.75]]
    table = by_name(call.rows(efficacy, case(scores={("a", "trained"): (score, score > 0)}), {}))
    assert [table["a/trained", "attack_probability", f"model={m}"].value for m in range(3)] == [0.5, 0.75, 0.5]
    assert table["a/trained", "attack_probability", ""].value == pytest.approx(1.75 / 3)


def test_contributions_are_logarithms_of_every_model():
    part = call.parts(efficacy, case(), {})["efficacy"]
    np.testing.assert_allclose(part.value, -np.log([[2.0, 4, 8]]))
    assert part.unit.tolist() == [0, 1, 2]
    assert call.parts(efficacy, case(NORMS * [[1], [0], [1]]), {}) == {}


def test_rounding_is_forgiven_and_nothing_more():
    """‖mean gradient‖² is at most the mean of squared norms; float32 gradients may exceed it by a thousandth."""
    norms = np.array([[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]])

    def bounds(of_mean):
        rows = efficacy.evaluate(squared_norms=norms, mean_squared_norm=np.array(of_mean))
        return [row.value for row in rows if row.metric == "efficacy_upper_bound" and about(row)]

    assert bounds([1.0, 2.0019, 1e-31]) == [1, 0.5, np.inf]
    for wrong, model, number in (([1.0, 2.0021, 0], 1, "2.0021"), ([1.0, 2, 1e-29], 2, "1e-29")):
        with pytest.raises(ValueError, match=f"model {model}: the mean gradient's squared norm {number} exceeds"):
            bounds(wrong)
    with pytest.raises(ValueError, match="3 numbers of at least 0"):
        bounds([1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="model 1 has no target samples"):
        efficacy.information(norms, target=np.array([[True, False], [False, False], [True, True]]))
    with pytest.raises(ValueError, match=r"must be \[models, samples\], not \(2,\)"):
        efficacy.information(norms[0])


def test_summaries_count_infinite_values():
    summary = efficacy.summary(np.array([1.0, np.inf, np.inf]), "efficacy")
    assert summary[""].note == summary["_sd"].note == "efficacy is infinite in 2 of 3 models"
    assert summary[""].n == 3
    assert summary["_median"].value == np.inf


def test_the_quantity_that_is_infinite_is_named():
    flat = efficacy.evaluate(squared_norms=np.ones((2, 3)), mean_squared_norm=np.array([0.0, 0.5]))
    notes = {row.metric: row.note for row in flat if row.model is None}
    assert notes["efficacy_upper_bound"] == "efficacy_upper_bound is infinite in 1 of 2 models"
    assert "infinite" not in notes["efficacy"] + notes["information"]
    steep = efficacy.evaluate(squared_norms=np.array([[np.inf, 1.0], [2.0, 2.0]]), mean_squared_norm=np.full(2, 0.5))
    notes = {row.metric: row.note for row in steep if row.model is None}
    assert notes["information"] == "information is infinite in 1 of 2 models"
    assert "infinite" not in notes["efficacy"]


def test_the_median_of_one_two_and_six_values():
    assert efficacy.median_interval(values=np.array([3.0])).value == 3
    assert efficacy.median_interval(values=np.array([3.0, 1.0])).value == 2
    # six values: the smallest and the largest miss the median with 2/64, no other pair is allowed at 95 %
    median = efficacy.median_interval(values=np.array([9.0, 1, 5, 7, 2, 3]))
    assert (median.value, median.low, median.high, median.n) == (4, 1, 9, 6)
    # at 3.125 % exactly
    assert efficacy.median_interval(values=np.arange(6.0), level=1 - 2 / 64).low == 0
    # eight values: the second and the seventh would miss with 2·9/256 = 7 %
    median = efficacy.median_interval(values=np.arange(8.0), level=0.9)
    assert (median.low, median.high) == (1, 6)
    # two values hold the median between them half of the time
    median = efficacy.median_interval(values=np.array([3.0, 1.0]), level=0.5)
    assert (median.low, median.high) == (1, 3)
    of_five = efficacy.median_interval(values=np.arange(5.0))
    assert of_five.value == 2
    assert np.isnan([of_five.low, of_five.high]).all()
    assert of_five.note == "5 values are too few for an interval of the median"


def test_the_interval_of_the_median_of_a_hundred_values_is_that_of_binomial_tables():
    """40th and 61st: fewer than 40 of 100 tosses are heads with probability .018, fewer than 41 with .028."""
    median = efficacy.median_interval(values=np.random.default_rng(3).permutation(100) + 1.0)
    assert (median.value, median.low, median.high) == (50.5, 40, 61)
