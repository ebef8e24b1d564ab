"""Tables in long form: a line for each method and place, standard deviations beside means, the paper's beside ours."""

import csv
import math
from pathlib import Path

import pytest
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import formats, grid

from display_cases import case, order, row

FILE = Path(__file__).parents[2] / "resources" / "published" / "published.csv"
ROLES = ["retain", "forget", "test"]
FACTS = {"dataset": "cifar10", "model": "mlp", "target_class": 8}


def study(fractions=("0.01", "1"), names=("none", "fisher", "fisher_becker"), sd=True):
    """(cases, rows): accuracies of .25 on retain, .5 on forget and .26 on test, sd .04, at some fractions."""
    cases, rows = [], []
    for fraction in fractions:
        for name in names:
            entry = case("cifar10", name, {"fraction": fraction}, protocol="efficacy", **FACTS)
            entry["plugin"] = "fisher" if name.startswith("fisher") else name
            if entry["plugin"] == "fisher":
                entry["facts"]["variant"] = "becker" if name == "fisher_becker" else "golatkar"
            cases.append(entry)
            for role, value in zip(ROLES, (0.25, 0.5, 0.26), strict=True):
                rows.append(row(entry, "accuracy", value, value - 0.02, value + 0.02, role=role))
                rows += [row(entry, "accuracy_sd", 0.04, 0.03, 0.06, role=role)] if sd else []
    return cases, rows


def table(cases, rows, **wish):
    request = order(
        cases,
        ["cifar10"],
        metric="accuracy",
        where=[{"role": role} for role in ROLES],
        columns="fraction",
        layout="long",
        **wish,
    )
    (sheet,) = grid.sheets_of(Numbers(rows, cases), request, FILE)
    return sheet


def test_methods_are_sections_and_places_lines():
    sheet = table(*study())
    assert [(line.section, line.label) for line in sheet.lines] == [
        (name, fraction) for name in ("none", "fisher", "fisher becker") for fraction in ("0.01", "1")
    ]
    assert [head.label for head in sheet.heads] == ["role = retain", "role = forget", "role = test"]
    assert sheet.corner == "share of the class"
    assert [cell.text for cell in sheet.lines[0].cells] == ["0.25 ± 0.04", "0.50 ± 0.04", "0.26 ± 0.04"]


def test_what_the_paper_prints_stands_beside():
    """Table 2 of Becker & Liebig (2022): before unlearning, one sample: 0.56 ± 0.08, 0.95 ± 0.22, 0.26 ± 0.02."""
    sheet = table(*study(), published="efficacy/table_2")
    texts = [cell.text for cell in sheet.lines[0].cells]
    assert texts == [
        "0.25 ± 0.04", "0.56 ± 0.08", "−0.31 ∉", "0.50 ± 0.04", "0.95 ± 0.22", "−0.45 ∉", "0.26 ± 0.04", "0.26 ± 0.02",
        "0.00 ∈",
    ]  # fmt: skip
    assert [(head.group, head.label) for head in sheet.heads[3:6]] == [
        ("role = forget", "ours"), ("role = forget", "paper"), ("role = forget", "ours − paper"),
    ]  # fmt: skip
    first = sheet.records[0]
    assert (first["published"], first["published_sd"], first["sd"]) == (0.56, 0.08, 0.04)
    assert first["difference"] == pytest.approx(-0.31)


def test_the_papers_fisher_is_its_own_variant_and_no_other():
    lines = {(line.section, line.label): line for line in table(*study(), published="efficacy/table_2").lines}
    assert lines["fisher becker", "1"].cells[1].text == "0.55 ± 0.10"
    assert lines["fisher", "1"].cells[1].text == "—"
    assert "variant = golatkar" in " ".join(lines["fisher", "1"].cells[1].notes)


def test_a_method_that_a_place_does_not_have_has_no_line_there():
    cases, rows = study()
    fewer = [entry for entry in cases if (entry["method"], entry["axes"]["fraction"]) != ("fisher", "1")]
    sheet = table(fewer, rows)
    assert [(line.section, line.label) for line in sheet.lines][2:4] == [("fisher", "0.01"), ("fisher becker", "0.01")]


def test_the_csv_has_mean_interval_and_both_standard_deviations(tmp_path):
    paths = {kind: tmp_path / f"t.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([table(*study(), published="efficacy/table_2")], **paths)
    with paths["csv"].open(newline="") as file:
        records = list(csv.DictReader(file))
    assert len(records) == 3 * 2 * 3
    first = records[0]
    assert [float(first[name]) for name in ("value", "ci_low", "ci_high", "sd", "published", "published_sd")] == [
        0.25, 0.23, 0.27, 0.04, 0.56, 0.08,
    ]  # fmt: skip
    assert math.isclose(float(first["difference"]), -0.31)
    assert "**fisher becker**" in paths["md"].read_text()
