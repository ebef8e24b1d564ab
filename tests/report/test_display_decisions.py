"""Verdicts as people read them: sentences, controls, tables, the headline, figures."""

import math

import pytest
from unlearning_audit.comparisons.sensitivity import FAR_NONE
from unlearning_audit.report import decisions
from unlearning_audit.report.figures import _verdicts
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables import formats, verdicts
from unlearning_audit.store.files import ArtifactError

from decision_cases import GOOD, decisions_on, need, rows, write_decisions
from display_cases import case, q, study

PLACE = ("s", "")


def sentence_on(line, *beside, **more):
    """The sentence on one method beside good references."""
    method = line[0]["method"]
    cases = [case("s", name) for name in ("none", "retrain", "retrain_control", method)]
    numbers = Numbers([q(entry, 0.9) for entry in cases], cases)
    (verdict,) = sentences.methods(numbers, decisions_on(PLACE, *GOOD, line, *beside, **more))
    return verdict.text, verdict.tone


@pytest.mark.parametrize(
    ("line", "text", "tone"),
    [
        (rows("x", "distinguishable", 0.2, share=0.5),
         "traces remain: advantage (kde, trained) 0.20 [0.18, 0.22], "
         "p < 10⁻⁴; removes 50 % [40, 60] of what doing nothing leaves", "traces"),
        (rows("x", "distinguishable", 0.4, share=0.0, against="like"),
         "traces remain: advantage (kde, trained) 0.40 "
         "[0.38, 0.42], p < 10⁻⁴; not distinguishable from doing nothing", "traces"),
        (rows("x", "distinguishable", 0.6, share=-0.5, against="worse", p=0.003),
         "traces remain: advantage (kde, trained) 0.60 [0.58, 0.62], p = 0.003; worse than doing nothing", "traces"),
        (rows("x", "equivalent", 0.01, p=1.0, share=0.97),
         "like retraining within 0.05: advantage (kde, trained) 0.01 "
         "[−0.01, 0.03] from retraining; removes 97 % [87, 107] of what doing nothing leaves", "like"),
        (rows("x", "over_unlearned", -0.2, share=1.5), "over-unlearned, forgotten samples look less familiar than "
         "samples never seen: advantage (kde, trained) "
         "−0.20 [−0.22, −0.18], p < 10⁻⁴; better than doing nothing", "over"),
        (rows("x", "over_unlearned", -0.2, against="like"), "over-unlearned, forgotten samples look less familiar "
         "than samples never seen: advantage (kde, trained) −0.20 [−0.22, −0.18], p < 10⁻⁴; neither shown to be nearer "
         "to retraining than doing nothing nor further, but in the opposite direction", "over"),
        (rows("x", "broken", 0.0, p=1.0, gap=0.2, share=1.0), "model damaged: retain accuracy is 20 "
         "[18, 22] points below that of retraining, test accuracy is 20 [18, 22] points below that of retraining; "
         "removes 100 % [90, 110] of what doing nothing leaves", "damaged"),
    ],
)  # fmt: skip
def test_every_class_has_its_sentence_with_the_numbers_it_rests_on(line, text, tone):
    assert sentence_on(line) == (text, tone)


def test_what_would_decide_is_said_with_its_cost():
    note = "not shown to be within the margin: accuracy_test; if the method is like retraining, 12 pairs show it"
    line = rows("x", "inconclusive", 0.03, 0.05, p=0.4, note=note)
    needs = [need("x", "decides_pairs", 3.0), need("x", "decides_models", 5.0)]
    text, tone = sentence_on(line, needs=needs, spent=1800.0)
    assert "cannot tell: advantage (kde, trained) 0.03 [−0.02, 0.08] from retraining, p = 0.4" in text
    assert text.endswith(
        "test accuracy; if the method is like retraining, 12 pairs show it, which takes about 60 min more"
    )
    assert tone == "unknown"


def test_a_plan_is_said_once_with_its_cost_and_without_what_else_was_noted():
    find = "4 blocks or 3 models per split find it"
    limits = (f"if its distance is the {end} limit of the interval, {find}" for end in ("upper", "lower"))
    note = "; ".join(["not shown: advantage", *limits])
    line = rows("x", "inconclusive", 0.03, 0.05, p=0.4, note=f"{note}; the share has no interval")
    needs = [need("x", "decides_pairs", 3.0, units=4.0, unit="blocks")]
    judged = decisions_on(PLACE, *GOOD, line, needs=needs, spent=1800.0)
    plan = f"if its distance is either limit of the interval, {find}, which takes about 60 min more"
    row = judged.verdict(PLACE, "x")
    assert verdicts.decides(judged, PLACE, "x", row) == plan
    assert verdicts.why(judged, PLACE, "x", row) == f"not shown: advantage; {plan}; the share has no interval"
    for nothing in (
        "neither more pairs nor more models would decide",
        note.replace(find, "a study of this size finds it"),
    ):
        row["note"] = nothing
        assert "takes" not in verdicts.why(judged, PLACE, "x", row)
    row["note"] = note.replace("4 blocks", "9 blocks", 1)
    assert "the upper limit of the interval, 9 blocks" in verdicts.decides(judged, PLACE, "x", row)
    assert "the lower limit of the interval, 4 blocks" in verdicts.decides(judged, PLACE, "x", row)


def test_no_rounding_contradicts_a_verdict():
    """What lies within the margin is printed so, and a p-value on its side of 0.05."""
    for margin, distance, half, text in (
        (0.0035, 0.0005, 0.0015, "within 0.0035: advantage (kde, trained) 0.0005 [−0.0010, 0.0020]"),
        (0.0139, 0.008, 0.00585, "within 0.014: advantage (kde, trained) 0.008 [0.002, 0.014]"),
        (0.05, 0.01, 0.02, "within 0.05: advantage (kde, trained) 0.01 [−0.01, 0.03]"),
    ):
        line = rows("x", "equivalent", distance, half, p=1.0, margin_far=-margin, margin_near=margin)
        assert text in sentence_on(line)[0]
    for factor in (1.25, 1.05, 1.0035):
        _, (row, *_) = rows("x", "equivalent", 0.0, 0.001, scale="log", margin_near=math.log(factor))
        assert decisions.margin(row) == f"a factor of {factor}"
    texts = {0.0499: "0.0499", 0.05: "0.05", 0.0501: "0.0501", 0.04996: "0.04996", 0.0512: "0.051", 0.003: "0.003"}
    for p, written in texts.items():
        assert decisions.probability(p) == f"p = {written}"


def test_what_failed_or_did_nothing_is_never_praised():
    cases, records = study()
    by_subject = {v.subject: v for v in sentences.methods(Numbers(records, cases), decisions_on(("plain", ""), *GOOD))
                  if v.place[0] == "plain"}  # fmt: skip
    assert by_subject["neggrad"].text == "failed, so there is no number"
    assert by_subject["ssd"].text == "changed nothing: its models are those it was given"
    assert {by_subject[name].tone for name in ("neggrad", "ssd")} == {"bad"}
    assert by_subject["scrub"].text.startswith("no verdict: ")


# ---------------------------------------------------------------- controls


def checks(*lines):
    cases = [case("s", name) for name in ("none", "retrain", "retrain_control")]
    judgements = sentences.controls(Numbers([q(entry, 0.9) for entry in cases], cases), decisions_on(PLACE, *lines))
    return {verdict.subject: verdict for verdict in judgements}


@pytest.mark.parametrize("wrong", range(4))
def test_each_control_fails_alone(wrong):
    lines = list(GOOD)
    lines[:wrong] = lines[:wrong]
    if wrong < 3:
        bad = (
            rows("none", "inconclusive", 0.02, p=0.6, against=""),
            rows("retrain", "distinguishable", 0.2),
            rows("retrain_control", "distinguishable", 0.2),
        )
        lines[wrong] = bad[wrong]
    controls = checks(*lines)
    order = ("none is found out", "retrain is perfect", "two retrainings agree")
    tones = {name: "bad" if i == wrong else "good" for i, name in enumerate(order)}
    assert {name: controls[name].tone for name in order} == tones


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
    control = checks(line, *GOOD[1:])["none is found out"]
    assert (control.text.endswith(words), control.tone) == (True, tone)
    assert "too little to find" not in control.text


# ---------------------------------------------------------------- tables, headline, figures


@pytest.fixture
def judged_place():
    lines = (
        *GOOD,
        rows("x", "distinguishable", 0.2, share=0.5, gap=0.013),
        rows("y", "inconclusive", 0.03, p=0.5, note="why"),
    )
    plans = [need(name, dimension, times, half_width=0.06 / times) for name in ("retrain_control", "x")
             for dimension, times in (("today", 1.0), ("pairs", 4.0), ("pairs", 16.0), ("models", 4.0))]  # fmt: skip
    judged = decisions_on(PLACE, *lines, needs=plans, spent=60.0)
    judged.ranks[PLACE] = [
        {"metric": "advantage", "method": "x", "distance": 0.2, "best": 3, "worst": 4, "methods": 5, "ahead": 0},
        {"metric": "advantage", "method": "none", "distance": 0.4, "best": 5, "worst": 5, "methods": 5, "ahead": 1},
    ]
    return judged


def test_the_tables_show_every_method_and_keep_the_columns_of_their_files(judged_place):
    sheet = verdicts.verdicts(judged_place, "study")
    assert [line.label for line in sheet.lines] == ["none", "x", "y", "retrain", "retrain (control)"]
    cells = [cell.text for cell in sheet.lines[1].cells]
    assert cells == [
        "traces remain",
        "50 % [40, 60]",
        "0.20 [0.18, 0.22]",
        "",
        "kde/trained",
        "< 10⁻⁴",
        "better",
        "−1.3",
        "−1.3",
    ]
    assert sheet.lines[2].cells[0].notes == ("why",)
    assert [line.cells[4].text for line in sheet.lines[2:]] == ["(kde/trained)"] * 3  # which finds nothing
    assert formats.latex(sheet).isascii()
    assert list(sheet.records[0]) == [
        "study", "scenario", "setting", "method", "verdict", "found_by", "distance", "ci_low", "ci_high", "margin",
        "retrain_spread", "p_holm", "against_none", "share_closed", "share_low", "share_high", "note",
    ]  # fmt: skip
    ranks = verdicts.ranks(judged_place, "study")
    assert [(line.label, line.cells[0].text) for line in ranks.lines] == [("x", "3–4 of 5"), ("none", "5 of 5")]
    (line,) = verdicts.resolution(judged_place, "study").lines
    assert [cell.text for cell in line.cells][-4:] == [
        "0.060 (0.000)",
        "0.015 (0.000)",
        "0.004 (0.000)",
        "0.015 (0.000)",
    ]


def test_files_are_read_as_they_were_written_and_damage_is_named(judged_place, tmp_path):
    entry = write_decisions(tmp_path, judged_place, PLACE)
    again = decisions.read([entry])
    assert again.verdict(PLACE, "x")["share_closed"] == 0.5
    assert again.main_distance(PLACE, "x")["metric"] == "advantage"
    shared, own = ["unlearn", "shared"], ["unlearn", "own"]
    entry["made"] |= {"x": [shared, own], "y": [shared]}
    ledger = [{"stage": stage, "node": node, "seconds": 10.0} for stage, node in (shared, own)]
    again = decisions.read([entry], ledger)
    assert (again.spent[PLACE, "x"], again.spent[PLACE, "y"]) == (20.0, 10.0)
    (tmp_path / "ranks.csv").write_text("metric,method\na,b\n")
    with pytest.raises(ArtifactError, match=r"ranks\.csv: .*the columns are not metric, method, distance"):
        decisions.read([entry])


def test_the_figures_show_every_method_that_is_judged(judged_place):
    assert _verdicts.draw(judged_place).get_label() == "Of 2 verdicts: traces remain 1, cannot tell 1"
    (axis,) = _verdicts.draw(judged_place).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x", "y"]
    assert "no share" in [text.get_text() for text in axis.texts]
    assert len(_verdicts.draw(decisions.Decisions()).axes) == 1


def test_the_verdict_of_a_single_method_is_drawn_below_its_legend_and_inside_of_the_figure():
    figure = _verdicts.draw(decisions_on(PLACE, *GOOD, rows("x", "inconclusive", 0.2, share=0.5, p=0.5)))
    figure.draw_without_rendering()
    (axis,), (legend,) = figure.axes, figure.legends
    around, title = axis.get_tightbbox(), axis.title.get_window_extent()
    assert figure.bbox.y0 <= around.y0
    assert max(around.y1, title.y1) <= legend.get_window_extent().y0 + 1
    assert axis.bbox.height > 0.15 * figure.dpi


def test_differences_and_factors_stand_in_columns_of_their_own(judged_place):
    judged_place.distances[PLACE] = [
        {**row, "scale": "log"} if row["method"] == "y" else row for row in judged_place.distances[PLACE]
    ]
    heads = [head.label for head in verdicts.verdicts(judged_place, "study").heads]
    place = heads.index("distance"), heads.index("factor")
    cells = {line.label: [line.cells[i].text for i in place] for line in verdicts.verdicts(judged_place, "s").lines}
    assert cells["x"][0]
    assert not cells["x"][1]
    assert not cells["y"][0]
    assert cells["y"][1].startswith("× ")
