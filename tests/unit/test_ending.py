"""A run ends in at most twenty lines that fit the terminal and say what they leave out."""

import io
import logging
import math

import pytest
from unlearning_audit.artifacts.files import seal, write_json
from unlearning_audit.artifacts.rows import Failure, Record
from unlearning_audit.artifacts.rows import write as write_rows
from unlearning_audit.display import ending, failures
from unlearning_audit.display.decisions import Decisions
from unlearning_audit.display.lookup import Numbers
from unlearning_audit.display.tables import union, verdicts
from unlearning_audit.workflow import terminal

from decision_cases import GOOD, decisions_on, rows
from display_cases import case


def summary(methods=1, scenarios=1, failures=()):
    """Of a study whose methods are all distinguishable, with 22 % closed, and broken at the second step of an axis."""
    names = [f"method_{i}" for i in range(methods)]
    judged, cases = Decisions(), []
    for i in range(scenarios):
        lines = [rows(name, "distinguishable", 0.2, share=0.22) for name in names]
        judged.verdicts |= (part := decisions_on((f"scenario_{i}", ""), *GOOD, *lines)).verdicts
        judged.distances |= part.distances
        cases += [case(f"scenario_{i}", name) for name in ("none", "retrain", "retrain_control", *names)]
    for step, verdict in (("1", "distinguishable"), ("2", "broken")):
        place = ("budget", f"epsilon={step}")
        judged.verdicts |= (
            part := decisions_on(place, *GOOD, rows(names[0], verdict, 0.1, share=0.5, gap=0.3))
        ).verdicts
        judged.distances |= part.distances
        cases += [case("budget", name, {"epsilon": step}) for name in ("none", "retrain", "retrain_control", names[0])]
    return ending.summary(Numbers([], cases), judged, "mine", failures)


def test_the_ending_is_the_matrix_with_the_state_of_controls_and_the_report():
    assert ending.text(summary(), "results/mine/report.html").splitlines() == [
        "Study mine: Of 3 verdicts, 2 distinguishable and 1 broken; no method is equivalent everywhere.",
        "          scenario 0  budget",
        "controls  ✓           ✓",
        "method 0  ◐ 22 %      ◐✖",
        "◐ distinguishable, ✖ broken, % closed",
        "controls: ✓ hold",
        "Report: results/mine/report.html",
    ]


def test_shares_are_explained_where_there_are_some():
    judged = decisions_on(("noisy", ""), *GOOD, rows("method_0", "distinguishable", 0.2, share=math.nan))
    cases = [case("noisy", name) for name in ("none", "retrain", "retrain_control", "method_0")]
    text = ending.text(ending.summary(Numbers([], cases), judged, "mine", ()), "report.html")
    assert "%" not in text
    assert "◐ distinguishable" in text.splitlines()


def test_a_study_that_was_extended_without_a_plan_says_so_on_the_terminal_and_in_its_table():
    """Which error a reader may rely on stands beside the verdicts; of a study that grew as planned nothing is said."""
    judged = decisions_on(("noisy", ""), *GOOD, rows("method_0", "distinguishable", 0.2, share=0.22))
    cases = [case("noisy", name) for name in ("none", "retrain", "retrain_control", "method_0")]

    def spoken():
        lines = ending.text(ending.summary(Numbers([], cases), judged, "mine", ()), "report.html").splitlines()
        table = verdicts.verdicts(judged, "mine")
        return " ".join(lines), table.reading, verdicts.reading(judged), *(row["note"] for row in table.records)

    clause = "extended from 4 to 8 pairs after its verdicts could be seen"
    assert not any(clause in text for text in spoken())
    judged.extended["noisy", ""] = {"unit": "pairs", "from": [4], "to": 8}
    assert all(clause in text for text in spoken())


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("failures", [0, 3, 40])
def test_it_fits_the_terminal_and_names_what_is_left_out(width, failures):
    content = summary(methods=60, scenarios=40, failures=["x"] * failures)
    lines = ending.text(content, "results/mine/report.html", width).splitlines()
    assert max(map(len, lines)) <= width
    spoken = min(failures, ending.FAILURES) + 2 if failures else 0
    assert len(lines) + spoken <= ending.LINES
    assert lines[-2].startswith("Not shown here: ")
    rows_shown = sum(line.startswith("method") for line in lines)
    assert f"{60 - rows_shown} more methods" in lines[-2]


def test_a_method_without_a_cell_in_sight_gives_its_line_to_another():
    content = summary(methods=30)
    first, *rest = content["rows"]
    content["rows"] = [[f"only elsewhere {i}", *[""] * len(content["heads"])] for i in range(20)] + [first, *rest]
    lines = ending.text(content, "report.html").splitlines()
    assert not any(line.startswith("only elsewhere") for line in lines)
    count = sum(line.startswith("method") for line in lines)
    assert count > 8
    assert f"{50 - count} more methods" in lines[-2]


def test_a_study_without_comparisons_says_so():
    empty = ending.summary(Numbers([], []), Decisions(), "mine", [])
    assert "nothing was compared with retraining" in ending.text(empty, "report.html")
    alone = summary(methods=1) | {"rows": [], "states": ["✓", "∅", "✓?"]}
    assert ending.text(alone, "report.html").splitlines() == [
        "Study mine: no unlearning method was compared with retraining; controls hold in 1 of 3 scenarios.",
        "Report: report.html",
    ]
    assert "hold in 1 of 1 scenario." in ending.text(alone | {"states": ["✓"]}, "report.html")


def test_it_is_printed_where_there_is_one_and_only_as_it_was_made(tmp_path):
    stream = io.StringIO()
    ending.show("mine", tmp_path, stream)
    assert stream.getvalue() == ""
    (tmp_path / "mine").mkdir()
    write_json(tmp_path / "mine/summary.json", summary())
    seal(tmp_path / "mine/summary.json")
    ending.show("mine", tmp_path, stream)
    assert f"Report: {tmp_path / 'mine/report.html'}" in stream.getvalue()
    (tmp_path / "mine/summary.json").write_text("{}")
    changed = io.StringIO()
    ending.show("mine", tmp_path, changed)
    assert "summary.json: this file is not as it was made" in changed.getvalue()
    changed.close()
    ending.show("mine", tmp_path, changed)  # nobody listens


def record(text, level=logging.INFO):
    return logging.LogRecord("snakemake", level, "", 0, text, (), None)


def test_snakemake_says_nothing_of_the_job_that_lists_failures_and_of_other_errors_all():
    screen = terminal.Filter(brief=False)
    last = record("WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    assert screen.filter(last)
    assert screen.filter(record("RuleException:\nCommand 'x/tmp1.train.py' returned 1", logging.ERROR))
    assert not screen.filter(record("RuleException:\nCommand 'x/tmp1.failures.py' returned 1", logging.ERROR))
    assert not screen.filter(last)
    assert screen.filter(record("Building DAG of jobs..."))


def test_the_command_hears_once_why_a_script_stopped_and_always_of_one_that_was_killed():
    stopped = (
        "RuleException:\nCalledProcessError in file \"x.smk\", line 3:\nCommand 'x' returned non-zero exit status "
    )
    last = record("WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    brief, whole = terminal.Filter(brief=True), terminal.Filter(brief=False)
    for status in ("137.", "-9."):
        assert brief.filter(record(stopped + status, logging.ERROR))
    assert brief.filter(last)
    assert not brief.filter(record(stopped + "1.", logging.ERROR))
    assert not brief.filter(last)
    assert whole.filter(record(stopped + "1.", logging.ERROR))


def test_the_command_hears_errors_and_that_there_is_nothing_to_do():
    brief = terminal.Filter(brief=True)
    assert not brief.filter(record("Building DAG of jobs..."))
    assert brief.filter(record("Nothing to be done (all requested files are present and up to date)."))
    assert brief.filter(record("LockException: Directory cannot be locked.", logging.ERROR))


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
