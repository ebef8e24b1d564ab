"""Agreement of rankings between places: τ by hand, and what cannot be ranked."""

import math
from dataclasses import replace

import pytest
from scipy.stats import kendalltau
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import grid, rankings

from display_cases import case, order, row

#: Seven methods at three places: the second ranks two neighbours the other way round, the third all of them.
FIRST = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.5, "f": 0.6, "g": 0.7}
PLACES = {"1": FIRST, "2": {**FIRST, "a": 0.2, "b": 0.1}, "3": {name: 1 - value for name, value in FIRST.items()}}


def study(metric="q", places=PLACES):
    cases, rows = [], []
    for place, values in places.items():
        for name, value in {"none": 0.0, **values, "retrain": 1.0, "retrain_control": 0.99}.items():
            cases.append(case("main", name, {"size": place}))
            rows.append(row(cases[-1], metric, value, value - 0.01, value + 0.01, "adaptive"))
    return cases, rows


def table(cases, rows, **wish):
    request = order(cases, ["main"], columns="size", layout="rankings", **wish)
    return grid.sheets_of(Numbers(rows, cases), request, "")[0]


def test_agreement_by_hand():
    sheet = table(*study())
    assert [head.label for head in sheet.heads] == [line.label for line in sheet.lines] == ["1", "2", "3"]
    swapped = (21 - 2) / 21  # one of 21 pairs of methods is reversed
    assert [cell.text for cell in sheet.lines[0].cells] == ["", "0.90", "−1.00"]
    values = {(record["setting"], record["other_setting"]): record["value"] for record in sheet.records}
    assert values == pytest.approx(
        {("size=2", "size=1"): swapped, ("size=3", "size=1"): -1, ("size=3", "size=2"): -swapped}
    )
    for record in sheet.records:
        assert record["ci_low"] <= record["value"] <= record["ci_high"]
        assert record["n"] == 7


def test_systems_are_ranked_by_what_their_metrics_call_good():
    """Right guesses have no better end, and are good where they are half; Q is good where it is high."""
    cases, rows = [], []
    for scenario, metric, values in (("s", "q", (0.9, 0.7, 0.5)), ("o", "right_guesses", (0.5, 0.6, 0.7))):
        for name, value in zip("abc", values, strict=True):
            cases.append(case(scenario, name, protocol="swap" if metric == "q" else "one_run"))
            rows.append(row(cases[-1], metric, value, attack="adaptive" if metric == "q" else "phi"))
    ranked = [
        rankings.of(Numbers(rows, cases), (where, ""), metric) for where, metric in (("s", "q"), ("o", "right_guesses"))
    ]
    assert rankings.agreement(*ranked).value == pytest.approx(1.0)
    assert rankings.goodness("privacy_auc", 0.25) == rankings.goodness("privacy_auc", 0.75) < 0
    assert rankings.goodness("leak_at_k_gap", -0.3) < rankings.goodness("leak_at_k_gap", 0.1)
    assert rankings.goodness("tail_advantage", 0.3) < rankings.goodness("tail_advantage", 0.1)


def test_none_and_retraining_have_no_say_and_neither_have_methods_without_a_number():
    cases, rows = study()
    dropped = [record for record in rows if record.method == "g" and record.axes["size"] == "2"]
    rows = [
        replace(record, row=replace(record.row, value=math.nan)) if record in dropped else record for record in rows
    ]
    ranked = [rankings.of(Numbers(rows, cases), ("main", f"size={place}"), "q") for place in "12"]
    assert list(ranked[0].values) == list(FIRST)
    assert list(ranked[1].values) == list("abcdef")
    cell = rankings.agreement(*ranked)
    assert cell.n == 6
    assert cell.value == pytest.approx(kendalltau([1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 5, 6]).statistic)


def test_what_cannot_be_ranked_says_why():
    cases, rows = study(places={"1": {"a": 0.1}, "2": {"a": 0.2}, "3": {"a": 0.1, "b": 0.1}, "4": {"a": 0.1, "b": 0.2}})
    sheet = table(cases, rows)
    notes = {(record["setting"], record["other_setting"]): record["note"] for record in sheet.records}
    assert notes["size=2", "size=1"] == "fewer than two methods have a number in both scenarios"
    assert notes["size=4", "size=3"] == "a rank correlation needs two lists that vary"
