"""Forecast of cost: seconds and bytes of every job, from the plan and a few rates. Pure arithmetic.

A job that trains or unlearns takes

    seconds = models · (work · step + samples · answer + norms · norm)

where work counts the rows that a model reads (times epochs, if it is trained), and step, answer and norm are seconds
per row: measured by a short probe, or taken from jobs of the same kind that are done. All other jobs are forecast
from those of the same name on record, else from the default study, in proportion to models × samples.
"""

import heapq
import json
from collections.abc import Iterable

from unlearning_audit.study.schema import STAGES
from unlearning_audit.workflow.nodes import Plan
from unlearning_audit.workflow.progress import WEIGHTS

#: Stages whose jobs hold models.
MODELS = ("train", "unlearn")

#: Models × samples of a job of the default study, in which `WEIGHTS` were measured; there an attack job left so many
#: bytes for each of them.
CELLS, SCORE_BYTES = 32 * 1797, 15

#: Settings of a recipe that do not affect the time of a step.
FREE = ("epochs", "lr", "schedule", "milestones", "lr_decay")

#: (stage, node).
Name = tuple[str, str]

COLUMNS = ("stage", "node", "models", "seconds", "bytes", "rate")


def nodes(plan: Plan) -> list[dict]:
    """Every node in JSON values: stage, name (node), spec file, settings, place, and its parents' names by stage
    (after)."""
    made_by = {path: n for made in plan.nodes.values() for n in made.values() for path in n.outputs.values()}
    found = []
    for node in (n for stage in STAGES for n in plan.nodes[stage].values()):
        after: dict[str, list[str]] = {}
        for paths in node.inputs.values():
            for path in [paths] if isinstance(paths, str) else paths:
                names = after.setdefault(made_by[path].stage, [])
                names.extend([made_by[path].name] if made_by[path].name not in names else [])
        found.append({"stage": node.stage, "node": node.name, "spec": node.outputs["spec"],
                      "settings": node.settings, "place": node.place, "after": after})  # fmt: skip
    return found


def label(node: str) -> str:
    """A node's name without its key."""
    return node.rsplit("-", 1)[0]


# ---------------------------------------------------------------- jobs with models


def job(node: dict, data: dict, splits: dict) -> dict:
    """A job with models in numbers: its kind, models, work, samples, norms (rows of which gradient norms are kept) and
    the models it writes. ``data`` and ``splits`` as `Draws.facts` and `Draws.sizes` give them."""
    settings, method = node["settings"], node["settings"].get("method")
    recipe = {name: value for name, value in settings["recipe"].items() if name not in FREE}
    recipe["dp"] = recipe["dp"] is not None
    trains = method in (None, "retrain")
    rows = splits["train"] - (splits["forget"] if method == "retrain" else 0)
    what = [
        data["shape"], data["classes"], settings["model"], settings["options"], recipe, settings["gradients"],
        # Training takes the same in either stage; a method's time depends on the size of the forget set.
        "" if trains else [method, settings["method_options"], round(splits["forget"] / splits["train"], 2)],
    ]  # fmt: skip
    return {
        "kind": json.dumps(what, sort_keys=True),
        "models": splits["originals" if method is None else "models"],
        "work": rows * (settings["recipe"]["epochs"] if trains else 1),
        "samples": data["samples"],
        "norms": {False: 0, True: splits["forget"], "all": data["samples"]}[settings["gradients"]],
        "written": splits["models"],
        "answers": data["samples"] * data["classes"] * 4,
    }


def seconds(job: dict, rate: dict) -> float:
    """Forecast seconds of a job with models; ``rate``: seconds per row (step, answer, norm)."""
    reads = job["samples"] * rate["answer"] + job["norms"] * rate["norm"]
    return job["models"] * (job["work"] * rate["step"] + reads)


def size(job: dict, rate: dict) -> float:
    """Bytes of its weights and logits; ``rate``: bytes of a model."""
    return job["written"] * (rate["bytes"] + job["answers"] + 8 * job["norms"])


def weights(jobs: dict[str, dict], rates: dict[str, dict]) -> float:
    """Bytes of the weights of all ``jobs`` with models; ``rates`` as `recorded` gives them."""
    return sum(max(one["written"] * rates[one["kind"]]["bytes"], 0.0) for one in jobs.values())


def recorded(jobs: dict[str, dict], done: dict[str, dict]) -> dict[str, dict]:
    """kind → rate, from those of the ``jobs`` that are ``done`` (node → seconds, bytes)."""
    sums: dict[str, list[float]] = {}
    for name in jobs.keys() & done.keys():
        one, total = jobs[name], sums.setdefault(jobs[name]["kind"], [0.0] * 4)
        weights = done[name]["bytes"] - size(one, {"bytes": 0})
        for i, value in enumerate((done[name]["seconds"], one["models"] * one["work"], weights, one["written"])):
            total[i] += value
    return {
        kind: {"step": spent / max(work, 1), "answer": 0.0, "norm": 0.0, "bytes": left / written, "from": "ledger"}
        for kind, (spent, work, left, written) in sums.items()
    }


# ---------------------------------------------------------------- every job


def jobs(nodes: list[dict], facts: dict[str, dict], sizes: dict[str, dict]) -> dict[str, dict]:
    """All jobs with models, by node; ``facts`` of data nodes and ``sizes`` of splits nodes by their names."""
    return {
        node["node"]: job(node, facts[node["after"]["data"][0]], sizes[node["after"]["splits"][0]])
        for node in nodes if node["stage"] in MODELS
    }  # fmt: skip


def rows(
    nodes: list[dict],
    facts: dict[str, dict],
    sizes: dict[str, dict],
    rates: dict[str, dict],
    done: dict[str, dict],
    others: Iterable[dict] = (),
) -> list[dict]:
    """Every node with the `COLUMNS`; ``rate`` says where its seconds come from: done (it took them), ledger, probe or
    default study.

    ``rates``: kind → rate, "from" in it; ``done``: node → seconds and bytes; ``others``: stage, node, seconds and
    bytes of all jobs without models on record, of whichever study.
    """
    known = jobs(nodes, facts, sizes)
    alike: dict[tuple[str, str], list[dict]] = {}
    for other in others:
        alike.setdefault((other["stage"], label(other["node"])), []).append(other)
    found = []
    for node in nodes:
        name, stage, models = node["node"], node["stage"], 0
        if name in known:
            one, rate = known[name], rates[known[name]["kind"]]
            models, spent, left, said = one["written"], seconds(one, rate), size(one, rate), rate["from"]
        else:
            spent, left, said = scoring(node, _cells(node, facts, sizes), alike.get((stage, label(name)), []))
            left = {**facts, **sizes}.get(name, {"bytes": left})["bytes"]
        if name in done:
            spent, left, said = done[name]["seconds"], done[name]["bytes"], "done"
        found.append(dict(zip(COLUMNS, (stage, name, models, spent, left, said), strict=True)))
    return found


def scoring(node: dict, cells: int, alike: list[dict]) -> tuple[float, float, str]:
    """(seconds, bytes, where from) of a job without models: the mean of those on record with the same stage and label
    (``alike``), else that of the default study, in proportion to ``cells``, which are models × samples."""
    if alike:
        return (*(sum(one[part] for one in alike) / len(alike) for part in ("seconds", "bytes")), "ledger")
    stage, scale = node["stage"], max(cells / CELLS, 1.0)
    return WEIGHTS[stage] * scale, cells * SCORE_BYTES if stage == "attack" else 0.0, "default study"


def total(rows: Iterable[dict]) -> dict[str, dict]:
    """Jobs, models, seconds, bytes of each stage in the order of ``rows``, and the ``rates`` they rest on."""
    found: dict[str, dict] = {}
    for row in rows:
        one = found.setdefault(row["stage"], {"jobs": 0, "models": 0, "seconds": 0.0, "bytes": 0.0, "rates": []})
        one["jobs"] += 1
        for name in ("models", "seconds", "bytes"):
            one[name] += row[name]
        one["rates"] += [row["rate"]] if row["rate"] not in one["rates"] else []
    return found


def parents(nodes: list[dict]) -> dict[Name, list[Name]]:
    """Which nodes each of `nodes` is made from."""
    return {
        (node["stage"], node["node"]): [(stage, name) for stage, names in node["after"].items() for name in names]
        for node in nodes
    }


def wall(rows: Iterable[dict], start: dict[str, float], slots: int, gpus: int, after: dict[Name, list[Name]]) -> float:
    """Seconds until all is made, if ``slots`` jobs run at once, of which ``gpus`` (0: there is none) may train or
    unlearn. A job runs as soon as there is room and its parents (``after``) are there; of several the first.

    ``start``: seconds to start the process of a stage's job. A parent that is none of ``rows`` is there already.
    """
    cost = {(row["stage"], row["node"]): row["seconds"] + start[row["stage"]] for row in rows}
    place = {name: i for i, name in enumerate(cost)}
    missing = {name: [one for one in after.get(name, ()) if one in cost] for name in cost}
    left, children = {name: len(some) for name, some in missing.items()}, {name: [] for name in cost}
    for name, some in missing.items():
        for one in some:
            children[one].append(name)
    room, ready, running, now = {True: gpus, False: slots}, {True: [], False: []}, [], 0.0

    def on_gpu(name: Name) -> bool:
        return bool(gpus) and name[0] in MODELS

    def let(name: Name) -> None:
        heapq.heappush(ready[on_gpu(name)], (place[name], name))

    for name in (name for name in cost if not left[name]):
        let(name)
    while True:
        while room[False] and (open_ := [queue for kind, queue in ready.items() if queue and room[kind]]):
            _, name = heapq.heappop(min(open_))
            heapq.heappush(running, (now + cost[name], name))
            room[False] -= 1
            room[True] -= on_gpu(name)
        if not running:
            return now
        now, name = heapq.heappop(running)
        room[False] += 1
        room[True] += on_gpu(name)
        for child in children[name]:
            left[child] -= 1
            if not left[child]:
                let(child)


def kept(rows: list[dict], former: list[dict]) -> list[dict]:
    """The rows to keep of a forecast; for jobs that are done, the earlier forecast."""
    told = {(row["stage"], row["node"]): row for row in former if row["rate"] != "done"}
    return [told.get((row["stage"], row["node"]), row) if row["rate"] == "done" else row for row in rows]


def _cells(node: dict, facts: dict[str, dict], sizes: dict[str, dict]) -> int:
    """Models × samples that a node reads, 0 if that is not known."""
    models = sum(sizes[name]["models"] for name in node["after"].get("splits", ()))
    return models * max((facts[name]["samples"] for name in node["after"].get("data", ())), default=0)
