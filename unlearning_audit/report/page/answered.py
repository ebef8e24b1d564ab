"""Make what stands at the top of the page: the answer in one scenario and setting, and what must not be concluded."""

import ast
from pathlib import Path

from unlearning_audit.plugins import registry
from unlearning_audit.report import naming, words
from unlearning_audit.report.answer import Answer
from unlearning_audit.stats import decide


def chosen(answers: list[Answer]) -> Answer | None:
    """Return the answer that the first screen shows; None if no scenario has methods.

    Only scenarios with methods are considered. If all checks pass in some of them, only these are considered. Of these,
    the one with the most systems of evaluation is shown.
    """
    with_methods = [answer for answer in answers if answer.lines]
    passed = [answer for answer in with_methods if answer.passed]
    return max(passed or with_methods, key=lambda answer: len(answer.judges), default=None)


def about(plugin: str, file: str | None) -> str:
    """Return the first line of the docstring of a method's file: the user's ``file``, or that of the library's
    ``plugin``.

    "" for imported methods, which have no file, and for a file that does not exist.
    """
    if not file and plugin not in registry.names("methods"):
        return ""
    path = Path(file) if file else registry.source_file("methods", plugin)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def cautions(answers: list[Answer]) -> list[str]:
    """Return a sentence on what must not be concluded from the matrix: anything from open verdicts, from scenarios
    whose checks failed, or from scenarios with too few retrained models, and anything about other data.

    For a study without unlearning methods, sentences say so, and in how many scenarios checks passed.
    """
    lines = [line for answer in answers for line in answer.lines]
    if not lines:
        passed = sum(answer.state.sign == words.OK for answer in answers)
        columns = naming.count(len(answers), "column")
        return [words.NO_METHODS, f"Checks passed in {passed} of {columns}."] if answers else [words.NO_METHODS]
    parts = [words.OPEN] if any(line.verdict == decide.INCONCLUSIVE for line in lines) else []
    doubtful = [answer for answer in answers if answer.state.tone == "bad"]
    too_few = [answer.head for answer in doubtful if answer.state.words == words.REASONS[decide.NO_YARDSTICK]]
    failed = [answer.head for answer in doubtful if answer.state.words != words.REASONS[decide.NO_YARDSTICK]]
    for labels, why in ((failed, words.WHERE_CHECKS_FAIL), (too_few, words.WHERE_TOO_FEW)):
        if labels:
            listed = words.joined(labels) if len(labels) <= 3 else f"{len(labels)} columns"
            parts.append(f"anything from {listed}, {why}")
    return [f"Not to be concluded: {'; '.join([*parts, words.ELSEWHERE])}."]
