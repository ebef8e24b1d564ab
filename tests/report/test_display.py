"""Numbers find their cell, empty cells say why, and every format says the same without being read as markup."""

import csv
import math
import re

import pytest
from unlearning_audit.report import words
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import formats, grid, headline, typeset
from unlearning_audit.study.schema import Margins

from decision_cases import decisions_on, rows, write_decisions
from display_cases import REASON, case, order, q, study

CASES, ROWS = study()
NUMBERS = Numbers(ROWS, CASES)


def sheet_of(scenarios, printed=(), **changes):
    request = order(CASES, scenarios, **changes)
    return grid.sheet(NUMBERS.narrowed(request["cases"]), request, list(printed))


# ---------------------------------------------------------------- finding


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"metric": "auc"}, "protocol swap gives no AUC"),
        ({"metric": "q", "attack": "lira/trained"}, "there is no attack lira/trained here, only adaptive, extended"),
        ({"metric": "accuracy", "role": "forget"}, "there is no role = forget; choose one with where: role = test"),
    ],
)
def test_an_empty_cell_says_why(query, reason):
    cell = NUMBERS.cell(CASES[0], **query)
    assert cell.empty
    assert reason in cell.note


def test_a_failed_method_is_empty_everywhere_with_its_reason_and_an_unchanged_one_is_flagged():
    failed = next(c for c in CASES if c["method"] == "neggrad")
    unchanged = next(c for c in CASES if c["method"] == "ssd")
    for metric in ("q", "accuracy", "auc"):
        cell = NUMBERS.cell(failed, metric)
        assert (cell.empty, cell.flag, cell.note) == (True, words.DAMAGED.word, REASON)
    assert NUMBERS.cell(unchanged, "q").flag == "unchanged"
    assert [cell.value for cell in NUMBERS.pairs(unchanged, "q")] == pytest.approx([0.59, 0.6, 0.61])


# ---------------------------------------------------------------- numbers as text


@pytest.mark.parametrize(("width", "places"), [(0.4, 2), (0.06, 2), (0.02, 2), (0.009, 3), (0.0008, 4), (0.00001, 4)])
def test_decimals_follow_the_width_of_the_intervals(width, places):
    assert typeset.decimals([Cell(0.5, 0.5 - width / 2, 0.5 + width / 2)]) == places


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.125, "0.12"), (-0.5, "−0.50"), (-0.001, "0.00"), (math.inf, "∞"), (-math.inf, "−∞"), (1.5e7, "1.50e+07"),
     (2e-6, "0.00"), (-1e-17, "0.00"), (3e6, "3.00e+06")],
)  # fmt: skip
def test_numbers_as_text(value, text):
    assert typeset.number(value, 2) == text


# ---------------------------------------------------------------- tables


def test_a_table_has_a_line_for_every_method_and_marks_what_failed_or_did_nothing():
    lines = {line.label: line.cells[0] for line in sheet_of(["plain"]).lines}
    assert list(lines) == ["none", "finetune", "scrub", "ssd", "neggrad", "retrain", "retrain (control)"]
    assert lines["none"].text == "0.60 [0.57, 0.63]"
    assert lines["ssd"].notes == (typeset.UNCHANGED,)
    assert lines["neggrad"].text == "model damaged"
    assert lines["neggrad"].notes == (REASON,)


@pytest.mark.parametrize(
    ("margins", "words"),
    [({}, ("more than 10 points below that of retraining", "more than 1.25 times")),
     ({"broken_accuracy": 0.3, "broken_perplexity": 2.0}, ("more than 30 points below", "more than 2 times"))],
)  # fmt: skip
def test_the_footnote_of_broken_models_says_beyond_which_loss_a_study_calls_them_so(margins, words, tmp_path):
    place, cases = ("s", ""), [case("s", name) for name in ("none", "neggrad")]
    judged = decisions_on(place, rows("none", "distinguishable", 0.4), rows("neggrad", "broken", 0.1, gap=0.4))
    order = {"title": "s", "table": None, "cases": cases, "comparisons": [write_decisions(tmp_path, judged, place)],
             "margins": Margins(**margins).model_dump(mode="json")}  # fmt: skip
    numbers = Numbers([q(entry, 0.9) for entry in cases], cases)
    (sheet,) = headline.sheets(numbers, order)
    sentence = dict(sheet.explained())[typeset.BROKEN]
    assert all(word in sentence for word in words)


def test_an_axis_gives_one_column_for_each_value_and_the_footer_speaks_for_each():
    table = sheet_of(["budget"], columns="epsilon", footer=["accuracy", "lower_bound"])
    assert [head.label for head in table.heads] == ["8", "∞"]
    accuracy, bound = table.footer
    assert [cell.text for cell in accuracy.cells] == ["0.50", "0.50"]
    assert [cell.text for cell in bound.cells] == ["—", "—"]
    assert "large ε" in bound.cells[0].notes[0]
    assert "without differential privacy" in bound.cells[1].notes[0]


def test_the_guarantee_is_the_corollarys_where_it_says_something():
    entry = case("s", "none", epsilon=0.5, delta=1e-5)
    request = order([entry], ["s"], footer=["lower_bound"])
    table = grid.sheet(Numbers([q(entry, 0.9)], [entry]), request, [])
    record = table.records[-1]
    assert record["metric"] == "lower_bound"
    assert record["value"] == pytest.approx((4 - 4e-5) / (math.exp(0.5) + 1) - 1, rel=1e-12)


def test_the_csv_has_every_number_in_full(tmp_path):
    files = {kind: tmp_path / f"t.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([sheet_of(["plain"])], **files)
    rows = list(csv.DictReader(files["csv"].open()))
    assert [r["method"] for r in rows][:2] == ["none", "finetune"]
    assert float(rows[0]["ci_low"]) == 0.6 - 0.03
    assert rows[4]["value"] == ""
    assert rows[4]["note"].startswith("model damaged; results/")
    first = {kind: path.read_bytes() for kind, path in files.items()}
    formats.write([sheet_of(["plain"])], **files)
    assert first == {kind: path.read_bytes() for kind, path in files.items()}


# ---------------------------------------------------------------- markup


NASTY = r"50% & $x$ #1 _a_ {b} ~c^ <b>d</b> \e | [f](g) *h* `i`"


def nasty():
    entry = case("s", NASTY.replace("=", ""))
    return grid.sheet(Numbers([q(entry, 0.5)], [entry]), order([entry], ["s"], title=NASTY), [])


def test_nothing_in_a_title_or_name_is_read_as_latex():
    text = formats.latex(nasty())
    caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
    inner = caption.removeprefix(r"\caption{").removesuffix("}")
    escapes = (
        r"\\textbackslash\{\}|\\textasciitilde\{\}|\\textasciicircum\{\}|\\textless\{\}|\\textgreater\{\}|\\textbar\{\}"
    )
    assert not re.search(r"[&%#_{}~^\\]|(?<!\\)\$", re.sub(rf"{escapes}|\\[&%$#_{{}}]", "", inner))


def test_latex_tables_have_the_same_number_of_columns_in_every_row():
    text = formats.latex(sheet_of(["plain", "budget"], footer=["accuracy"]))
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    counts = set()
    for line in rows:
        spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
        counts.add(len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans))
    assert counts == {4}
    assert {r"\toprule", r"\midrule", r"\bottomrule"} <= set(text.splitlines())


def test_nothing_in_a_name_breaks_a_markdown_row_or_becomes_html():
    lines = [line for line in formats.markdown(nasty()).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    text = formats.markdown(nasty())
    assert "<b>" not in text
    assert "[f](" not in text
    assert "&lt;b&gt;" in text


def test_every_footnote_is_explained_once_and_every_mark_is_one_of_them():
    for text in (formats.markdown(sheet_of(["plain"])), formats.latex(sheet_of(["plain"]))):
        assert text.count(REASON.split(":")[0].replace("_", "\\_")) == 1
    text = formats.markdown(sheet_of(["plain"]))
    explained = re.findall(r"^<sup>(.+?)</sup>", text, re.M)
    used = {
        mark
        for marks in re.findall(r"(?m)^\|.*", text)
        for m in re.findall(r"<sup>(.+?)</sup>", marks)
        for mark in m.split()
    }
    assert used == set(explained)
    assert typeset.UNCHANGED in used


# ---------------------------------------------------------------- orders of magnitude


def test_values_that_span_orders_of_magnitude_have_two_significant_digits_each():
    from unlearning_audit.report.tables.typeset import SIGNIFICANT, decimals, finer, interval, number

    cells = [Cell(v, v / 2, 2 * v, metric="efficacy_median") for v in (806.4, 1.44, 0.00237, 0.0996)]
    places = decimals(cells)
    assert places == finer(places, 2) == SIGNIFICANT
    assert [interval(cell, places) for cell in cells] == [
        "806 [403, 1613]", "1.4 [0.72, 2.9]", "0.0024 [0.0012, 0.0047]", "0.10 [0.050, 0.20]",
    ]  # fmt: skip
    texts = [number(value, places) for value in (0.0, 9.96, 1e-7, 1e13, math.inf, -0.031)]
    assert texts == ["0", "10", "1.0e−07", "1.0e+13", "∞", "−0.031"]
    assert decimals([Cell(0.5, 0.4, 0.6, metric="q")]) == 2
