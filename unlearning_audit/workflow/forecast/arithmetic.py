"""Forecast of cost: seconds and bytes of every job, from the plan and a few rates. Pure arithmetic.

A job that trains, unlearns or reads gradients, tokens or hidden layers takes

    seconds = models · (work · step + samples · answer)

where work counts the rows that a model reads (times epochs, if it is trained), and step and answer are seconds per
row: measured by a short probe, or taken from jobs of the same kind that are done. All other jobs are forecast
from those of the same name on record, else from the default study, in proportion to models × samples.
"""

import json
from collections.abc import Iterable
from typing import Any

from unlearning_audit.evaluation.features import RETAINED, SIDE
from unlearning_audit.workflow.forecast.rates import SECONDS
from unlearning_audit.workflow.nodes import Plan
from unlearning_audit.workflow.progress import CHAIN, HEAVY

#: Stages whose jobs are forecast by their models, their work and a rate, as are signals of `rows`.
MODELS = ("train", "unlearn")

#: Models × samples of a job of the default study, in which `SECONDS` were measured; there such a job left so many bytes
#: for each of them.
CELLS, SCORE_BYTES = 32 * 1797, 15

#: Settings of a recipe that do not affect the time of a step.
FREE = ("epochs", "lr", "schedule", "milestones", "lr_decay")

#: (stage, node).
Name = tuple[str, str]

COLUMNS = ("stage", "node", "models", "seconds", "bytes", "rate")


def nodes(plan: Plan) -> list[dict[str, Any]]:
    """Every node in JSON values: stage, name (node), spec file, settings, place, and its parents' names by stage
    (after)."""
    table = []
    for node in plan.all():
        after: dict[str, list[str]] = {}
        for parent in node.parents.values():
            after.setdefault(parent.stage, []).append(parent.name)
        table.append({"stage": node.stage, "node": node.name, "spec": node.outputs["spec"],
                      "settings": node.settings, "place": node.place, "after": after})  # fmt: skip
    return table


def modelled(node: dict[str, Any]) -> bool:
    """Whether a job is forecast by its models, their work and a rate."""
    return node["stage"] in MODELS or "rows" in node["settings"]


def label(node: str) -> str:
    """A node's name without its key."""
    return node.rsplit("-", 1)[0]


# ---------------------------------------------------------------- jobs with models


def job(node: dict[str, Any], data: dict[str, Any], splits: dict[str, Any]) -> dict[str, Any]:
    """A job with models in numbers: its kind, models, work, samples that they answer, the models it writes and bytes of
    the answers of one. ``data`` and ``splits`` as `Draws.facts` and `Draws.sizes` give them."""
    settings, method = node["settings"], node["settings"].get("method")
    recipe = {name: value for name, value in settings["recipe"].items() if name not in FREE}
    recipe["dp"] = recipe["dp"] is not None
    if "rows" in settings:
        subset = min(data["samples"], 2 * SIDE + RETAINED) if settings["rows"] == "drawn" else data["samples"]
        rows = splits["forget"] if settings["rows"] == "forgotten" else subset
        parts = [data["shape"], data["classes"], settings["model"], settings["options"], recipe, settings["signal"]]
        return {"kind": json.dumps(parts, sort_keys=True), "models": splits["models"], "work": rows, "samples": 0,
                "written": splits["models"], "answers": 8 * rows}  # fmt: skip
    trains = method in (None, "retrain")
    rows = splits["train"] - (splits["forget"] if method == "retrain" else 0)
    parts = [
        data["shape"], data["classes"], settings["model"], settings["options"], recipe,
        # Training takes the same in either stage; a method's time depends on the size of the forget set.
        "" if trains else [method, settings["method_options"], round(splits["forget"] / splits["train"], 2)],
    ]  # fmt: skip
    return {
        "kind": json.dumps(parts, sort_keys=True),
        "models": splits["originals" if method is None else "models"],
        "work": rows * (settings["recipe"]["epochs"] if trains else 1),
        "samples": data["samples"],
        "written": splits["models"],
        "answers": data["samples"] * data["classes"] * 4,
    }


def seconds(job: dict[str, Any], rate: dict[str, Any]) -> float:
    """Forecast seconds of a job with models; ``rate``: seconds per row (step, answer)."""
    return float(job["models"] * (job["work"] * rate["step"] + job["samples"] * rate["answer"]))


def size(job: dict[str, Any], rate: dict[str, Any]) -> float:
    """Bytes of what it writes; ``rate``: bytes of a model."""
    return float(job["written"] * (rate["bytes"] + job["answers"]))


def weights(jobs: dict[str, dict[str, Any]], rates: dict[str, dict[str, Any]]) -> float:
    """Bytes of the weights of all ``jobs`` with models; ``rates`` as `recorded` gives them."""
    return float(sum(max(job["written"] * rates[job["kind"]]["bytes"], 0.0) for job in jobs.values()))


def recorded(jobs: dict[str, dict[str, Any]], measured: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """kind → rate, from those of the ``jobs`` that are ``measured`` (node → seconds, bytes)."""
    sums: dict[str, list[float]] = {}
    for name in jobs.keys() & measured.keys():
        job, total = jobs[name], sums.setdefault(jobs[name]["kind"], [0.0] * 4)
        weights = measured[name]["bytes"] - size(job, {"bytes": 0})
        for i, value in enumerate((measured[name]["seconds"], job["models"] * job["work"], weights, job["written"])):
            total[i] += value
    return {
        kind: {"step": spent / max(work, 1), "answer": 0.0, "bytes": left / models, "from": "ledger"}
        for kind, (spent, work, left, models) in sums.items()
    }


# ---------------------------------------------------------------- every job


def jobs(
    nodes: list[dict[str, Any]], facts: dict[str, dict[str, Any]], sizes: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """All jobs with models, by node; ``facts`` of data nodes and ``sizes`` of splits nodes by their names."""
    return {
        node["node"]: job(node, facts[node["after"]["data"][0]], sizes[node["after"]["splits"][0]])
        for node in nodes if modelled(node)
    }  # fmt: skip


def rows(
    nodes: list[dict[str, Any]],
    facts: dict[str, dict[str, Any]],
    sizes: dict[str, dict[str, Any]],
    rates: dict[str, dict[str, Any]],
    measured: dict[str, dict[str, Any]],
    records: Iterable[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Every node with the `COLUMNS`; ``rate`` says where its seconds come from: done (it took them), ledger, probe or
    default study.

    ``rates``: kind → rate, "from" in it; ``measured``: node → seconds and bytes; ``records``: stage, node, seconds and
    bytes of all jobs without models on record, of whichever study.
    """
    with_models = jobs(nodes, facts, sizes)
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        alike.setdefault((record["stage"], label(record["node"])), []).append(record)
    table = []
    for node in nodes:
        name, stage, models = node["node"], node["stage"], 0
        if name in with_models:
            job, rate = with_models[name], rates[with_models[name]["kind"]]
            models, spent, left, source = job["written"], seconds(job, rate), size(job, rate), rate["from"]
        else:
            spent, left, source = scoring(node, _cells(node, facts, sizes), alike.get((stage, label(name)), []))
            left = {**facts, **sizes}.get(name, {"bytes": left})["bytes"]
        if name in measured:
            spent, left, source = measured[name]["seconds"], measured[name]["bytes"], "done"
        table.append(dict(zip(COLUMNS, (stage, name, models, spent, left, source), strict=True)))
    return table


def scoring(node: dict[str, Any], cells: int, alike: list[dict[str, Any]]) -> tuple[float, float, str]:
    """(seconds, bytes, where from) of a job without models: the mean of those on record with the same stage and label
    (``alike``), else that of the default study, in proportion to ``cells``, which are models × samples."""
    if alike:
        return (*(sum(record[part] for record in alike) / len(alike) for part in ("seconds", "bytes")), "ledger")
    stage, scale = node["stage"], max(cells / CELLS, 1.0)
    return SECONDS[stage] * scale, cells * SCORE_BYTES if stage == "metrics" else 0.0, "default study"


def total(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Jobs, models, seconds, bytes of each stage in the order of ``rows``, and the ``rates`` they rest on."""
    sums: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = sums.setdefault(row["stage"], {"jobs": 0, "models": 0, "seconds": 0.0, "bytes": 0.0, "rates": []})
        entry["jobs"] += 1
        for name in ("models", "seconds", "bytes"):
            entry[name] += row[name]
        entry["rates"] += [row["rate"]] if row["rate"] not in entry["rates"] else []
    return sums


def peaks(rows: Iterable[dict[str, Any]], measured: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Stage → most memory in MiB of its jobs that are ``measured`` (node → memory, 0 where it is not known),
    in the order of ``rows``."""
    most: dict[str, int] = {}
    for row in rows:
        if memory := measured.get(row["node"], {}).get("memory", 0):
            most[row["stage"]] = max(memory, most.get(row["stage"], 0))
    return most


def wall(rows: list[dict[str, Any]], slots: int, gpus: int, nodes: list[dict[str, Any]]) -> float:
    """Seconds until all is made, if ``slots`` jobs run at once, of which ``gpus`` (0: there is none) may hold models:
    what all take together, or what the longest chain of jobs takes, each made from the one before."""
    cost = {(row["stage"], row["node"]): row["seconds"] for row in rows}
    chain: dict[Name, float] = {}
    for stage in ("external", *CHAIN):  # no stage is made from a later one, but for a selection
        for node in (node for node in nodes if node["stage"] == stage):
            above = [chain.get((of, name), 0.0) for of, names in node["after"].items() for name in names]
            chain[stage, node["node"]] = cost.get((stage, node["node"]), 0.0) + max(above, default=0.0)
    heavy = sum(row["seconds"] for row in rows if row["stage"] in HEAVY) / gpus if gpus else 0.0
    return float(max([sum(cost.values()) / slots, heavy, *chain.values()]))


def _cells(node: dict[str, Any], facts: dict[str, dict[str, Any]], sizes: dict[str, dict[str, Any]]) -> int:
    """Models × samples that a node reads, 0 if that is not known."""
    models = sum(sizes[name]["models"] for name in node["after"].get("splits", ()))
    return int(models * max((facts[name]["samples"] for name in node["after"].get("data", ())), default=0))
