"""The time that is left is within a factor of two of the truth from the tenth second of recorded runs on."""

import csv
import logging
from collections import Counter
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_unlearning import LogHandler
from unlearning_audit.workflow.progress import Progress, in_words


def recorded(path: Path) -> list[tuple[float, str, int, str]]:
    """When jobs began and ended: seconds since the first, to the second, "begin" or "end", number and rule."""
    with open(path) as lines:
        return [(float(row["seconds"]), row["what"], int(row["job"]), row["rule"]) for row in csv.DictReader(lines)]


def test_times_are_said_as_people_say_them():
    said = {3: "less than 10 s", 44: "about 40 s", 200: "about 3 min", 9000: "about 2.5 h"}
    assert {seconds: in_words(seconds) for seconds in said} == said


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "runs").glob("*.csv")), ids=lambda path: path.stem)
def test_the_time_left_is_within_a_factor_of_two(path):
    """Of recorded runs on two cores, at every second after the tenth; below ten seconds nothing else is said."""
    events = recorded(path)
    run = Progress(Counter(rule for _, what, _, rule in events if what == "begin"), 2)
    end, wrong = events[-1][0], []
    for second in range(int(end)):
        while events and events[0][0] <= second:
            now, what, job, rule = events.pop(0)
            run.begin(job, rule, "", now) if what == "begin" else run.end(job, now)
        truth, told = end - second, run.seconds_left(float(second))
        if second >= 10 and not (truth / 2 <= told <= 2 * truth or max(truth, told) < 10):
            wrong.append((second, told, truth))
    assert not wrong


def test_without_a_job_ended_the_shipped_rates_tell():
    run = Progress({"train": 4, "table": 2}, 2)
    assert run.seconds_left(0.0) == pytest.approx((4 * run.rate("train") + 2 * run.rate("table")) / 2)


def test_a_machine_that_is_three_times_as_slow_is_noticed():
    fast, slow = (Progress({"train": 10, "attack": 10}, 1) for _ in range(2))
    for run, times in ((fast, 1), (slow, 3)):
        now = 0.0
        for job in range(5):
            run.begin(job, "train", "", now)
            run.end(job, now := now + times * run.rate("train"))
    assert 2 < slow.seconds_left(now) / fast.seconds_left(now) < 3


def test_of_other_models_nothing_is_known_until_one_is_made():
    run = Progress({"data": 1, "train": 2, "attack": 2}, 1, small=False)
    assert not run.time_is_known()
    assert "left" not in run.line(0.0)
    run.begin(0, "train", "resnet", 0.0)
    run.end(0, 60.0)
    assert run.time_is_known()
    assert "about" in run.line(60.0)


def test_the_line_says_what_runs_and_fits():
    run = Progress({"unlearn": 4}, 2)
    run.begin(0, "unlearn", "digits-swap-mlp-pairs0to3-fisher_becker", 0.0)
    whole = "[--------------------]   0 %  0 of 4 jobs, less than 10 s left: unlearning by fisher becker"
    assert run.line(0.0, 200) == whole
    assert run.line(0.0, 60) == f"{whole[:58]}…"


# ---------------------------------------------------------------- what is printed


class Common:
    """Snakemake's settings of output."""

    nocolor, quiet, debug_dag, verbose, show_failed_logs, stdout, dryrun, printshellcmds = True, set(), *[False] * 6


def said(capsys, *records, **settings) -> str:
    handler = LogHandler(type("Settings", (Common,), settings)(), None)
    for level, text, extra in records:
        record = logging.LogRecord("snakemake", level, "", 0, text, (), None)
        record.__dict__.update(extra)
        handler.emit(record)
    return capsys.readouterr().err


def test_a_run_into_a_file_has_a_line_for_every_tenth(capsys):
    records = [(logging.INFO, "Job stats", {"event": LogEvent.RUN_INFO, "stats": {"table": 100, "total": 100}})]
    for job in range(100):
        begun = {"event": LogEvent.JOB_INFO, "jobid": job, "rule_name": "table", "wildcards": {}}
        ended = {"event": LogEvent.JOB_FINISHED, "job_id": job}
        records += [(logging.INFO, "rule", begun), (logging.INFO, "Finished", ended)]
    lines = said(capsys, *records).splitlines()
    assert 1 <= len(lines) <= 10
    assert lines[-1] == "[####################] 100 %  100 of 100 jobs"


def test_errors_warnings_and_answers_are_said_and_nothing_else(capsys):
    answers = ["the answer", "a warning", "LockException: locked", "Nothing to be done (all there).", "Report created."]
    levels = (logging.INFO, logging.WARNING, logging.ERROR, logging.INFO, logging.INFO)
    records = [(level, text, {"small": True} if text == "the answer" else {})
               for level, text in zip(levels, answers, strict=True)]  # fmt: skip
    assert said(capsys, (logging.INFO, "Building DAG of jobs...", {}), *records).splitlines() == answers
