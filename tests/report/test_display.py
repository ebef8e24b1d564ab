"""Numbers find their cell, empty cells say why, and every format says the same without being read as markup."""

import math
import re

import pytest
from unlearning_audit.report.lookup import Cell, Numbers
from unlearning_audit.report.tables import formats, grid, headline, typeset
from unlearning_audit.study.schema import Margins

from decision_cases import decisions_on, rows, write_decisions
from display_cases import REASON, case, order, q, row, study

CASES, ROWS = study()
NUMBERS = Numbers(ROWS, CASES)


def sheet_of(scenarios, **changes):
    request = order(CASES, scenarios, **changes)
    return grid.sheet(NUMBERS.narrowed(request["cases"]), request, [])


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
    assert (cell.empty, cell.note[: len(reason)]) == (True, reason)


# ---------------------------------------------------------------- numbers as text


@pytest.mark.parametrize(("width", "places"), [(0.4, 2), (0.02, 2), (0.009, 3), (0.0008, 4), (0.00001, 4)])
def test_decimals_follow_the_width_of_the_intervals(width, places):
    assert typeset.decimals([Cell(0.5, 0.5 - width / 2, 0.5 + width / 2)]) == places


def test_values_that_span_orders_of_magnitude_have_two_significant_digits_each():
    cells = [Cell(v, v / 2, 2 * v, metric="efficacy_median") for v in (806.4, 1.44, 0.00237, 0.0996)]
    places = typeset.decimals(cells)
    assert places == typeset.SIGNIFICANT
    texts = [typeset.interval(cell, places) for cell in cells]
    assert texts == ["806 [403, 1613]", "1.4 [0.72, 2.9]", "0.0024 [0.0012, 0.0047]", "0.10 [0.050, 0.20]"]


@pytest.mark.parametrize(
    ("places", "texts"),
    [
        (2, {0.125: "0.12", -0.5: "−0.50", -0.001: "0.00", math.inf: "∞", -math.inf: "−∞", 1.5e7: "1.50e+07"}),
        (typeset.SIGNIFICANT, {0.0: "0", 9.96: "10", 1e-7: "1.0e−07", 1e13: "1.0e+13", -0.031: "−0.031"}),
    ],
)
def test_numbers_as_text(places, texts):
    assert {value: typeset.number(value, places) for value in texts} == texts


# ---------------------------------------------------------------- tables


def test_a_table_has_a_line_for_every_method_and_marks_what_failed_or_did_nothing():
    lines = {line.label: (line.cells[0].text, line.cells[0].notes) for line in sheet_of(["plain"]).lines}
    assert list(lines) == ["none", "finetune", "scrub", "ssd", "neggrad", "retrain", "retrain (control)"]
    assert lines["none"] == ("0.60 [0.57, 0.63]", ())
    assert lines["ssd"] == ("0.60 [0.57, 0.63]", (typeset.UNCHANGED,))
    assert lines["neggrad"] == ("model damaged", (REASON,))


def test_an_axis_gives_one_column_for_each_value_and_the_footer_speaks_for_each():
    table = sheet_of(["budget"], columns="epsilon", footer=["accuracy", "lower_bound"])
    assert [head.label for head in table.heads] == ["8", "∞"]
    assert [[cell.text for cell in line.cells] for line in table.footer] == [["0.50", "0.50"], ["—", "—"]]
    notes = [cell.notes[0] for cell in table.footer[1].cells]
    assert notes == ["the guarantee says nothing at such a large ε",
                     "trained without differential privacy, so nothing is guaranteed"]  # fmt: skip


def test_the_guarantee_is_the_corollarys_where_it_says_something():
    entry = case("s", "none", epsilon=0.5, delta=1e-5)
    request = order([entry], ["s"], footer=["lower_bound"])
    record = grid.sheet(Numbers([q(entry, 0.9)], [entry]), request, []).records[-1]
    assert record["value"] == pytest.approx((4 - 4e-5) / (math.exp(0.5) + 1) - 1, rel=1e-12)


def test_the_headline_has_one_table_per_protocol_with_the_numbers_that_it_gives():
    confused = case("c", "none", protocol="interclass_confusion")
    numbers = Numbers([*ROWS, row(confused, "ic_score", 0.5, 0.4, 0.6)], [*CASES, confused])
    swap, confusion = headline.sheets(numbers, {"title": "Study s", "cases": CASES})
    assert [[head.label for head in sheet.heads] for sheet in (swap, confusion)] == [["Q", "test"], ["IC score"]]
    failed = next(line for line in swap.lines if line.label == "neggrad")
    assert (failed.notes, {cell.text for cell in failed.cells}) == ((typeset.DIVERGED, REASON), {"model damaged"})
    assert {record["note"] for record in swap.records if record["method"] == "neggrad"} == {f"model damaged; {REASON}"}


@pytest.mark.parametrize(
    ("margins", "loss"),
    [({}, ("more than 10 points below that of retraining", "more than 1.25 times")),
     ({"broken_accuracy": 0.3, "broken_perplexity": 2.0}, ("more than 30 points below", "more than 2 times"))],
)  # fmt: skip
def test_the_footnote_of_broken_models_says_beyond_which_loss_a_study_calls_them_so(margins, loss, tmp_path):
    place, cases = ("s", ""), [case("s", name) for name in ("none", "neggrad")]
    judged = decisions_on(place, rows("none", "distinguishable", 0.4), rows("neggrad", "broken", 0.1, gap=0.4))
    request = {"title": "s", "comparisons": [write_decisions(tmp_path, judged, place)],
               "margins": Margins(**margins).model_dump(mode="json")}  # fmt: skip
    (sheet,) = headline.sheets(Numbers([q(entry, 0.9) for entry in cases], cases), request)
    assert all(words in dict(sheet.explained())[typeset.BROKEN] for words in loss)


# ---------------------------------------------------------------- formats


NASTY = r"50% & $x$ #1 _a_ {b} ~c^ <b>d</b> \e | [f](g) *h* `i`"


def test_nothing_in_a_title_or_name_is_read_as_markup():
    entry = case("s", NASTY)
    sheet = grid.sheet(Numbers([q(entry, 0.5)], [entry]), order([entry], ["s"], title=NASTY), [])
    caption = next(line for line in formats.rendered(sheet, "tex").splitlines() if line.startswith(r"\caption"))
    inner = caption.removeprefix(r"\caption{").removesuffix("}")
    escapes = r"\\text(backslash|ascii(tilde|circum)|less|greater|bar)\{\}|\\[&%$#_{}]"
    assert not re.search(r"[&%#_{}~^\\$]", re.sub(escapes, "", inner))
    text = formats.rendered(sheet, "md")
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")} == {3}
    assert [part in text for part in ("<b>", "[f](", "&lt;b&gt;")] == [False, False, True]


def test_latex_tables_have_the_same_number_of_columns_in_every_row():
    text = formats.rendered(sheet_of(["plain", "budget"], footer=["accuracy"]), "tex")
    counts = set()
    for line in text[text.index(r"\toprule") : text.index(r"\bottomrule")].splitlines():
        if line.endswith(r"\\"):
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
            counts.add(len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans))
    assert counts == {4}


def test_every_footnote_is_explained_once_and_every_mark_is_one_of_them():
    text, latex = (formats.rendered(sheet_of(["plain"]), ending) for ending in ("md", "tex"))
    assert [each.count(REASON.split(":")[0].replace("_", "\\_")) for each in (text, latex)] == [1, 1]
    marks = re.findall(r"<sup>(.+?)</sup>", "".join(re.findall(r"(?m)^\|.*", text)))
    explained = re.findall(r"^<sup>(.+?)</sup>", text, re.M)
    assert typeset.UNCHANGED in {mark for several in marks for mark in several.split()} == {*explained}
    notes = ("nothing at ε = 0.5 of 3", "nothing else", "nothing at ε = 20 of 3")  # those that differ in one number
    cells = [typeset.Entry("", (note,)) for note in notes]
    sheet = typeset.Sheet("t", "t", "", "m", [typeset.Head("")] * 3, [typeset.Line("", cells)])
    assert sheet.explained() == [("a", "nothing at ε = 0.5 to 20 of 3"), ("b", "nothing else")]
