"""Print the forecast of a study's cost, and the cost of what is done."""

import sys
import time
from pathlib import Path
from typing import Any

from job import script

from unlearning_audit.report.tables import forecast as display
from unlearning_audit.report.tables import formats, telling
from unlearning_audit.store import tables
from unlearning_audit.store.files import read_json, seal
from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.forecast.sizes import Draws
from unlearning_audit.workflow.jobs import processor
from unlearning_audit.workflow.nodes import ROOT

#: Seconds between two lines that say how far the measurements have come.
PAUSE = 10.0


def probed(
    nodes: list[dict[str, Any]], jobs: dict[str, dict[str, Any]], draws: Draws, rates: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """kind → rate: those of ``rates``, and for every other kind that of its largest job, measured.

    The largest also has about as many models as step together, where that is what makes them fast.
    """
    ascending = sorted(jobs.items(), key=lambda entry: entry[1]["models"] * entry[1]["work"])
    missing = {name: kind for kind, name in {job["kind"]: name for name, job in ascending}.items() if kind not in rates}
    # Jobs with the same data are consecutive, so that data are read once.
    order = sorted((node for node in nodes if node["node"] in missing), key=lambda node: node["after"]["data"])
    measured, printed_at = dict(rates), time.monotonic()
    for i, node in enumerate(order):
        from unlearning_audit.workflow.forecast import probe

        if i == 0:
            say(f"Measuring {len(order)} kinds of jobs with models, in short runs of each.")
        if time.monotonic() - printed_at > PAUSE:
            printed_at = time.monotonic()
            say(f"[{i} of {len(order)}] next: {node['stage']} {arithmetic.label(node['node'])}")
        measured[missing[node["node"]]], note = probe.measure(node, draws)
        if note:
            say(note)
    return measured


def cost_of(spec: Path) -> dict[str, Any]:
    """Seconds and peak memory in MiB by a job's own account, and bytes of what it left."""
    facts, size = read_json(spec), sum(path.stat().st_size for path in spec.parent.iterdir())
    seconds = facts.get("seconds", {}).get("function", 0.0)
    return {"seconds": seconds, "bytes": size, "memory": facts.get("peak_memory_mib", 0)}


def _machine(gpus: int) -> str:
    if not gpus:
        return processor()
    from unlearning_audit.workflow.forecast import probe

    return probe.name()


def say(text: str) -> None:
    """To the terminal; what is printed otherwise goes to the log."""
    print(text, file=sys.__stdout__, flush=True)


def show(sheet: Any) -> None:
    """A table as text, with what it says."""
    say(f"\n{sheet.title}. {sheet.reading}\n\n{formats.plain(sheet)}")


@script
def forecast(settings: dict[str, Any]) -> None:
    """Writes the forecast of every job to forecast.csv."""
    nodes, file = settings["nodes"], Path(ROOT, settings["study"], "forecast.csv")
    draws = Draws(nodes)
    facts = {node["node"]: draws.facts(node["node"]) for node in nodes if node["stage"] == "data"}
    sizes = {node["node"]: draws.sizes(node["node"]) for node in nodes if node["stage"] == "splits"}
    jobs = arithmetic.jobs(nodes, facts, sizes)
    finished = {node["node"]: cost_of(Path(node["spec"])) for node in nodes if Path(node["spec"]).exists()}
    rates = probed(nodes, jobs, draws, arithmetic.recorded(jobs, finished))
    further = [
        {"stage": stage, "node": spec.parent.name, **cost_of(spec)}
        for stage in STAGES if stage not in arithmetic.MODELS for spec in sorted(Path(ROOT, stage).glob("*/spec.json"))
    ]  # fmt: skip
    rows = arithmetic.rows(nodes, facts, sizes, rates, finished, further)
    tables.write_rows(file, rows, arithmetic.COLUMNS)
    seal(file)
    show(display.sheet(rows, settings["gpus"]))
    if settings["comparisons"]:
        if told := telling.records(settings["comparisons"], nodes, rows):
            show(telling.sheet(told))
        for line in telling.inconclusive(settings["comparisons"], rows):
            say(line)
    if saved := arithmetic.weights(jobs, rates):
        say(f"{display.space(saved)} of what is written are weights; keep: logits deletes them when no job needs them.")
    if peaks := arithmetic.peaks(rows, finished):
        say(display.memory(peaks))
    slots, gpus = settings["slots"], settings["gpus"]
    say(display.sentence(rows, slots, gpus, nodes, _machine(gpus)))
