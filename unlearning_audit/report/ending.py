"""Print the end of a run on a terminal: the answer in at most fifteen lines, and what to do next."""

import itertools
import shutil
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from unlearning_audit.report import answer, decisions, naming, words
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.tables import formats
from unlearning_audit.store.files import ArtifactError, read_json

#: The most lines of the end of a run, and the most failures that are listed.
LINES, FAILURES = 15, 6


def summary(
    numbers: Numbers, judgements: decisions.Decisions, study: str, comparisons: list[dict[str, Any]] | tuple[()] = ()
) -> dict[str, Any]:
    """Return the facts for summary.json, by which the end of a run is printed, and studies are compared later.

    "answers": the answer for each scenario and setting; "extended": a sentence on scenarios that were extended without
    a plan; "nodes": "scenario|setting|method" → the jobs on which the method's verdict rests, each as [stage, name]:
    first the jobs that made its models, then the comparison.

    Parameters
    ----------
    comparisons
        For each comparison: scenario, setting, the path of its table of ``verdicts``, and ``made``, method → the jobs
        that made its models.
    """
    nodes = {}
    for comparison in comparisons:
        # The files of a job lie in a folder with the job's name.
        judged_by = ["comparisons", Path(comparison["verdicts"]).parent.name]
        for method, made_by in comparison["made"].items():
            nodes[f"{comparison['scenario']}|{comparison['setting']}|{method}"] = [*made_by, judged_by]
    answers = [answer.plain(place) for place in answer.answers(numbers, judgements)]
    return {"study": study, "answers": answers, "extended": judgements.extensions(), "nodes": nodes}


def text(summary: dict[str, Any], page: str, width: int = 100, following: str = words.NEXT) -> str:
    """Return the end of a run as text of at most `LINES` lines of ``width`` characters: the answer, and where the
    report is.

    Each method has a line; if several scenarios have more methods than half of `LINES`, each scenario has one instead.
    Lines that do not fit are counted. A study without unlearning methods gets one sentence.

    Parameters
    ----------
    summary
        The facts that the function `summary` returns.
    page
        The path of the report.
    following
        A sentence with the next command.
    """
    closing = [f"Report: {page}  {following}"]
    if any(len(line) > width for line in closing):
        closing = [f"Report: {page}", following]
    answers = [place for place in summary["answers"] if place["lines"]]
    if not answers:
        return "\n".join([*textwrap.wrap(_unjudged(summary), width), *closing])
    if len(answers) == 1 or sum(len(place["lines"]) for place in answers) <= LINES // 2:
        body, noun = _of_methods(answers), "more method"
        doubtful = words.joined([place["label"] for place in answers if not place["passed"]])
        checked = f"Checks are open or did not pass in {doubtful}: see the report." if doubtful else "Checks passed."
        alone = [answers[0][name] for name in ("best", "contradiction", "checked")]
        sentences = alone if len(answers) == 1 else [checked]
    else:
        body, noun, sentences = _of_places(answers), "more scenario", [words.LEGEND]
    lines = [line for sentence in [*sentences, summary.get("extended", "")] for line in textwrap.wrap(sentence, width)]
    head, *rows = [textwrap.wrap(line, width, subsequent_indent=" " * 6) for line in body]
    room = LINES - len(lines) - len(closing) - len(head) - 1  # 1 for the question
    shown = len(rows)
    # Rows that do not fit are replaced by one line that counts them.
    while shown and sum(map(len, rows[:shown])) + (shown < len(rows)) > room:
        shown -= 1
    if shown < len(rows):
        rows = [*rows[:shown], [f"  … and {naming.count(len(rows) - shown, noun)} in the report"]]
    table = itertools.chain(head, *rows)  # of the question, a narrow terminal shows the first line only
    return "\n".join([*textwrap.wrap(words.QUESTION, width)[:1], *table, *lines, *closing])


def _of_methods(answers: list[dict[str, Any]]) -> list[str]:
    """Return a line of column names and a line for every method of the answers, the best of a scenario first. Columns
    without any text below their name are left out, and that of scenarios if there is only one answer."""
    rows = [("scenario", "method", "traces removed", "verdict", "accuracy against retraining, points")]
    for place in answers:
        label = place["label"] if len(answers) > 1 else ""
        for line in place["lines"]:
            verdict = ": ".join(filter(None, (line["word"], line["why"])))
            rows.append((label, naming.method(line["method"]), line["removed"], verdict, line["accuracy"]))
    columns = [(name, *texts) for name, *texts in zip(*rows, strict=True) if any(texts)]
    return [f"  {line}" for line in formats.aligned(list(zip(*columns, strict=True)))]


def _of_places(answers: list[dict[str, Any]]) -> list[str]:
    """Return a line of column names and a line for every answer (scenario and setting): the methods that are like
    retraining or, if there are none, the nearest methods; how many methods have each verdict; and whether the checks
    passed.

    Of more than two methods, the first is named and the others are counted.
    """
    rows = [("scenario", "nearest to retraining", "verdicts", "checks")]
    for place in answers:
        counts = [(state.mark, sum(line["word"] == state.word for line in place["lines"])) for state in words.STATES]
        verdicts = "  ".join(f"{count} {mark}" for mark, count in counts if count)
        nearest = place["like"] or place["nearest"]
        named = words.joined(nearest, "or") if len(nearest) < 3 else f"{nearest[0]} or {len(nearest) - 1} more"
        rows.append((place["label"], named, verdicts, "passed" if place["passed"] else "see the report"))
    return [f"  {line}" for line in formats.aligned(rows)]


def _unjudged(summary: dict[str, Any]) -> str:
    """Return a sentence for a study that compared no unlearning method, only references or nothing."""
    checks = [place["passed"] for place in summary["answers"]]
    if not checks:
        return f"Study {summary['study']}: nothing was compared with retraining."
    scenarios = naming.count(len(checks), "scenario")
    passed = f"checks passed in {sum(checks)} of {scenarios}"
    return f"Study {summary['study']}: no unlearning method was compared; {passed}."


def show(study: str, root: str | Path, stream: TextIO, following: str = words.NEXT) -> None:
    """Print the answer of a finished study and where its report is, from its summary in the folder ``root``; print
    nothing if it has no summary.

    Parameters
    ----------
    following
        A sentence with the next command.
    """
    if message := told(study, root, following):
        with suppress(OSError, ValueError):  # the terminal may be closed
            print(f"\n{message}\n", file=stream, flush=True)


def told(study: str, root: str | Path, following: str = words.NEXT) -> str:
    """Return the answer of a finished study and where its report is, as text for the terminal, from the summary in the
    folder ``root``; "" if there is no summary, or a sentence that says why it cannot be read. ``following``: a sentence
    with the next command."""
    folder = Path(root) / study
    if not (folder / "summary.json").exists():
        return ""
    try:
        return text(read_json(folder / "summary.json"), str(folder / "report.html"), terminal_width(), following)
    except ArtifactError as error:
        return str(error)


def terminal_width() -> int:
    """Return the columns of the terminal; 100 without one."""
    return shutil.get_terminal_size((100, 24)).columns
