"""The right printed number stands beside ours, or none with the reason."""

from pathlib import Path

import pytest
from unlearning_audit.evaluation.arrays import ArtifactError
from unlearning_audit.report import words
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import grid, published

from display_cases import case, order, q, row

FILE = Path(__file__).resolve().parents[2] / "resources" / "published" / "published.csv"


def cell(value=0.6, metric="q", attack="paper", **place):
    return Cell(value, value - 0.03, value + 0.03, metric=metric, attack=attack, where=tuple(place.items()))


def test_a_table_that_nobody_printed_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match=r"there is no printed table 'swap/table_9'; choose one of .*swap/table_1"):
        published.read(FILE, "swap/table_9")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("paper,table\nswap,table_1\n")
    with pytest.raises(ArtifactError, match=r"p\.csv"):
        published.read(path, "swap/table_1")


def test_every_printed_q_of_table_1_is_found_by_its_method_and_budget():
    rows = published.read(FILE, "swap/table_1")
    for printed in (r for r in rows if r["metric"] == "unlearning_quality"):
        epsilon = printed["setting"].split(";")[0].split("=")[1]
        subject = case("s", printed["method"], {"epsilon": epsilon}, model=printed["model"], delta=1e-5)
        assert published.beside(rows, subject, cell()) == (Cell(printed["value"]), "")


def test_another_model_or_share_is_shown_with_a_remark_but_another_budget_is_not_shown():
    rows = published.read(FILE, "swap/table_1")
    subject = case("s", "none", {"epsilon": "inf"}, model="mlp", dataset="digits", alpha=0.25)
    printed, remark = published.beside(rows, subject, cell())
    assert printed.value == 0.587
    assert remark == "printed for cifar10, resnet20, alpha = 0.1; measured here for digits, mlp, alpha = 0.25"
    printed, _ = published.beside(rows, case("s", "none", {"epsilon": "8"}), cell())
    assert printed.empty
    assert "epsilon = 8" in printed.note


def test_equally_good_numbers_that_differ_are_not_chosen_from():
    rows = [
        {"paper": "x", "table": "table_1", "dataset": "cifar10", "model": "resnet18", "method": "scrub",
         "setting": f"target={kind}", "metric": "unlearning_quality", "value": value}
        for kind, value in (("random", 0.5), ("class", 0.6))
    ]  # fmt: skip
    printed, _ = published.beside(rows, case("s", "scrub"), cell())
    assert "several printed numbers fit: target=class; target=random" in printed.note
    assert published.beside(rows[:1], case("s", "scrub"), cell())[0].value == 0.5


def test_the_standard_deviation_is_that_of_the_protocol():
    rows = published.read(FILE, "swap/table_2")
    for protocol, value in (("swap", 0.015), ("random_splits", 0.029)):
        subject = case("s", "ftfinal", protocol=protocol, model="resnet20")
        assert published.beside(rows, subject, cell(metric="q_sd"))[0].value == value


def test_models_before_unlearning_go_by_two_names_and_their_accuracy_stands_in_the_footer():
    subject = case("s", "none", {"epsilon": "inf"}, model="resnet18_dp")
    rows = [q(subject, 0.587), row(subject, "accuracy", 0.7, 0.68, 0.72, role="test")]
    request = order([subject], ["s"], published="swap/table_1", footer=["accuracy"])
    table = grid.sheets_of(Numbers(rows, [subject]), request, FILE)[0]
    assert [entry.text for entry in table.footer[0].cells] == ["0.700", "0.660", "+0.040 ∉"]
    assert table.records[-1]["published"] == 0.66


@pytest.mark.parametrize(
    ("low", "high", "printed", "is_inside"),
    [(0.90, 0.95, 0.93, True), (0.90, 0.95, 0.96, False), (0.9034, 0.95, 0.903, True), (0.9036, 0.95, 0.903, False)],
)
def test_an_interval_holds_what_rounds_into_it(low, high, printed, is_inside):
    assert published.inside(Cell(0.93, low, high), Cell(printed), 3) is is_inside


def test_the_table_puts_the_paper_and_the_difference_beside_ours_only_where_it_printed_a_number():
    cases = [
        case("s", "fisher", {"epsilon": e}, model="resnet18_dp" if e == "50" else "resnet20")
        for e in ("8", "50", "inf")
    ]
    numbers = Numbers([q(cases[0], 0.99), q(cases[1], 0.98), q(cases[2], 0.6)], cases)
    table = grid.sheets_of(numbers, order(cases, ["s"], columns="epsilon", published="swap/table_1"), FILE)[0]
    assert [head.label for head in table.heads] == ["ours"] + ["ours", "paper", "ours − paper"] * 2
    assert table.heads[0].notes == (words.UNPRINTED,)
    texts = [entry.text for entry in table.lines[0].cells]
    assert texts[2:4] == ["0.973", "+0.007 ∈"]
    assert texts[5:7] == ["0.709", "−0.109 ∉"]
    assert [entry.tone for entry in table.lines[0].cells] == ["", "", "", "good", "", "", "bad"]
    assert [record["inside"] for record in table.records] == ["", "true", "false"]
    assert table.records[2]["difference"] == pytest.approx(-0.109)
