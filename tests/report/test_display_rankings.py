"""Agreement of rankings between places: τ by hand, and what cannot be ranked."""

import math

import pytest
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import grid, rankings

from display_cases import case, order, row


def table(**places):
    """The table of agreement between places: size → method → Q; references are added."""
    cases, rows = [], []
    for size, values in places.items():
        for name, value in {"none": 0.0, **values, "retrain": 1.0, "retrain_control": 0.99}.items():
            cases.append(case("main", name, {"size": size}))
            rows.append(row(cases[-1], "q", value, value - 0.01, value + 0.01, "adaptive"))
    request = order(cases, ["main"], columns="size", layout="rankings")
    (sheet,) = grid.sheets_of(Numbers(rows, cases), request)
    return sheet, {(record["setting"][-1], record["other_setting"][-1]): record for record in sheet.records}


def test_agreement_by_hand_without_references_and_methods_that_lack_a_number():
    """Seven methods; the second place ranks two neighbours the other way round, the third all, the fourth lacks one."""
    first = {name: i / 10 for i, name in enumerate("abcdefg", start=1)}
    swapped = {**first, "a": 0.2, "b": 0.1}
    falling = {name: 1 - value for name, value in first.items()}
    sheet, records = table(a=first, b=swapped, c=falling, d={**swapped, "g": math.nan})
    assert [head.label for head in sheet.heads] == [line.label for line in sheet.lines] == list("abcd")
    assert [cell.text for cell in sheet.lines[0].cells] == ["", "0.90", "−1.00", "0.87"]
    one, one_of_six = 1 - 2 / 21, 1 - 2 / 15  # one pair of methods is reversed
    assert {key: record["value"] for key, record in records.items()} == pytest.approx(
        {("b", "a"): one, ("c", "a"): -1, ("c", "b"): -one, ("d", "a"): one_of_six, ("d", "b"): 1,
         ("d", "c"): -one_of_six}
    )  # fmt: skip
    assert [record["n"] for record in records.values()] == [7, 7, 7, 6, 6, 6]
    assert all(record["ci_low"] <= record["value"] <= record["ci_high"] for record in records.values())


def test_systems_are_ranked_by_what_their_metrics_call_good():
    """Right guesses have no better end, and are good where they are half; Q is good where it is high."""
    cases, rows = [], []
    for scenario, metric, values in (("s", "q", (0.9, 0.7, 0.5)), ("o", "right_guesses", (0.5, 0.6, 0.7))):
        for name, value in zip("abc", values, strict=True):
            cases.append(case(scenario, name))
            rows.append(row(cases[-1], metric, value, attack="phi"))
    numbers = Numbers(rows, cases)
    ranked = [rankings.rank(numbers, (where, ""), metric) for where, metric in (("s", "q"), ("o", "right_guesses"))]
    assert rankings.agreement(*ranked).value == pytest.approx(1.0)
    assert rankings.goodness("privacy_auc", 0.25) == rankings.goodness("privacy_auc", 0.75) < 0
    assert rankings.goodness("leak_at_k_gap", -0.3) < rankings.goodness("leak_at_k_gap", 0.1)
    assert rankings.goodness("tail_advantage", 0.3) < rankings.goodness("tail_advantage", 0.1)


def test_what_cannot_be_ranked_says_why():
    _, records = table(a={"a": 0.1}, b={"a": 0.2}, c={"a": 0.1, "b": 0.1}, d={"a": 0.1, "b": 0.2})
    assert records["b", "a"]["note"] == "fewer than two methods have a number in both scenarios"
    assert records["d", "c"]["note"] == "a rank correlation needs two lists that vary"
