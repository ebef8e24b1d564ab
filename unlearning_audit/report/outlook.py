"""Predict what a study costs and what it will be able to detect, without measuring anything."""

import math
from typing import Any

from unlearning_audit.report import words
from unlearning_audit.report.tables import formats, telling
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.store.files import ArtifactError
from unlearning_audit.workflow import announcement, compared
from unlearning_audit.workflow import costs as costs_of
from unlearning_audit.workflow.forecast import pilots
from unlearning_audit.workflow.nodes import Plan


def records(plan: Plan) -> dict[str, Any]:
    """Predict what a study will cost and what it will detect, before it is run; return JSON values.

    ``seconds``: processor time of the missing jobs, None if unknown; ``rates``: what this is based on; ``missing``: how
    many jobs are missing; ``telling``: what each comparison will detect; ``unknown``: why that cannot be predicted, ""
    if it can.
    """
    specs = plan.specs()
    done = costs_of.measured(specs)
    costs = costs_of.expected(specs, done)
    tells = costs_of.tell(specs, done)
    known = tells or announcement.small(plan)
    rest = sum(seconds for path, seconds in costs.items() if path not in done)
    seconds = {(node.stage, node.name): costs[node.outputs["spec"]] if tells else math.nan for node in plan.all()}
    told, unknown = [], ""
    try:
        told = telling.records(compared.comparisons(plan), pilots.planned(plan), seconds) if plan.comparisons else []
    except ArtifactError as error:
        unknown = str(error)
    return {
        "seconds": rest if known else None, "rates": "finished jobs" if tells else "small models",
        "missing": len(costs) - len(done), "telling": told, "unknown": unknown,
    }  # fmt: skip


def text(outlook: dict[str, Any]) -> str:
    """Return the prediction of `records` as text for a terminal."""
    lines = []
    if outlook["seconds"] is None:
        lines.append("The time is known once models are trained: run the study with few pairs, then forecast again.")
    elif outlook["missing"]:
        rates = f"by the rates of {outlook['rates']}"
        lines.append(f"The missing jobs take about {duration(outlook['seconds'])} of processor time, {rates}.")
    else:
        lines.append("Nothing is missing: all results that the study needs are there.")
    if outlook["unknown"]:
        return "\n".join([*lines, f"What the study can distinguish is not known: {outlook['unknown']}"])
    known = [record for record in outlook["telling"] if "metric" in record]
    if known:
        lines += ["", f"{words.TELLING_TITLE}. {words.TELLING}", "", *formats.aligned(telling.rows(known)), ""]
    if len(known) < len(outlook["telling"]):
        lines.append("What the study can distinguish is predicted after a first run with few pairs.")
    return "\n".join(lines)
