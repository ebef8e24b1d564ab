"""Forecast of a study's cost: a table for the terminal, and sentences."""

from typing import Any

from unlearning_audit.report.tables.cost import duration
from unlearning_audit.report.tables.typeset import Entry, Head, Line, Sheet
from unlearning_audit.workflow.forecast import arithmetic

HEADS = ("jobs", "models", "time", "disk", "rate from")


def sheet(rows: list[dict[str, Any]], gpus: int) -> Sheet:
    """A line for each stage, and their sum."""
    totals = arithmetic.total(rows)
    lines = [
        _line(stage, total["jobs"], total["models"] or "", duration(total["seconds"]), space(total["bytes"]),
              ", ".join(total["rates"]))
        for stage, total in totals.items()
    ]  # fmt: skip
    seconds, size = (sum(total[part] for total in totals.values()) for part in ("seconds", "bytes"))
    footer = (_line("all", len(rows), "", duration(seconds), space(size), ""),)
    reading = "Time of a core" + (", of a GPU for jobs that hold models." if gpus else ".")
    return Sheet("forecast", "Forecast of cost", reading, "stage", tuple(map(Head, HEADS)), tuple(lines), footer)


def sentence(rows: list[dict[str, Any]], slots: int, gpus: int, nodes: list[dict[str, Any]], where: str) -> str:
    """How long it takes at least where it was measured: all of it, and what is left."""
    left = [row for row in rows if row["rate"] != "done"]
    times = [duration(arithmetic.wall(group, slots, gpus, nodes)) for group in (rows, left)]
    rest = f", {times[1]} for what is left" if 0 < len(left) < len(rows) else ""
    places = f"{slots} job{'s' * (slots > 1)} at a time" + (f" on {gpus} GPU{'s' * (gpus > 1)}" if gpus else "")
    return f"With {places}: {times[0]} from nothing{rest}. Measured on {where}."


def memory(peaks: dict[str, int]) -> str:
    """What jobs that are done needed at most; ``peaks``: stage → MiB."""
    parts = ", ".join(f"{stage} {space(mib * 2**20)}" for stage, mib in peaks.items())
    return f"Most memory of a job that is done: {parts}. Ask a cluster for more: mem_mb in its profile."


def space(size: float) -> str:
    """Bytes as people say them: 830 kB, 12 MB, 3.4 GB."""
    scale, unit = next(((s, u) for s, u in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= s), (1e3, "kB"))
    value = size / scale
    return f"{value:.0f} {unit}" if value >= 10 or value == 0 else f"{value:.2g} {unit}"


def _line(label: str, *cells: object) -> Line:
    return Line(label, tuple(Entry(str(cell)) for cell in cells))
