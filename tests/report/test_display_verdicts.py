"""The headline, the ledger and the union say what the numbers say, and nothing more."""

import csv

import pytest
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables import cost, headline, union
from unlearning_audit.store import tables
from unlearning_audit.store.files import write_spec

from display_cases import REASON, case, q, row, study

CASES, ROWS = study()
ORDER = {"name": "headline", "title": "Study s", "table": None, "cases": CASES, "caption": ""}


# ---------------------------------------------------------------- headline


def test_the_headline_has_one_table_per_protocol_with_the_numbers_that_it_gives():
    confused = case("c", "none", protocol="interclass_confusion")
    numbers = Numbers([*ROWS, row(confused, "ic_score", 0.5, 0.4, 0.6)], [*CASES, confused])
    swap, confusion = headline.sheets(numbers, ORDER)
    assert [head.label for head in swap.heads] == ["Q", "test"]
    assert [head.label for head in confusion.heads] == ["IC score"]
    failed = next(line for line in swap.lines if line.label == "neggrad")
    assert failed.notes == (headline.DIVERGED, REASON)
    assert {cell.text for cell in failed.cells} == {"model damaged"}
    assert {record["note"] for record in swap.records if record["method"] == "neggrad"} == {f"model damaged; {REASON}"}


# ---------------------------------------------------------------- ledger


def spec(path, seconds, models=0, unlearn=None, device="cpu"):
    facts = {"seconds": {"function": seconds, "process": seconds / 2}, "peak_memory_mib": 100, "models": models,
             "machine": {"device": device}}  # fmt: skip
    write_spec(path, facts | ({} if unlearn is None else {"unlearn_seconds": unlearn}))
    return str(path)


def test_unlearning_is_compared_with_retraining_model_by_model(tmp_path):
    jobs = [("train", "t-0", 9.0, 4, None), ("unlearn", "r-1", 8.0, 4, 8.0), ("unlearn", "f-2", 1.0, 2, 0.5),
            ("unlearn", "f-3", 1.0, 2, 0.5)]  # fmt: skip
    nodes = [
        {"stage": stage, "node": name, "spec": spec(tmp_path / stage / name / "spec.json", seconds, models, unlearn)}
        for stage, name, seconds, models, unlearn in jobs
    ]
    rows = cost.rows(nodes)
    cases = [
        {**case("s", method), "specs": [nodes[i]["spec"] for i in places]}
        for method, places in (("none", [0]), ("retrain", [1]), ("finetune", [2, 3]))
    ]
    assert cost.ratios(rows, cases) == {
        ("s", "", "none"): (0.0, 0.0), ("s", "", "retrain"): (2.0, 1.0), ("s", "", "finetune"): (0.25, 0.125)
    }  # fmt: skip
    by_stage = cost.stages(rows)
    assert (by_stage["unlearn"]["jobs"], by_stage["unlearn"]["models"], by_stage["unlearn"]["seconds"]) == (3, 8, 10.0)
    stages, methods = cost.sheets(rows, {"cases": cases})
    assert [cell.text for cell in stages.footer[0].cells][:3] == ["4", "", "19 s"]
    assert [line.cells[0].text for line in methods.lines] == ["0.00 ×", "0.12 ×", "1.00 ×"]
    tables.write_rows(tmp_path / "cost.csv", rows, cost.COLUMNS)
    assert cost.read(tmp_path / "cost.csv") == rows


# ---------------------------------------------------------------- union


def test_the_union_keeps_study_order_and_has_a_column_for_every_axis(tmp_path):
    cases = []
    same = Row("unchanged", 1.0, n=1, note="identical")
    for method, more in (("scrub", []), ("ssd", [same]), ("none", [same])):
        path = tmp_path / method / "metrics.csv"
        rows_of.write(path, [Row("accuracy", 0.1 + 0.2, n=3, role="test"), *more])
        cases.append({**case("s", method, {"epsilon": "8"}), "metrics": str(path)})
    rows = union.records(cases)
    assert [(r.method, r.row.metric) for r in rows] == [
        ("scrub", "accuracy"), ("ssd", "accuracy"), ("ssd", "unchanged"), ("none", "accuracy")
    ]  # fmt: skip
    assert {(r.axes["epsilon"], r.row.role) for r in rows} == {("8", "test"), ("8", "")}
    assert rows[2].row.value == 1.0
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    for path in (first, second):
        rows_of.write_union(path, "study", union.records(cases))
    assert first.read_bytes() == second.read_bytes()
    line = next(csv.DictReader(first.open()))
    assert (float(line["value"]), line["axis_epsilon"], line["role"]) == (0.1 + 0.2, "8", "test")
    assert repr(rows_of.read_union(first)) == repr(rows)


@pytest.mark.parametrize(("half", "expected"), [(0.05, "retrain_control"), (0.3, "retrain")])
def test_the_yardstick_is_the_control_unless_it_is_measured_much_worse(half, expected):
    cases = [case("s", name) for name in ("retrain", "retrain_control")]
    rows = [q(cases[0], 0.7, 0.04), q(cases[1], 0.7, half)]
    assert sentences.yardstick(Numbers(rows, cases), ("s", ""))[0] == expected


# ---------------------------------------------------------------- time


def test_who_takes_more_than_a_fifth_of_retraining_is_marked_and_no_score_knows(tmp_path):
    seconds = {"retrain": 10.0, "quick": 1.9, "slow": 2.1, "retrain_control": 10.0}
    nodes = [
        {
            "stage": "unlearn",
            "node": f"{name}-1",
            "spec": spec(tmp_path / "unlearn" / f"{name}-1" / "spec.json", 9, 1, s),
        }
        for name, s in seconds.items()
    ]
    cases = [{**case("s", name), "specs": [node["spec"]]} for name, node in zip(seconds, nodes, strict=True)]
    sheet = cost.sheets(cost.rows(nodes), {"cases": cases})[1]
    cells = {line.label: line.cells[0] for line in sheet.lines}
    assert (cells["slow"].text, cells["slow"].tone, cells["slow"].notes) == ("0.21 ×", "bad", (cost.SLOW,))
    assert "20% of the time of retraining" in cost.SLOW
    assert [cells[name].notes for name in ("quick", "retrain", "retrain (control)")] == [(), (), ()]
    flags = {record["method"]: (record["to_retrain"], record["over_limit"]) for record in sheet.records}
    assert flags["slow"] == (pytest.approx(0.21), "yes")
    assert {flags[name][1] for name in ("quick", "retrain", "retrain_control")} == {"no"}
