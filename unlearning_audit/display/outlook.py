"""What a study costs and what it will be able to tell, as far as that is known without measuring anything."""

import math

from unlearning_audit.artifacts.files import ArtifactError
from unlearning_audit.display.tables import formats, telling
from unlearning_audit.display.tables.cost import duration
from unlearning_audit.workflow import compared, progress
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.nodes import Plan


def text(plan: Plan, file: str) -> str:
    """Time of what is missing, and what can be detected, where the study compares; ``file``: the study's."""
    nodes, watched = arithmetic.nodes(plan), progress.Watch(plan.specs(), 0.0)
    costs = watched.costs()
    rest = sum(seconds for path, seconds in costs.items() if path not in watched.ready)
    lines = []
    tells = watched.tells()
    if not tells:
        lines.append(f"What they cost is not known yet: audit forecast {file} measures it on this machine.")
    elif len(watched.ready) < len(costs):
        rates = "if they are like those that are done"
        lines.append(
            f"The others take about {duration(rest)} of a processor, {rates}; audit forecast {file} measures it."
        )
    estimates = costs if tells else dict.fromkeys(costs, math.nan)
    rows = [{"stage": node["stage"], "node": node["node"], "seconds": estimates[node["spec"]]} for node in nodes]
    if plan.comparisons:
        try:
            sheet = telling.sheet(compared.comparisons(plan), nodes, rows)
        except ArtifactError as error:
            return "\n".join([*lines, f"What it can tell is not known: {error}"])
        if sheet.lines:  # nothing is foretold of logits that were imported
            lines.append(f"\n{sheet.title}. {sheet.reading}\n\n{formats.plain(sheet)}")
    return "\n".join(lines)
