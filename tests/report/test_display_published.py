"""The right printed number stands beside ours, or none with the reason; standard deviations stand beside means."""

import pytest
from unlearning_audit.evaluation.arrays import ArtifactError
from unlearning_audit.report import words
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import grid, published

from display_cases import case, order, q, row


def cell(value=0.6, metric="q"):
    return Cell(value, value - 0.03, value + 0.03, metric=metric, attack="paper")


def texts(line):
    return [entry.text for entry in line.cells]


def test_a_table_that_nobody_printed_and_a_damaged_file_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no printed table 'swap/table_9'; choose one of .*swap/table_1"):
        published.read(published.FILE, "swap/table_9")
    (tmp_path / "p.csv").write_text("paper,table\nswap,table_1\n")
    with pytest.raises(ArtifactError, match=r"p\.csv"):
        published.read(tmp_path / "p.csv", "swap/table_1")


def test_another_model_or_share_is_shown_with_a_remark_but_another_budget_is_not_shown():
    rows = published.read(published.FILE, "swap/table_1")
    subject = case("s", "none", {"epsilon": "inf"}, model="mlp", dataset="digits", alpha=0.25)
    remark = "printed for cifar10, resnet20, alpha = 0.1; measured here for digits, mlp, alpha = 0.25"
    assert published.beside(rows, subject, cell()) == (Cell(0.587), remark)
    printed, _ = published.beside(rows, case("s", "none", {"epsilon": "8"}), cell())
    assert (printed.empty, printed.note) == (True, "the paper prints no number at epsilon = 8")


def test_equally_good_numbers_that_differ_are_not_chosen_from():
    rows = [
        {"paper": "x", "table": "table_1", "dataset": "cifar10", "model": "resnet18", "method": "scrub",
         "setting": f"target={kind}", "metric": "unlearning_quality", "value": value}
        for kind, value in (("random", 0.5), ("class", 0.6))
    ]  # fmt: skip
    printed, _ = published.beside(rows, case("s", "scrub"), cell())
    assert printed.note == "several printed numbers fit: target=class; target=random"
    assert published.beside(rows[:1], case("s", "scrub"), cell())[0].value == 0.5


@pytest.mark.parametrize(
    ("low", "high", "printed", "is_inside"),
    [(0.90, 0.95, 0.93, True), (0.90, 0.95, 0.96, False), (0.9034, 0.95, 0.903, True), (0.9036, 0.95, 0.903, False)],
)
def test_an_interval_holds_what_rounds_into_it(low, high, printed, is_inside):
    assert published.inside(Cell(0.93, low, high), Cell(printed), 3) is is_inside


# ---------------------------------------------------------------- tables


def test_models_before_unlearning_go_by_two_names_and_their_accuracy_stands_in_the_footer():
    subject = case("s", "none", {"epsilon": "inf"}, model="resnet18_dp")
    rows = [q(subject, 0.587), row(subject, "accuracy", 0.7, 0.68, 0.72, role="test")]
    request = order([subject], ["s"], published="swap/table_1", footer=["accuracy"])
    (table,) = grid.sheets_of(Numbers(rows, [subject]), request)
    assert (texts(table.footer[0]), table.records[-1]["published"]) == (["0.700", "0.660", "+0.040 ∉"], 0.66)


def test_the_table_puts_the_paper_and_the_difference_beside_ours_only_where_it_printed_a_number():
    models = {"8": "resnet20", "50": "resnet18_dp", "inf": "resnet20"}
    cases = [case("s", "fisher", {"epsilon": epsilon}, model=model) for epsilon, model in models.items()]
    numbers = Numbers([q(entry, value) for entry, value in zip(cases, (0.99, 0.98, 0.6), strict=True)], cases)
    (table,) = grid.sheets_of(numbers, order(cases, ["s"], columns="epsilon", published="swap/table_1"))
    assert [head.label for head in table.heads] == ["ours"] + ["ours", "paper", "ours − paper"] * 2
    assert table.heads[0].notes == (words.UNPRINTED,)
    assert texts(table.lines[0])[2:4] + texts(table.lines[0])[5:] == ["0.973", "+0.007 ∈", "0.709", "−0.109 ∉"]
    assert [entry.tone for entry in table.lines[0].cells] == ["", "", "", "good", "", "", "bad"]
    assert [record["inside"] for record in table.records] == ["", "true", "false"]
    assert table.records[2]["difference"] == pytest.approx(-0.109)


def test_in_long_form_methods_are_sections_and_the_paper_stands_beside_means_and_deviations():
    """Table 2 of Becker & Liebig (2022), one sample: 0.56 ± 0.08, 0.95 ± 0.22, 0.26 ± 0.02 before unlearning. Its
    Fisher is its own variant. Golatkar's is missing at the second place, and so is its line."""
    cases, rows = [], []
    roles = {"retain": 0.25, "forget": 0.5, "test": 0.26}
    for fraction in ("0.01", "1"):
        for name, variant in (("none", {}), ("fisher", {"variant": "golatkar"}), ("becker", {"variant": "becker"})):
            facts = {"dataset": "cifar10", "model": "mlp", "target_class": 8, **variant}
            entry = case("cifar10", name, {"fraction": fraction}, protocol="efficacy", **facts)
            cases.append(entry | {"plugin": "fisher" if variant else name})
            for role, value in roles.items():
                rows.append(row(entry, "accuracy", value, value - 0.02, value + 0.02, role=role))
                rows.append(row(entry, "accuracy_sd", 0.04, 0.03, 0.06, role=role))
    cases.pop(4)
    request = order(cases, ["cifar10"], metric="accuracy", where=[{"role": role} for role in roles],
                    columns="fraction", layout="long", published="efficacy/table_2")  # fmt: skip
    (sheet,) = grid.sheets_of(Numbers(rows, cases), request)
    lines = {(line.section, line.label): line for line in sheet.lines}
    assert list(lines) == [("none", "0.01"), ("none", "1"), ("fisher", "0.01"), ("becker", "0.01"), ("becker", "1")]
    assert sheet.corner == "share of the class"
    assert [(head.group, head.label) for head in sheet.heads] == [
        (f"role = {role}", label) for role in roles for label in ("ours", "paper", "ours − paper")
    ]
    assert texts(sheet.lines[0]) == [
        "0.25 ± 0.04", "0.56 ± 0.08", "−0.31 ∉", "0.50 ± 0.04", "0.95 ± 0.22", "−0.45 ∉", "0.26 ± 0.04", "0.26 ± 0.02",
        "0.00 ∈",
    ]  # fmt: skip
    numbers = [sheet.records[0][name] for name in ("value", "ci_low", "ci_high", "sd", "published", "published_sd")]
    assert numbers == [0.25, 0.23, 0.27, 0.04, 0.56, 0.08]
    assert texts(lines["becker", "1"])[1] == "0.55 ± 0.10"
    (entry,) = lines["fisher", "0.01"].cells[1:2]
    assert (entry.text, "variant = golatkar" in entry.notes[0]) == ("—", True)
    request["table"]["published"] = None
    (sheet,) = grid.sheets_of(Numbers(rows, cases), request)
    assert [head.label for head in sheet.heads] == [f"role = {role}" for role in roles]
