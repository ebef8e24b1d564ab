"""Make the tables of cost, the only output whose numbers change from run to run."""

import math
from pathlib import Path
from typing import Any

from unlearning_audit.report.tables import Entry, Head, Line, Sheet, lookup, naming, number
from unlearning_audit.store import cells
from unlearning_audit.store.files import read_json

COLUMNS = (
    "stage", "node", "models", "seconds", "cpu_seconds", "unlearn_seconds", "peak_memory_mib", "device", "processor",
)  # fmt: skip
#: Share of the retraining time above which the competition rejects a method.
LIMIT = 0.2
SLOW = f"takes more than {LIMIT:.0%} of the time of retraining: the competition would reject it, whatever its score"
#: Stages whose jobs make models.
STAGES_OF_MODELS = ("train", "unlearn")


def rows(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each job of the plan, a row of what it cost (`COLUMNS`), from the record in its ``spec.json``.
    ``nodes``: for each job its stage, its name (``node``) and the path of that file (``spec``)."""
    return [_row(node, read_json(node["spec"])) for node in nodes]


def read(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of ``cost.csv``. Raises ArtifactError if the file is missing or its columns are not valid."""
    text = ("stage", "node", "device", "processor")
    return cells.table(path, COLUMNS, text=text, whole=("models", "peak_memory_mib"))


def ratios(
    ledger: list[dict[str, Any]], cases: list[dict[str, Any]]
) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return (scenario, setting, method) → (seconds of unlearning per model, their ratio to the seconds of retraining).

    The ratio is NaN if nothing was retrained in that scenario and setting, or if retraining took 0 seconds.

    Parameters
    ----------
    ledger
        A row for each job.
    cases
        For each method in each scenario the paths (``specs``) of the records of its jobs, which end in
        stage/name/spec.json.
    """
    row_of = {(row["stage"], row["node"]): row for row in ledger}
    spent = {}
    for case in cases:
        jobs = [row_of[stage, name] for *_, stage, name, _ in (Path(spec).parts for spec in case["specs"])]
        models = sum(row["models"] for row in jobs)
        spent[(*lookup.place(case), case["method"])] = sum(row["unlearn_seconds"] for row in jobs) / max(models, 1)
    times = {}
    for (scenario, setting, method), seconds in spent.items():
        retrain = spent.get((scenario, setting, "retrain"), math.nan)
        times[scenario, setting, method] = (seconds, seconds / retrain if retrain else math.nan)
    return times


def sheets(ledger: list[dict[str, Any]], order: dict[str, Any]) -> list[Sheet]:
    """Return two tables: the cost of every stage, and the time of every method relative to retraining."""
    return [_stages(ledger), _methods(ledger, order["cases"])]


def _stages(ledger: list[dict[str, Any]]) -> Sheet:
    """Return the table of jobs, models, time and memory of every stage, in the order of the ledger. Models are counted
    only in the stages `STAGES_OF_MODELS`, train and unlearn; the footer is on all stages together."""
    sums: dict[str, dict[str, Any]] = {}
    for row in ledger:
        total = sums.setdefault(row["stage"], {"jobs": 0, "models": 0, "seconds": 0.0, "cpu_seconds": 0.0, "peak": 0})
        total["jobs"] += 1
        total["models"] += row["models"] if row["stage"] in STAGES_OF_MODELS else 0
        total["seconds"] += row["seconds"]
        total["cpu_seconds"] += row["cpu_seconds"]
        total["peak"] = max(total["peak"], row["peak_memory_mib"])
    lines = [Line(stage, _cells(total["jobs"], total["models"], total["seconds"], total["peak"]))
             for stage, total in sums.items()]  # fmt: skip
    whole = sum(total["seconds"] for total in sums.values())
    footer = [Line("all stages", _cells(len(ledger), models=None, seconds=whole, peak=None))]
    heads = [*map(Head, ("jobs", "models", "time", "per model", "peak memory"))]
    reading = "Wall time of the jobs as measured when they ran."
    records = [{"what": stage, **total} for stage, total in sums.items()]
    return Sheet("cost", "What each stage cost", reading, "stage", heads, lines, records, footer)


def _methods(ledger: list[dict[str, Any]], cases: list[dict[str, Any]]) -> Sheet:
    """Return the table of each method's time relative to retraining, with a column for each scenario. If a scenario
    has several settings, a number is the mean over them; the csv has each setting. The footer has the seconds of
    retraining per model."""
    times = ratios(ledger, cases)
    scenarios = list(dict.fromkeys(case["scenario"] for case in cases))

    def mean(scenario: str, method: str, *, ratio: bool) -> float | None:
        """Return the mean of the seconds of a method in ``times``, or of their ratios to retraining (``ratio``), over a
        scenario's settings; None if the scenario does not have the method."""
        values = [to_retrain if ratio else seconds for (of_scenario, _, of_method), (seconds, to_retrain)
                  in times.items() if (of_scenario, of_method) == (scenario, method)]  # fmt: skip
        return sum(values) / len(values) if values else None

    lines = [Line(naming.method(method), [_ratio(mean(scenario, method, ratio=True), method) for scenario in scenarios])
             for method in lookup.methods(cases)]  # fmt: skip
    retraining = [mean(scenario, "retrain", ratio=False) for scenario in scenarios]
    base = [Entry("—" if seconds is None else duration(seconds)) for seconds in retraining]
    records = []
    for (scenario, setting, method), (seconds, ratio) in times.items():
        over_limit = "yes" if _slow(ratio, method) else "no"
        records.append({"what": "unlearn", "scenario": scenario, "setting": setting, "method": method,
                        "per_model": seconds, "to_retrain": ratio,
                        "over_limit": "" if math.isnan(ratio) else over_limit})  # fmt: skip
    return Sheet(
        "cost-methods", "Time of unlearning relative to retraining",
        "Seconds of unlearning per model, divided by those of retraining: 1 = as long as retraining.", "method",
        [Head(name.replace("_", " ")) for name in scenarios], lines, records, [Line("retraining, per model", base)],
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Return seconds in a readable unit: 0.21 s, 14 s, 3.5 min, 2.1 h; "—" if they are NaN or infinite."""
    if not math.isfinite(seconds):
        return "—"
    value, unit = seconds, "s"
    if seconds >= 90:
        value, unit = (seconds / 60, "min") if seconds < 5400 else (seconds / 3600, "h")
    return f"{value:.0f} {unit}" if value >= 10 or value == 0 else f"{value:.2g} {unit}"


def _row(node: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return a job's row in the ledger of costs, from its record ``spec``. What the record does not hold is 0 or ""."""
    seconds, machine = spec.get("seconds", {}), spec.get("machine", {})
    values = (
        node["stage"], node["node"], int(spec.get("models", 0)), float(seconds.get("function", 0.0)),
        float(seconds.get("process", 0.0)), float(spec.get("unlearn_seconds", 0.0)),
        int(spec.get("peak_memory_mib", 0)), str(machine.get("device", "")), str(machine.get("processor", "")),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def _cells(jobs: int, models: int | None, seconds: float, peak: int | None) -> list[Entry]:
    """Return the cells of one stage: jobs, models, time, time per model and peak memory in MiB or GiB. Without models
    (None or 0), their number and the time per model are ""; without memory (None), its cell is ""."""
    count, per_model = (str(models), duration(seconds / models)) if models else ("", "")
    memory = ""
    if peak is not None:
        memory = f"{peak / 1024:.1f} GiB" if peak >= 1000 else f"{peak} MiB"
    return [*map(Entry, (str(jobs), count, duration(seconds), per_model, memory))]


def _slow(ratio: float, method: str) -> bool:
    """Return whether the competition of which `LIMIT` is a rule would reject a method for its time. ``ratio``: its time
    relative to retraining."""
    return ratio > LIMIT and method not in naming.BASELINES


def _ratio(ratio: float | None, method: str) -> Entry:
    """Return the cell of a method's time relative to retraining: empty for None, a dash with a reason for NaN, else the
    number, with a warning if the method is too slow."""
    if ratio is None:
        return Entry("")  # the scenario does not have this method
    if math.isnan(ratio):
        return Entry("—", ("no retraining was timed, so there is nothing to compare with",))
    text = f"{number(ratio, 2 if ratio < 10 else 0)} ×"
    return Entry(text, notes=(SLOW,), tone="bad") if _slow(ratio, method) else Entry(text)
