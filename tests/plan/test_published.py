"""Every printed number of the papers has a cell in a table of a study, beside the same experiment or with a remark."""

import csv
import math

import pytest
from unlearning_audit.report.lookup import Cell
from unlearning_audit.report.tables import published

import printed_numbers
from workplace import ROOT

#: Where the experiment beside a printed number differs, in words; of all others no remark may say so.
UNLIKE = {
    "ruli/table_11": "printed for features = embeddings of a vision transformer; measured here for features = "
    "principal components of pixels",
    "competition/text": "printed for faces; measured here for cifar10",
}


@pytest.fixture(scope="module")
def printed_cells():
    """(printed row, remark, case, cell) of every cell of every table of every study, whatever we measure."""
    return [beside for study in printed_numbers.STUDIES for beside in printed_numbers.besides(study)]


@pytest.mark.parametrize("table", printed_numbers.tables())
def test_every_printed_number_has_a_cell(printed_cells, table):
    beside = [row for row, *_ in printed_cells]
    assert [row for row in published.read(published.FILE, table) if row not in beside] == []


def test_a_printed_number_stands_beside_the_same_experiment_or_the_remark_says_how_it_differs(printed_cells):
    for row, remark, case, _ in printed_cells:
        ending = UNLIKE.get(printed_numbers.name_of(row), "")
        if row["metric"] == "label_overlap":
            ending = ""
        assert remark.endswith(ending) if ending else remark == "", (row, case["scenario"], remark)


def test_a_size_takes_the_sign_of_ours():
    place = {"method": "scrub", "setting": "", "metric": "forget_accuracy_gap", "value": 0.1}
    rows = [{"paper": "x", "table": "table_2", "dataset": "d", "model": "m", **place}]
    facts = {"dataset": "d", "model": "m"}
    case = {"protocol": "ruli", "method": "scrub", "plugin": "scrub", "axes": {}, "facts": facts}
    for measured, printed in ((0.2, 0.1), (-0.2, -0.1)):
        cell = Cell(measured, metric="accuracy_gap", where=(("role", "forget"),))
        assert published.beside(rows, case, cell) == (Cell(printed), "printed without its sign")


def test_the_kept_tables_say_which_printed_numbers_agree():
    lines, stale = printed_numbers.agreement(), "write it anew: uv run python tools/printed_numbers.py"
    assert printed_numbers.share(lines) == printed_numbers.SUMS.read_text(encoding="utf-8"), stale
    assert printed_numbers.written(lines) == printed_numbers.KEPT.read_text(encoding="utf-8"), stale


def test_a_kept_table_is_held_against_the_numbers_that_were_printed(tmp_path, monkeypatch):
    """A number that nobody printed, or printed of another metric, is refused; a cell without a number is not
    regenerated."""
    monkeypatch.setattr(printed_numbers, "MEASURED", tmp_path)
    (tmp_path / "printed.csv").write_text("file,printed,size,study,differs\nt.csv,swap/table_1,small,s,\n")
    head = "scenario,setting,method,metric,value,published\n"
    (tmp_path / "t.csv").write_text(f"{head}s,epsilon=50,none,q,0.9,0.972\ns,epsilon=inf,none,q,,0.587\n")
    assert [(one.size, one.row["value"]) for one in printed_numbers.regenerated()] == [("small", 0.972)]
    for metric, number in (("q", "0.973"), ("mia_score", "0.972")):
        (tmp_path / "t.csv").write_text(f"{head}s,epsilon=50,none,{metric},0.9,{number}\n")
        with pytest.raises(ValueError, match=rf"swap/table_1 has no number {number}"):
            printed_numbers.regenerated()


def test_what_was_measured_agrees_with_what_was_printed_as_the_page_says():
    """docs/evidence.md: all in our interval, and below two standard errors by the seeds alone."""
    with (ROOT / "resources/measured/efficacy/table2.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 72
    assert {cell["inside"] for cell in cells} == {"true"}
    gaps = [abs(float(cell["difference"])) for cell in cells]
    errors = [math.hypot(float(cell["sd"]), float(cell["published_sd"])) / math.sqrt(20) for cell in cells]
    rounded = 0.005  # two decimals are printed
    beyond = [max(gap - rounded, 0) / error for gap, error in zip(gaps, errors, strict=True) if error > 1e-9]
    assert round(max(beyond), 1) == 1.4
    assert all(gap <= rounded for gap, error in zip(gaps, errors, strict=True) if error <= 1e-9)
    assert sum(gap <= 0.0151 for gap in gaps) == 56
    assert round(max(gaps), 2) == 0.1
