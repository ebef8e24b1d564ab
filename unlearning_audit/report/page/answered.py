"""Make the first screen of the page: the answer in one scenario and setting, in the form that the template draws."""

import ast
import math
from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.report import naming, words
from unlearning_audit.report.answer import Answer

#: Lengths in the chart of ranks: height of a rank, space above, space beside, distance of systems.
STEP, TOP, SIDE, GAP = 26, 34, 110, 110


def chosen(answers: list[Answer]) -> Answer | None:
    """Return the answer that the first screen shows; None if no scenario has methods.

    Only scenarios with methods are considered. If all checks pass in some of them, only these are considered. Of these,
    the one with the most systems of evaluation is shown.
    """
    with_methods = [answer for answer in answers if answer.lines]
    passed = [answer for answer in with_methods if answer.passed]
    return max(passed or with_methods, key=lambda answer: len(answer.judges), default=None)


def screen(answer: Answer, plugins: dict[str, tuple[str, str | None]], times: dict[str, float]) -> dict[str, Any]:
    """Return the values that the template of the report's first screen shows.

    "told": the answer; "about": method → a sentence on what the method does; "times": method → its time as text;
    "timed": whether the column of times is shown; "chart": the chart of ranks; "priced": whether the column of
    accuracies is shown.

    Parameters
    ----------
    plugins
        Method → (its plug-in, the user's file or None).
    times
        Method → its time divided by that of retraining, NaN if the time is unknown.
    """
    return {
        "told": answer,
        "about": {line.method: about(*plugins.get(line.method, ("", None))) for line in answer.lines},
        "times": {line.method: _time(times.get(line.method, math.nan)) for line in answer.lines},
        "timed": not all(map(math.isnan, times.values())), "chart": _chart(answer),
        "priced": any(line.accuracy for line in answer.lines),
    }  # fmt: skip


def _time(ratio: float) -> str:
    """Return a time as a share of that of retraining: "12 %", or "1.4 ×" if it is longer; "" for NaN."""
    if math.isnan(ratio):
        return ""
    return f"{ratio:.1f} ×" if ratio > 1 else f"{100 * ratio:.0f} %"


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


def _chart(answer: Answer) -> dict[str, Any] | None:
    """Return the positions of a chart of ranks. Each system of evaluation is a vertical axis, from left to right, and
    each method a line, whose height at an axis is the method's rank by that system.

    The method whose ranks differ most is marked ``worst`` and drawn last, above the others. None for fewer than two
    systems or three methods.
    """
    judges, spreads = answer.judges, answer.spreads
    if not spreads:
        return None
    columns = [SIDE + GAP * i for i in range(len(judges))]  # the horizontal position of each system
    worst = max(spreads, key=spreads.__getitem__)
    lines: list[dict[str, Any]] = []
    for name in [*(name for name in spreads if name != worst), worst]:
        heights = [TOP + STEP * (judge.ranks[name] - 0.5) for judge in judges]
        dots = list(zip(columns, heights, strict=True))
        ranks = ", ".join(f"{judge.name} {words.ordinal(judge.ranks[name])}" for judge in judges)
        lines.append(
            {"name": naming.method(name), "told": f"{naming.method(name)}: {ranks}", "worst": name == worst,
             "points": " ".join(f"{x},{y}" for x, y in dots), "dots": dots, "first": heights[0], "last": heights[-1],
             "left": columns[0] - 10, "right": columns[-1] + 10}
        )  # fmt: skip
    heads = [{"x": x, "name": judge.name, "number": judge.number} for x, judge in zip(columns, judges, strict=True)]
    return {"heads": heads, "lines": lines, "width": 2 * SIDE + GAP * (len(judges) - 1),
            "height": TOP + STEP * len(spreads)}  # fmt: skip
