"""A run ends in at most fifteen lines that fit the terminal, give the answer, and say what they leave out."""

import functools
import io
from pathlib import Path

import pytest
from unlearning_audit.report import answer, ending, words
from unlearning_audit.report.decisions import Decisions, Judged
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.stats import decide
from unlearning_audit.store.files import seal, write_json

from decision_cases import GOOD, decisions_on, rows
from display_cases import case


@functools.cache
def many(scenarios):
    """Of sixty methods in so many scenarios."""
    return summary(*similar(60), scenarios=scenarios)


def summary(*lines, scenarios=1):
    """Of scenarios with the same verdicts beside good references."""
    judged, cases = Decisions(), []
    for i in range(scenarios):
        part = decisions_on((f"scenario_{i}", ""), *GOOD, *lines)
        judged.places |= part.places
        cases += [case(f"scenario_{i}", line["method"]) for line, _ in (*GOOD, *lines)]
    return ending.summary(Numbers([], cases), judged, "mine")


def similar(count):
    """The verdicts on so many methods that leave traces and remove 22 %."""
    return [rows(f"method_{i}", "distinguishable", 0.2, share=0.22) for i in range(count)]


def test_one_scenario_ends_with_its_methods_from_the_best_to_the_worst():
    text = ending.text(summary(
        rows("worse", "distinguishable", 0.2, share=0.1), rows("lost", "broken", 0.1, share=0.9, gap=0.3),
        rows("better", "distinguishable", 0.2, share=0.4), rows("far", decide.OVER_UNLEARNED, -0.2, share=0.5),
        rows("like", "equivalent", 0.0, share=1.0), rows("open", "inconclusive", 0.1, share=0.5),
    ), "r.html", 120)  # fmt: skip
    lines = text.splitlines()
    told = {"like": "like retraining", "better": "traces remain", "worse": "traces remain", "far": "over-unlearned",
            "lost": "model damaged", "open": "cannot tell: too few models"}  # fmt: skip
    assert [line.split()[0] for line in lines[2:8]] == list(told)
    assert [word for line, word in zip(lines[2:8], told.values(), strict=True) if word not in line] == []
    assert lines[8:] == [
        "Like retraining: like.",
        "Checks passed: retraining is like retraining, two retrainings agree, doing nothing is detected.",
        f"Report: r.html  {words.NEXT}",
    ]


def test_a_few_methods_of_several_scenarios_have_a_line_each():
    head, *lines = ending.text(summary(*similar(2), scenarios=3), "r.html", 100).splitlines()[1:8]
    assert head.split()[:2] == ["scenario", "method"]
    assert [line[:24] for line in lines] == [f"  scenario {i}  method {j}  " for i in range(3) for j in range(2)]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("scenarios", [1, 40])
def test_it_fits_the_terminal_and_names_what_is_left_out(width, scenarios):
    lines = ending.text(many(scenarios), "results/mine/report.html", width).splitlines()
    if scenarios > 1 and width == 200:
        assert lines[1].split() == ["scenario", "nearest", "to", "retraining", "verdicts", "checks"]
        assert ("60 ●" in lines[2], lines[2].endswith("passed")) == (True, True)
    assert max(map(len, lines)) <= width
    assert len(lines) <= ending.LINES
    total, what = (60, "method") if scenarios == 1 else (40, "scenario")
    shown = sum(line.startswith(f"  {what} ") for line in lines) - 1
    assert f"  … and {total - shown} more {what}s in the report" in lines
    assert "more" in ending.text(many(scenarios), "results/mine/report.html", width // 6)


def test_a_study_without_comparisons_says_so():
    empty = ending.summary(Numbers([], []), Decisions(), "mine")
    assert "nothing was compared with retraining" in ending.text(empty, "report.html")
    alone = empty | {"answers": [{"lines": [], "passed": passed} for passed in (True, False, False)]}
    assert "no unlearning method was compared; checks passed in 1 of 3 scenarios." in ending.text(alone, "report.html")


def test_it_is_printed_where_there_is_one_and_only_as_it_was_made(workdir):
    def printed():
        with io.StringIO() as stream:
            ending.show("mine", Path(), stream)
            return stream.getvalue()

    assert printed() == ""
    Path("mine").mkdir()
    write_json(Path("mine/summary.json"), summary(*similar(1)))
    seal(Path("mine/summary.json"))
    assert "Report: mine/report.html" in printed()
    Path("mine/summary.json").write_text("{}")
    assert "summary.json: this file is not as it was made" in printed()
    closed = io.StringIO()
    closed.close()
    ending.show("mine", Path(), closed)  # nobody listens


# ---------------------------------------------------------------- the answer


def answer_of(judges=(), nearest="", checks=()):
    """The answer on a, b and c, of which all leave traces."""
    lines = {name: answer.Line(name, decide.DISTINGUISHABLE, 0.2, nearest=name in nearest) for name in "abc"}
    return answer.Answer(Judged(("noisy", "")), "swap", lines, checks, judges, (-1.0, 1.0))


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [(((1, 2, 3), (3, 2, 1)),
      "The 2 systems disagree on a: system 1 ranks it 1st of 3, system 2 3rd (τ −1.00 to 1.00)."),
     (((1, 2, 3), (1, 2, 3)), "The 2 systems rank the methods alike (τ −1.00 to 1.00)."),
     (((1, 2, 3),), "")],
)  # fmt: skip
def test_systems_that_contradict_each_other_are_named_with_the_method(ranks, sentence):
    judges = [answer.Judge(f"system {i}", "", dict(zip("abc", r, strict=True))) for i, r in enumerate(ranks, start=1)]
    assert answer_of(tuple(judges)).contradiction == sentence


@pytest.mark.parametrize(
    ("nearest", "sentence"),
    [("", "No method is like retraining."),
     ("a", "No method is like retraining. The nearest is a, at 95 % confidence."),
     ("abc", "No method is like retraining. The nearest is a, b or c, which is not certain.")],
)  # fmt: skip
def test_the_nearest_is_named_and_whether_that_is_certain_and_a_failed_check(nearest, sentence):
    assert answer_of(nearest=nearest).best == sentence
    checks = (("doing nothing is detected", "bad", "none is not found"),)
    assert answer_of(checks=checks).checked == "A check failed: none is not found."
