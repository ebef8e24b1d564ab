"""Verdicts as people read them: sentences, controls, tables, figures, and the line at the end of a run."""

import math

import pytest
from unlearning_audit.comparisons import distances, sensitivity
from unlearning_audit.comparisons.planning import TRAINING_SEEDS
from unlearning_audit.comparisons.sensitivity import FAR_NONE
from unlearning_audit.report import answer, decisions, ending
from unlearning_audit.report.figures import _verdicts
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables import formats, verdicts
from unlearning_audit.store.files import ArtifactError

from decision_cases import GOOD, decisions_on, need, rows, write_decisions
from display_cases import case, q, study

PLACE = ("s", "")
CASES = [case("s", name) for name in ("none", "retrain", "retrain_control", "x")]
NUMBERS = Numbers([q(entry, 0.9) for entry in CASES], CASES)


def sentence_on(line, **more):
    """The sentence on method x beside good references."""
    return sentences.method(NUMBERS, decisions_on(PLACE, *GOOD, line, **more).at(PLACE), CASES[-1])


FEWER = "over-unlearned, forgotten samples look less familiar than samples never seen: advantage (kde, trained)"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rows("x", "distinguishable", 0.2, share=0.5),
         "traces remain: advantage (kde, trained) 0.20 [0.18, 0.22], "
         "p < 10⁻⁴; removes 50 % [40, 60] of what doing nothing leaves"),
        (rows("x", "distinguishable", 0.4, share=0.0, against="like"),
         "traces remain: advantage (kde, trained) 0.40 "
         "[0.38, 0.42], p < 10⁻⁴; not distinguishable from doing nothing"),
        (rows("x", "distinguishable", 0.6, share=-0.5, against="worse", p=0.003),
         "traces remain: advantage (kde, trained) 0.60 [0.58, 0.62], p = 0.003; worse than doing nothing"),
        (rows("x", "equivalent", 0.01, p=1.0, share=0.97),
         "like retraining within 0.05: advantage (kde, trained) 0.01 "
         "[−0.01, 0.03] from retraining; removes 97 % [87, 107] of what doing nothing leaves"),
        (rows("x", "over_unlearned", -0.2, share=1.5),
         f"{FEWER} −0.20 [−0.22, −0.18], p < 10⁻⁴; better than doing nothing"),
        (rows("x", "over_unlearned", -0.2, against="like"), f"{FEWER} −0.20 [−0.22, −0.18], p < 10⁻⁴; neither shown to "
         "be nearer to retraining than doing nothing nor further, but in the opposite direction"),
        (rows("x", "broken", 0.0, p=1.0, gap=0.2, share=1.0), "model damaged: retain accuracy is 20 "
         "[18, 22] points below that of retraining, test accuracy is 20 [18, 22] points below that of retraining; "
         "removes 100 % [90, 110] of what doing nothing leaves"),
        (rows("x", "inconclusive", 0.03, 0.05, p=0.4, note="not shown to be within the margin: accuracy_test"),
         "cannot tell: advantage (kde, trained) 0.03 [−0.02, 0.08] from retraining, p = 0.4; not shown to be within "
         "the margin: test accuracy"),
    ],
)  # fmt: skip
def test_every_class_has_its_sentence_with_the_numbers_it_rests_on(line, text):
    assert sentence_on(line) == text


def test_a_plan_is_said_once_with_its_cost_and_without_what_else_was_noted():
    find = "4 blocks or 3 models per split find it"
    limits = (f"if its distance is the {end} limit of the interval, {find}" for end in ("upper", "lower"))
    note = "; ".join(["not shown: advantage", *limits])
    line = rows("x", "inconclusive", 0.03, 0.05, p=0.4, note=f"{note}; the share has no interval")
    needs = [need("x", "decides_pairs", 3.0, units=4.0, unit="blocks")]
    judged = decisions_on(PLACE, *GOOD, line, needs=needs, spent=1800.0).at(PLACE)
    plan = f"if its distance is either limit of the interval, {find}, which takes about 60 min more"
    row = judged.verdicts["x"]
    assert verdicts.decides(judged, "x") == plan
    assert verdicts.why(judged, "x") == f"not shown: advantage; {plan}; the share has no interval"
    for nothing in ("neither more pairs nor more models would decide", note.replace(find, "this size finds it")):
        row["note"] = nothing
        assert "takes" not in verdicts.why(judged, "x")
    row["note"] = note.replace("4 blocks", "9 blocks", 1)
    upper, lower = verdicts.decides(judged, "x").split("; ")
    assert ("upper limit of the interval, 9" in upper, "lower limit of the interval, 4" in lower) == (True, True)


def test_no_rounding_contradicts_a_verdict():
    """What lies within the margin is printed so, and a p-value on its side of 0.05."""
    for margin, distance, half, text in (
        (0.0035, 0.0005, 0.0015, "within 0.0035: advantage (kde, trained) 0.0005 [−0.0010, 0.0020]"),
        (0.0139, 0.008, 0.00585, "within 0.014: advantage (kde, trained) 0.008 [0.002, 0.014]"),
    ):
        line = rows("x", "equivalent", distance, half, p=1.0, margin_far=-margin, margin_near=margin)
        assert text in sentence_on(line)
    for factor in (1.25, 1.05, 1.0035):
        _, (row, *_) = rows("x", "equivalent", 0.0, 0.001, scale="log", margin_near=math.log(factor))
        assert decisions.margin(row) == f"a factor of {factor}"
    texts = {0.0499: "0.0499", 0.05: "0.05", 0.0501: "0.0501", 0.04996: "0.04996", 0.0512: "0.051", 0.003: "0.003"}
    assert {p: decisions.probability(p) for p in texts} == {p: f"p = {text}" for p, text in texts.items()}


def test_what_failed_or_did_nothing_is_never_praised():
    cases, records = study()
    numbers, judged = Numbers(records, cases), decisions_on(("plain", ""), *GOOD).at(("plain", ""))
    none = "no verdict: no metric of this scenario says how far it is from retraining"
    of = [case for case in cases if case["scenario"] == "plain"]
    assert {case["method"]: text for case in of if (text := sentences.method(numbers, judged, case))} == {
        "finetune": none, "scrub": none, "neggrad": "failed, so there is no number",
        "ssd": "changed nothing: its models are those it was given",
    }  # fmt: skip


# ---------------------------------------------------------------- controls


@pytest.mark.parametrize(
    ("line", "words", "tone"),
    [
        (rows("none", "nothing_to_find", -0.3, note=f"{FAR_NONE}; more"), FAR_NONE, "bad"),
        (rows("none", "nothing_to_find", 0.1, p=0.3, note="add stronger ones"), "add stronger ones", "bad"),
        (rows("none", "over_unlearned", -0.3), FAR_NONE, "bad"),
        (rows("none", "over_unlearned", -0.3, note="in the opposite direction by efficacy_auc"), "p < 10⁻⁴", "good"),
    ],
)
def test_a_control_says_why_nothing_is_found_as_the_comparison_does(line, words, tone):
    control = sentences.checks(decisions_on(PLACE, line, *GOOD[1:]).at(PLACE))["none is found out"]
    assert (control.text.endswith(words), control.tone, "too little" in control.text) == (True, tone, False)


# ---------------------------------------------------------------- tables and figures


@pytest.fixture
def judged_place():
    """Method x leaves traces, and y, a factor, is open."""
    line, measured = rows("y", "inconclusive", 0.03, p=0.5, note="why")
    factors = line, [{**row, "scale": "log"} for row in measured]
    lines = (*GOOD, rows("x", "distinguishable", 0.2, share=0.5, gap=0.013), factors)
    plans = [need(name, dimension, times, half_width=0.06 / times) for name in ("retrain_control", "x")
             for dimension, times in (("today", 1.0), ("pairs", 4.0), ("pairs", 16.0), ("models", 4.0))]  # fmt: skip
    plans.append(need("x", "today", 1.0, metric="confidence", unit=TRAINING_SEEDS))
    judged = decisions_on(PLACE, *lines, needs=plans)
    judged.at(PLACE).ranks = [
        {"metric": "advantage", "method": "x", "distance": 0.2, "best": 3, "worst": 4, "methods": 5, "ahead": 0},
        {"metric": "advantage", "method": "none", "distance": 0.4, "best": 5, "worst": 5, "methods": 5, "ahead": 1},
    ]
    return judged


def test_the_tables_show_every_method_and_keep_the_columns_of_their_files(judged_place):
    sheet = verdicts.verdicts(judged_place, "study")
    lines = {line.label: [cell.text for cell in line.cells] for line in sheet.lines}
    assert list(lines) == ["none", "x", "y", "retrain", "retrain (control)"]
    assert lines["x"] == [
        "traces remain", "50 % [40, 60]", "0.20 [0.18, 0.22]", "", "kde/trained", "< 10⁻⁴", "better", "−1.3", "−1.3"
    ]  # fmt: skip
    assert lines["y"][2:4] + lines["y"][-2:] == ["", "× 1.03 [1.01, 1.05]", "× 1.00", "× 1.00"]
    assert {lines[name][4] for name in ("y", "retrain", "retrain (control)")} == {"(kde/trained)"}  # finds nothing
    assert (sheet.lines[2].cells[0].notes, formats.rendered(sheet, "tex").isascii()) == (("why",), True)
    assert list(sheet.records[0]) == [
        "study", "scenario", "setting", "method", "verdict", "found_by", "distance", "ci_low", "ci_high", "margin",
        "retrain_spread", "p_holm", "against_none", "share_closed", "share_low", "share_high", "note",
    ]  # fmt: skip
    ranks = verdicts.ranks(judged_place, "study")
    assert [(line.label, line.cells[0].text) for line in ranks.lines] == [("x", "3–4 of 5"), ("none", "5 of 5")]
    lines = {line.label: [cell.text for cell in line.cells] for line in verdicts.resolution(judged_place, "s").lines}
    assert list(lines) == ["advantage", "mean confidence, x"]
    assert lines["advantage"][-4:] == ["0.060 (0.000)", "0.015 (0.000)", "0.004 (0.000)", "0.015 (0.000)"]


def test_files_are_read_as_they_were_written_and_damage_is_named(judged_place, tmp_path):
    entry = write_decisions(tmp_path, judged_place, PLACE)
    shared, own = ["unlearn", "shared"], ["unlearn", "own"]
    entry["made"] |= {"x": [shared, own], "y": [shared]}
    ledger = [{"stage": stage, "node": node, "seconds": 10.0} for stage, node in (shared, own)]
    again = decisions.read([entry], ledger).at(PLACE)
    assert (again.verdicts["x"]["share_closed"], again.main_distance("x")["metric"]) == (0.5, "advantage")
    assert (again.spent["x"], again.spent["y"]) == (20.0, 10.0)
    (tmp_path / "ranks.csv").write_text("metric,method\na,b\n")
    with pytest.raises(ArtifactError, match=r"ranks\.csv: .*the columns are not metric, method, distance"):
        decisions.read([entry])


def test_the_figure_shows_every_method_that_is_judged(judged_place):
    figure = _verdicts.draw(judged_place)
    assert figure.get_label() == "Of 2 verdicts: traces remain 1, cannot tell 1"
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x", "y"]
    assert "no share" in [text.get_text() for text in axis.texts]
    assert len(_verdicts.draw(decisions.Decisions()).axes) == 1
    figure = _verdicts.draw(decisions_on(PLACE, *GOOD, rows("x", "inconclusive", 0.2, share=0.5, p=0.5)))
    assert figure.legends[0].get_texts()[-1].get_text() == "not distinguishable from retraining"


# ---------------------------------------------------------------- one retrained model

CHANCE = sensitivity.spread_that_explains(0.2)
GIVEN = f"{distances.GIVEN} 0.02"


@pytest.mark.parametrize(
    ("verdict", "note", "line"),
    [("no_yardstick", f"{sensitivity.UNREPEATED}; {CHANCE}",
      f"cannot tell: 0.20 [0.18, 0.22] from this retrained model, {CHANCE}"),
     ("distinguishable", GIVEN, f"traces remain: {GIVEN}"),
     ("inconclusive", GIVEN, f"cannot tell: too few models, {GIVEN}")],
)  # fmt: skip
def test_a_line_says_what_its_verdict_hangs_on(verdict, note, line):
    mine = rows("x", verdict, 0.2, note=note)
    mine[1][0]["note"] = note
    judged = decisions_on(PLACE, *GOOD, mine)
    numbers = Numbers([], CASES)
    ((told,),) = [place.lines for place in answer.answers(numbers, judged)]
    assert f"{told.state.word}: {told.why}" == line
    printed = ending.text(ending.summary(numbers, judged, "mine"), "r.html", 100).splitlines()
    assert (max(map(len, printed)) <= 100, line in " ".join(" ".join(printed).split())) == (True, True)
    cells = {row.label: row.cells[0].text for row in verdicts.verdicts(judged, "mine").lines}
    assert cells["x"] == line.replace("too few models, ", "")
    spoken = sentences.method(numbers, judged.at(PLACE), CASES[-1])
    assert (CHANCE if verdict == "no_yardstick" else GIVEN) in spoken
