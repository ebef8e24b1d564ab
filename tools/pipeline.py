"""Draw the pipeline from the scripts and the plan of studies/tour.yaml: uv run python tools/pipeline.py writes the
file."""

import ast
import html
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

from unlearning_audit import ROOT
from unlearning_audit.study import reading
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow import jobs, plan

PICTURE = ROOT / "docs" / "pipeline.svg"

#: Sizes of a box and of the gaps between boxes, and characters in a line of text.
WIDTH, HEIGHT, ACROSS, DOWN, LETTERS = 190, 92, 34, 22, 27

#: The stage that reads the numbers of other stages, and these stages.
LAST = {"report": ("metrics", "comparisons")}


def captions() -> dict[str, str]:
    """Return stage → the first clause of its docstring."""
    texts = {stage: jobs.file_of(stage).read_text(encoding="utf-8") for stage in (*STAGES, *LAST)}
    docstrings = {name: ast.get_docstring(ast.parse(text)) or "" for name, text in texts.items()}
    return {name: re.split(r"[,;:.]", " ".join(text.split()), maxsplit=1)[0] for name, text in docstrings.items()}


def edges() -> dict[str, set[str]]:
    """Return stage → the stages whose files its jobs read, in the study tour; stages with most jobs come first."""
    nodes = plan.make(reading.read(*reading.load([str(ROOT / "studies/tour.yaml")]))).all()
    jobs = Counter(node.stage for node in nodes)
    before: dict[str, set[str]] = {stage: set() for stage, _ in jobs.most_common()}
    for node in nodes:
        # A selection is read by the memberships of another scenario, an earlier stage: that edge is left out.
        earlier = STAGES[: STAGES.index(node.stage)]
        before[node.stage] |= {parent.stage for parent in node.parents.values()} & set(earlier)
    return before | {stage: set(parents) for stage, parents in LAST.items()}


def above(stage: str, before: dict[str, set[str]]) -> set[str]:
    """Return all stages that lead to a stage, directly or through others. ``before``: stage → those directly before
    it."""
    return before[stage].union(*(above(parent, before) for parent in before[stage]))


def column(stage: str, before: dict[str, set[str]]) -> int:
    """Return the column of a stage's box: one more than the rightmost column of the stages before it; 0 if there are
    none."""
    return 1 + max((column(parent, before) for parent in before[stage]), default=-1)


def svg() -> str:
    """Return the picture: a box for each stage, and arrows to it from the stages before it.

    An arrow is left out if its stage is also reached through another stage.
    """
    texts, before = captions(), edges()
    rows: Counter[int] = Counter()
    places: dict[str, tuple[int, int]] = {}
    for stage in before:
        at = column(stage, before)
        places[stage] = at * (WIDTH + ACROSS) + 8, rows[at] * (HEIGHT + DOWN) + 8
        rows[at] += 1
    right, bottom = (max(place[axis] for place in places.values()) for axis in (0, 1))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + WIDTH + 8} {bottom + HEIGHT + 8}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="end" markerWidth="9" markerHeight="7" refX="8" refY="3.5" orient="auto">'
        '<path d="M0 0L9 3.5L0 7z" fill="#888"/></marker></defs>',
    ]
    for stage, parents in before.items():
        x, y = places[stage]
        for parent in sorted(parents.difference(*(above(parent, before) for parent in parents))):
            left, top = places[parent]
            start, end = (left + WIDTH, top + HEIGHT / 2), (x, y + HEIGHT / 2)
            middle = (start[0] + end[0]) / 2
            curve = f"M{start[0]} {start[1]}C{middle} {start[1]} {middle} {end[1]} {end[0]} {end[1]}"
            parts.append(f'<path d="{curve}" fill="none" stroke="#888" stroke-width="1.5" marker-end="url(#end)"/>')
    for stage, (x, y) in places.items():
        lines = textwrap.wrap(texts[stage], LETTERS)[:4]
        box = f'x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"'
        parts.append(f'<rect {box} rx="8" fill="#e8eaf6" stroke="#3949ab"/>')
        parts.append(f'<text x="{x + 10}" y="{y + 19}" font-weight="bold" fill="#1a237e">{stage}</text>')
        for i, line in enumerate(lines):
            parts.append(f'<text x="{x + 10}" y="{y + 37 + 15 * i}" fill="#222">{html.escape(line)}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(PICTURE).write_text(svg(), encoding="utf-8")
    print(f"written: {PICTURE}", file=sys.stderr)
