"""What a study costs and what it will be able to tell, as far as that is known without measuring anything."""

import math
from dataclasses import replace

from unlearning_audit.artifacts.files import ArtifactError
from unlearning_audit.display.tables import formats, telling
from unlearning_audit.display.tables.cost import duration
from unlearning_audit.workflow import announcement, compared
from unlearning_audit.workflow import costs as costs_of
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.nodes import Plan


def text(plan: Plan, file: str) -> str:
    """Time of what is missing, and what can be detected, where the study compares; ``file``: the study's."""
    nodes, specs = arithmetic.nodes(plan), plan.specs()
    done = costs_of.measured(specs)
    costs = costs_of.expected(specs, done)
    rest = sum(seconds for path, seconds in costs.items() if path not in done)
    lines = []
    tells = costs_of.tell(specs, done)
    if not (tells or announcement.small(plan)):
        lines.append(f"What they cost is not known yet: audit forecast {file} --measure tries it on this machine.")
    elif len(done) < len(costs):
        rates = "if they are like those that are done" if tells else "by the rates of small models"
        takes = f"What is missing takes about {duration(rest)} of a processor, {rates}"
        lines.append(f"{takes}; audit forecast {file} --measure tries it.")
    estimates = costs if tells else dict.fromkeys(costs, math.nan)
    rows = [{"stage": node["stage"], "node": node["node"], "seconds": estimates[node["spec"]]} for node in nodes]
    if plan.comparisons:
        try:
            sheet = telling.sheet(compared.comparisons(plan), nodes, rows)
        except ArtifactError as error:
            return "\n".join([*lines, f"What it can tell is not known: {error}"])
        known = tuple(line for line in sheet.lines if line.cells[-1].text != telling.UNKNOWN)
        if known:
            lines.append(f"\n{sheet.title}. {sheet.reading}\n\n{formats.plain(replace(sheet, lines=known))}")
        if len(known) < len(sheet.lines):
            lines.append("What it will find is predicted after a first run with few pairs.")
    return "\n".join(lines)
