"""What a run ends with on a terminal: the matrix in a few lines, and where the report lies."""

import shutil
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from unlearning_audit.artifacts.files import ArtifactError, read_json
from unlearning_audit.display import decisions, naming
from unlearning_audit.display.lookup import Numbers
from unlearning_audit.display.page import lead, matrix

#: Lines of the ending with all that failed, and how many of them may say what failed.
LINES, FAILURES = 20, 6


def summary(
    numbers: Numbers, judgements: decisions.Decisions, study: str, failures: Sequence[str], comparisons: list[dict] = ()
) -> dict:
    """What `text` needs of a study, as JSON values: the marks of each method by scenario, with its state; and by which
    nodes each verdict was made, for comparisons of studies (``comparisons`` as in `decisions.read`)."""
    squares = matrix.build(numbers, judgements)
    groups = squares.scenarios()
    rows = []
    for method in squares.methods:
        if method not in naming.BASELINES:
            cells = [[squares.squares.get((method, column.key)) for column in columns] for _, columns in groups]
            rows.append([naming.method(method), *map(_cell, cells)])
    verdicts = {square.verdict for square in squares.judged()}
    return {
        "study": study,
        "answer": lead.sentences(squares)[1:2],
        "heads": [name for name, _ in groups],
        "states": ["".join(dict.fromkeys(column.state.sign for column in columns)) for _, columns in groups],
        "rows": rows,
        "legend": [
            *(f"{mark} {decisions.WORDS[name]}" for name, mark in matrix.MARKS.items() if name in verdicts),
            *([f"{matrix.NEAREST} may be nearest"] if any(s.nearest for s in squares.judged()) else []),
        ],
        "controls": list(dict.fromkeys(f"{c.state.sign} {matrix.brief(c.state.words)}" for c in squares.columns)),
        "extended": judgements.extensions(),
        "failures": len(failures),
        "nodes": {
            f"{place['scenario']}|{place['setting']}|{method}": [
                *nodes,
                ["comparisons", Path(place["verdicts"]).parent.name],
            ]
            for place in comparisons
            for method, nodes in place["made"].items()
        },
    }


def _cell(cells: list[matrix.Square | None]) -> str:
    """ "◐ 22 %", or the marks of all steps "✖✖◐"."""
    filled = [cell for cell in cells if cell]
    if len(filled) == 1 == len(cells):
        star = matrix.NEAREST if filled[0].nearest else ""
        return " ".join(filter(None, (filled[0].mark, filled[0].percent, star)))
    return "".join(cell.mark if cell else "·" for cell in cells) if filled else ""


def text(summary: dict, page: str, width: int = 100) -> str:
    """The ending in at most `LINES` lines of at most ``width`` characters, with room for what failed; what does not fit
    is named. ``page``: where the report lies."""
    closing = [f"Report: {page}"]
    if not summary["rows"]:
        return "\n".join([*textwrap.wrap(f"Study {summary['study']}: {_unjudged(summary['states'])}", width), *closing])
    title = textwrap.wrap(f"Study {summary['study']}: {summary['answer'][0] if summary['answer'] else ''}", width)[:3]
    closed = ["% closed"] if any("%" in cell for row in summary["rows"] for cell in row[1:]) else []
    legend = textwrap.wrap(", ".join([*summary["legend"], *closed]), width)
    legend += textwrap.wrap(f"controls: {', '.join(summary['controls'])}", width) if summary.get("controls") else []
    legend += textwrap.wrap(summary.get("extended", ""), width)
    columns, lost = _fitting(summary, width)
    failed = min(summary["failures"], FAILURES) + 2 if summary["failures"] else 0
    # The head, the controls, a line for what is left out, the report.
    room = max(LINES - len(title) - len(legend) - failed - 4, 1)
    rows = [row for row in summary["rows"] if any(row[i] for i in columns)][:room]
    table = [["", *summary["heads"]], ["controls", *summary["states"]], *rows]
    first = max(len(row[0]) for row in table)
    wide = [max(len(row[i]) for row in table) for i in columns]
    lines = [
        "  ".join([f"{row[0]:<{first}}", *(f"{row[i]:<{w}}" for i, w in zip(columns, wide, strict=True))]).rstrip()
        for row in table
    ]
    hidden = len(summary["rows"]) - len(rows)
    rest = [naming.count(hidden, "more method")] if hidden else []
    rest += [", ".join(lost)] if lost else []
    note = [textwrap.shorten(f"Not shown here: {'; '.join(rest)}.", width, placeholder=" …")] if rest else []
    return "\n".join([*title, *lines, *legend, *note, *closing])


def _unjudged(states: list[str]) -> str:
    """What is said of a study without verdicts on methods, from the states of its scenarios."""
    if not states:
        return "nothing was compared with retraining."
    hold, of = states.count(matrix.HOLDS), naming.count(len(states), "scenario")
    return f"no unlearning method was compared with retraining; controls hold in {hold} of {of}."


def _fitting(summary: dict, width: int) -> tuple[list[int], list[str]]:
    """The columns that fit from the left, counted from 1, and the names of the others."""
    rows = [["", *summary["heads"]], ["controls", *summary["states"]], *summary["rows"]]
    left = width - max(len(row[0]) for row in rows)
    columns = []
    for i in range(1, len(summary["heads"]) + 1):
        left -= 2 + max(len(row[i]) for row in rows)
        if left < 0 and columns:
            break
        columns.append(i)
    return columns, summary["heads"][len(columns) :]


def show(study: str, root: str | Path, stream: TextIO) -> None:
    """Print the ending of a finished study; nothing if there is no summary of it."""
    folder = Path(root) / study
    if not (folder / "summary.json").exists():
        return
    try:
        message = text(read_json(folder / "summary.json"), str(folder / "report.html"), terminal_width())
    except ArtifactError as error:
        message = str(error)
    with suppress(OSError, ValueError):  # nobody listens any more
        print(f"\n{message}\n", file=stream, flush=True)


def terminal_width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns
