"""Make what stands at the top of the page: the answer in one scenario and setting, and what must not be concluded."""

import ast
from pathlib import Path

from unlearning_audit.plugins import registry
from unlearning_audit.report.answer import Answer


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
