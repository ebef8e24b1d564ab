"""Forecast of a study's cost beside what jobs took: tables for the terminal and for files."""

from pathlib import Path

from unlearning_audit.artifacts import cells
from unlearning_audit.display.tables.cost import duration
from unlearning_audit.display.tables.typeset import Entry, Head, Line, Sheet, number
from unlearning_audit.workflow.forecast import arithmetic

HEADS = ("jobs", "models", "time", "disk", "rate from")


def sheet(rows: list[dict], start: dict[str, float], gpus: int) -> Sheet:
    """A line for each stage, one for the start of processes, and their sum."""
    totals = arithmetic.total(rows)
    lines = [
        _line(stage, total["jobs"], total["models"] or "", duration(total["seconds"]), space(total["bytes"]),
              ", ".join(total["rates"]))
        for stage, total in totals.items()
    ]  # fmt: skip
    starting = sum(start[row["stage"]] for row in rows)
    seconds, size = (sum(total[part] for total in totals.values()) for part in ("seconds", "bytes"))
    footer = (
        _line("starting processes", len(rows), "", duration(starting), "", "probe"),
        _line("all", len(rows), "", duration(seconds + starting), space(size), ""),
    )
    reading = "Time of a core" + (", of a GPU for jobs that hold models." if gpus else ".")
    return Sheet("forecast", "Forecast of cost", reading, "stage", tuple(map(Head, HEADS)), tuple(lines), footer)


def compared(rows: list[dict], ledger: list[dict]) -> Sheet | None:
    """The forecast of jobs that were not done when it was made, beside the seconds that the ledger has of them; None
    if there are none."""
    seconds_of = {(row["stage"], row["node"]): row["seconds"] for row in ledger}
    forecasts = [row for row in rows if row["rate"] != "done" and (row["stage"], row["node"]) in seconds_of]
    if not forecasts:
        return None
    real = [{**row, "seconds": seconds_of[row["stage"], row["node"]]} for row in forecasts]
    lines = []
    whole = [{**row, "stage": "all"} for row in forecasts], [{**row, "stage": "all"} for row in real]
    for before, after in ((forecasts, real), whole):
        real_of = arithmetic.total(after)
        for stage, total in arithmetic.total(before).items():
            spent = real_of[stage]["seconds"]
            ratio = number(total["seconds"] / spent, 2) if spent else "—"
            lines.append(_line(stage, total["jobs"], duration(total["seconds"]), duration(spent), ratio))
    heads = tuple(map(Head, ("jobs", "forecast", "took", "ratio")))
    reading = "Seconds of jobs, foretold before they ran and measured when they did; ratio: forecast over truth."
    return Sheet("cost-forecast", "Forecast and truth", reading, "stage", heads, tuple(lines[:-1]), (lines[-1],))


def sentence(
    rows: list[dict], start: dict[str, float], slots: int, gpus: int, after: dict[arithmetic.Name, list], where: str
) -> str:
    """How long it takes where it was measured: all of it, and what is left; ``after`` as `forecast.wall` takes it."""
    left = [row for row in rows if row["rate"] != "done"]
    times = [duration(arithmetic.wall(group, start, slots, gpus, after)) for group in (rows, left)]
    rest = f", {times[1]} for what is left" if 0 < len(left) < len(rows) else ""
    places = f"{slots} job{'s' * (slots > 1)} at a time" + (f" on {gpus} GPU{'s' * (gpus > 1)}" if gpus else "")
    return f"With {places}: {times[0]} from nothing{rest}. Measured on {where}."


def memory(peaks: dict[str, int]) -> str:
    """What jobs that are done needed at most; ``peaks``: stage → MiB."""
    parts = ", ".join(f"{stage} {space(mib * 2**20)}" for stage, mib in peaks.items())
    return f"Most memory of a job that is done: {parts}. Ask a cluster for more: mem_mb in its profile."


def read(path: str | Path) -> list[dict]:
    """The rows of ``forecast.csv``. Raises ArtifactError as `cells.table`."""
    return cells.table(path, arithmetic.COLUMNS, text=("stage", "node", "rate"), whole=("models",))


def space(size: float) -> str:
    """Bytes as people say them: 830 kB, 12 MB, 3.4 GB."""
    scale, unit = next(((s, u) for s, u in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= s), (1e3, "kB"))
    value = size / scale
    return f"{value:.0f} {unit}" if value >= 10 or value == 0 else f"{value:.2g} {unit}"


def _line(label: str, *cells: object) -> Line:
    return Line(label, tuple(Entry(str(cell)) for cell in cells))
