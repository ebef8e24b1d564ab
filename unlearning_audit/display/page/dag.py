"""The stages of a study as a small drawing: boxes with jobs and time, arrows for inputs."""

from dataclasses import dataclass
from html import escape

from unlearning_audit.display import naming
from unlearning_audit.display.tables.cost import duration

BOX, GAP, TALL = (104, 74), 38, (250, 74)


@dataclass(frozen=True)
class Stage:
    """One box: its name and the lines below it."""

    name: str
    lines: tuple[str, ...]


def stages(costs: dict[str, dict], tables: int, figures: int) -> list[Stage]:
    """Boxes from `tables.cost.stages`, and a last one for so many tables and figures, and the report."""
    boxes = []
    for name, cost in costs.items():
        models = [naming.count(cost["models"], "model")] if cost["models"] else []
        boxes.append(Stage(name, (naming.count(cost["jobs"], "job"), *models, duration(cost["seconds"]))))
    return [*boxes, Stage("report", (naming.count(tables, "table"), naming.count(figures, "figure")))]


def _steps(boxes: list[Stage], edges: list[list[str]], step: float) -> list[tuple[float, int]]:
    """Of every edge between boxes where its first box begins, and how many boxes further the other one is."""
    place = {box.name: i for i, box in enumerate(boxes)}
    return [(place[a] * step + 1, place[b] - place[a]) for a, b in edges if a in place and b in place]


def across(boxes: list[Stage], edges: list[list[str]]) -> str:
    """The drawing from left to right, as svg text. Edges that skip a stage run above in an arc."""
    step = BOX[0] + GAP
    steps = _steps(boxes, edges, step)
    top = 12 + 14 * max([abs(jump) - 1 for _, jump in steps if abs(jump) > 1], default=0)
    parts = [_box(box, i * step + 1, top, BOX) for i, box in enumerate(boxes)]
    for start, jump in steps:
        if jump == 1:
            parts.append(_arrow(f"M{start + BOX[0] + 3},{top + BOX[1] / 2} h{GAP - 8}"))
        else:
            # A backward arrow (from a selection to splits) uses the opposite sides.
            ends = (0.7, 0.3) if jump > 0 else (0.3, 0.7)
            left, right = start + BOX[0] * ends[0], start + jump * step + BOX[0] * ends[1]
            rise = 14 * (abs(jump) - 1) + 8
            parts.append(
                _arrow(f"M{left},{top - 2} C{left},{top - rise} {right},{top - rise} {right},{top - 5}", "far")
            )
    return _drawing(parts, len(boxes) * step - GAP + 2, top + BOX[1] + 2, "across")


def down(boxes: list[Stage], edges: list[list[str]]) -> str:
    """The drawing from top to bottom, for narrow windows."""
    step = TALL[1] + GAP
    parts = [_box(box, 1, i * step + 1, TALL) for i, box in enumerate(boxes)]
    for start, jump in _steps(boxes, edges, step):
        if jump == 1:
            parts.append(_arrow(f"M{TALL[0] / 2},{start + TALL[1] + 3} v{GAP - 8}"))
        else:
            y, end, out = start + TALL[1] * 0.7, start + jump * step + TALL[1] * 0.3, TALL[0] + 14 * abs(jump)
            parts.append(_arrow(f"M{TALL[0] + 2},{y} C{out},{y} {out},{end} {TALL[0] + 5},{end}", "far"))
    return _drawing(parts, TALL[0] + 40, len(boxes) * step - GAP + 2, "down")


def _box(box: Stage, x: float, y: float, size: tuple[int, int]) -> str:
    width, height = size
    lines = "".join(
        f'<text class="fact" x="{x + width / 2}" y="{y + 36 + 14 * i}">{escape(line)}</text>'
        for i, line in enumerate(box.lines)
    )
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
        f'<text class="name" x="{x + width / 2}" y="{y + 20}">{escape(box.name)}</text>{lines}'
    )


def _arrow(path: str, kind: str = "near") -> str:
    return f'<path class="{kind}" d="{path}" marker-end="url(#arrow-head)"/>'


def _drawing(parts: list[str], width: float, height: float, kind: str) -> str:
    head = (
        f'<defs><marker id="arrow-head-{kind}" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path class="head" d="M0,0.5 L7,4 L0,7.5 z"/></marker></defs>'
    )
    body = "".join(parts).replace("url(#arrow-head)", f"url(#arrow-head-{kind})")
    return (
        f'<svg class="dag {kind}" viewBox="0 0 {width:g} {height:g}" style="max-width:{width:g}px" role="img" '
        f'aria-label="Stages of the workflow">{head}{body}</svg>'
    )
