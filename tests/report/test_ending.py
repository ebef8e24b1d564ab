"""A run ends in at most fifteen lines that fit the terminal, give the answer, and say what they leave out."""

import io
from pathlib import Path

import pytest
from unlearning_audit.evaluation.rows import Failure, Record
from unlearning_audit.evaluation.rows import write as write_rows
from unlearning_audit.report import answer, ending, failures, words
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import union
from unlearning_audit.stats import decide
from unlearning_audit.store.files import seal, write_json

from decision_cases import GOOD, decisions_on, rows
from display_cases import case


def summary(methods=1, scenarios=1):
    """Of a study in which traces of all methods remain, with 22 % removed."""
    names = [f"method_{i}" for i in range(methods)]
    judged, cases = Decisions(), []
    for i in range(scenarios):
        lines = [rows(name, "distinguishable", 0.2, share=0.22) for name in names]
        judged.verdicts |= (part := decisions_on((f"scenario_{i}", ""), *GOOD, *lines)).verdicts
        judged.distances |= part.distances
        cases += [case(f"scenario_{i}", name) for name in ("none", "retrain", "retrain_control", *names)]
    return ending.summary(Numbers([], cases), judged, "mine")


def test_one_scenario_ends_with_its_methods_from_the_best_to_the_worst():
    judged = decisions_on(
        ("noisy", ""), *GOOD, rows("worse", "distinguishable", 0.2, share=0.1),
        rows("lost", "broken", 0.1, share=0.9, gap=0.3),
        rows("better", "distinguishable", 0.2, share=0.4), rows("far", decide.OVER_UNLEARNED, -0.2, share=0.5),
        rows("like", "equivalent", 0.0, share=1.0), rows("open", "inconclusive", 0.1, share=0.5),
    )  # fmt: skip
    names = ("none", "retrain", "retrain_control", "worse", "lost", "better", "far", "like", "open")
    text = ending.text(ending.summary(Numbers([], [case("noisy", n) for n in names]), judged, "mine"), "r.html", 120)
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[2:8]] == ["like", "better", "worse", "far", "lost", "open"]
    for line, word in zip(lines[2:8], ("like retraining", "traces remain", "traces remain", "over-unlearned",
                                       "model damaged", "cannot tell: too few models"), strict=True):  # fmt: skip
        assert word in line
    assert "Like retraining: like." in lines
    assert "Checks passed: retraining is like retraining, two retrainings agree, doing nothing is detected." in lines
    assert lines[-1] == f"Report: r.html  {words.NEXT}"


def test_several_scenarios_have_a_line_each():
    lines = ending.text(summary(methods=3, scenarios=2), "r.html").splitlines()
    assert lines[1].split() == ["scenario", "nearest", "to", "retraining", "verdicts", "checks"]
    assert all("3 ●" in line and line.endswith("passed") for line in lines[2:4])


def test_every_code_of_a_verdict_has_one_of_five_states_and_a_reason_where_nothing_can_be_told():
    codes = [getattr(decide, name) for name in ("EQUIVALENT", "DISTINGUISHABLE", "OVER_UNLEARNED", "BROKEN", "FAILED",
             "INCONCLUSIVE", "NOTHING_TO_FIND", "NO_YARDSTICK", "YARDSTICKS_DISAGREE")]  # fmt: skip
    assert {words.state(code) for code in codes} == {*words.STATES}
    for code in codes:
        assert (words.state(code) is words.UNKNOWN) == (code in words.REASONS)
    assert len({state.mark for state in words.STATES}) == len({state.word for state in words.STATES}) == 5


def judges(*ranks):
    """An answer of systems that rank three methods as told."""
    lines = tuple(answer.Line(name, decide.DISTINGUISHABLE, 0.2) for name in "abc")
    systems = tuple(
        answer.Judge(f"system {i}", "", dict(zip("abc", r, strict=True))) for i, r in enumerate(ranks, start=1)
    )
    return answer.Answer(("noisy", ""), lines, (), systems, (-1.0, 1.0))


def test_systems_that_contradict_each_other_are_named_with_the_method():
    assert judges((1, 2, 3), (3, 2, 1)).contradiction == (
        "The 2 systems disagree on a: system 1 ranks it 1st of 3, system 2 3rd (τ −1.00 to 1.00)."
    )
    assert judges((1, 2, 3), (1, 2, 3)).contradiction == "The 2 systems rank the methods alike (τ −1.00 to 1.00)."
    assert judges((1, 2, 3)).contradiction == ""


@pytest.mark.parametrize(
    ("nearest", "sentence"),
    [("", "No method is like retraining."),
     ("a", "No method is like retraining. The nearest is a, at 95 % confidence."),
     ("abc", "No method is like retraining. The nearest is a, b or c, which is not certain.")],
)  # fmt: skip
def test_the_nearest_is_named_and_whether_that_is_certain(nearest, sentence):
    lines = tuple(answer.Line(name, decide.DISTINGUISHABLE, 0.2, nearest=name in nearest) for name in "abc")
    assert answer.Answer(("noisy", ""), lines, ()).best == sentence


def test_a_failed_check_is_said():
    text = answer.Answer(("noisy", ""), (), (("doing nothing is detected", "bad", "none is not found"),)).checked
    assert text == "A check failed: none is not found."


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("scenarios", [1, 40])
def test_it_fits_the_terminal_and_names_what_is_left_out(width, scenarios):
    lines = ending.text(summary(methods=60, scenarios=scenarios), "results/mine/report.html", width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= ending.LINES
    shown = sum(line.startswith("  method " if scenarios == 1 else "  scenario ") for line in lines) - 1
    total, what = (60, "methods") if scenarios == 1 else (40, "scenarios")
    assert f"  … and {total - shown} more {what} in the report" in lines


def test_a_study_without_comparisons_says_so():
    empty = ending.summary(Numbers([], []), Decisions(), "mine")
    assert "nothing was compared with retraining" in ending.text(empty, "report.html")
    places = [{"lines": [], "passed": passed} for passed in (True, False, False)]
    alone = empty | {"answers": places}
    assert "no unlearning method was compared; checks passed in 1 of 3 scenarios." in ending.text(alone, "report.html")


def test_it_is_printed_where_there_is_one_and_only_as_it_was_made(workdir):
    stream = io.StringIO()
    ending.show("mine", Path(), stream)
    assert stream.getvalue() == ""
    Path("mine").mkdir()
    write_json(Path("mine/summary.json"), summary())
    seal(Path("mine/summary.json"))
    ending.show("mine", Path(), stream)
    assert "Report: mine/report.html" in stream.getvalue()
    Path("mine/summary.json").write_text("{}")
    changed = io.StringIO()
    ending.show("mine", Path(), changed)
    assert "summary.json: this file is not as it was made" in changed.getvalue()
    changed.close()
    ending.show("mine", Path(), changed)  # nobody listens


# ---------------------------------------------------------------- what failed


NAN = "results/unlearn/x/logits.npz: field 'logits' has 3 values that are NaN or infinite; what made it diverged"


def failed_records(tmp_path, *failures, **case_fields):
    """The union of one case with these failures, and the user's file if it has one."""
    write_rows(tmp_path / "metrics.csv", failures)
    entry = {"scenario": "noisy", "protocol": "swap", "method": "mine", "axes": {}, "plugin": "classic"}
    return union.records([entry | {"metrics": str(tmp_path / "metrics.csv")} | case_fields])


def test_a_method_that_diverged_has_its_line_with_its_file(tmp_path):
    records = failed_records(tmp_path, Failure("diverged", "", NAN), file="mine.py")
    told = f"scenarios.noisy.methods.mine: mine.py: its models answer NaN or infinite logits; {NAN}"
    assert failures.lines(records) == [told]
    assert not failures.broken(records)
    of_library = failed_records(tmp_path, Failure("diverged", "", NAN))
    assert failures.lines(of_library) == [f"scenarios.noisy.methods.mine: {NAN}"]


def test_methods_that_fail_for_one_reason_share_a_line():
    broken = [Record("noisy", "external", name, {}, Failure("method", "", "labels are shifted")) for name in "abc"]
    other = Record("clean", "external", "a", {}, Failure("method", "", "labels are shifted"))
    model = [Record("noisy", "external", name, {}, Failure("model", "", "m.py: no head")) for name in "ab"]
    assert failures.lines([*broken, other, *model]) == [
        "scenarios.noisy.methods.a (and b, c): labels are shifted", "scenarios.clean.methods.a: labels are shifted",
        "scenarios.noisy.model: m.py: no head",
    ]  # fmt: skip


def test_what_raised_breaks_a_run_and_what_follows_from_it_has_no_line(tmp_path):
    beside = Failure("diverged", "", NAN), Failure("metric", "own", "own.py: it raised"), Failure("missing", "q", "no")
    records = failed_records(tmp_path, *beside)
    assert failures.broken(records)
    assert failures.lines(records) == [
        f"scenarios.noisy.methods.mine: {NAN}", "scenarios.noisy.metrics.own: own.py: it raised"
    ]  # fmt: skip
