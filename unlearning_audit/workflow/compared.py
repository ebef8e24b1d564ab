"""Find the comparisons of a study, their tables, and the jobs that made the compared models."""

from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.workflow.nodes import Plan


def comparisons(plan: Plan) -> list[dict[str, Any]]:
    """Return one record per comparison of the study, from which the report explains its verdicts.

    A record holds the scenario and setting, the comparison's files, its methods, and the ``family`` of its tests
    ("study" or "scenario"); ``extended`` only if it was extended without a plan. ``made``: method → [stage, node] of
    the jobs that made its models, and of those that made the retrained models beside them, without shadow models; []
    for imported models.
    """
    stage_of = {node.outputs["spec"]: [node.stage, node.name] for node in plan.all()}
    shadows = {n.outputs["membership"] for n in plan.nodes["splits"].values() if n.settings["population"] == "shadows"}
    cases = {(*c.scenario.place, c.method): c for c in plan.cases}
    places = []
    for comparison in plan.comparisons:
        where = comparison.scenario.place
        jobs, methods = {}, [name for name in comparison.scenario.methods if (*where, name) in cases]
        for method in methods:
            sides = [cases[(*where, name)] for name in dict.fromkeys((method, "retrain")) if (*where, name) in cases]
            logits = [
                path
                for case in sides if not registry.offers(comparison.scenario.protocol, "imported")
                for batch in zip(case.splits, case.originals, case.unlearned, strict=True) if batch[0] not in shadows
                for path in batch[1:]
            ]  # fmt: skip
            jobs[method] = [stage_of[spec(path)] for path in dict.fromkeys(logits)]
        files = {name: path for name, path in comparison.outputs.items() if name != "spec"}
        place = {**where._asdict(), "methods": methods}
        family = "study" if plan.study.family > 1 else "scenario"
        extended = {"extended": comparison.extended} if comparison.extended else {}
        places.append({**place, **files, "made": jobs, "family": family, **extended})
    return places


def spec(path: str) -> str:
    """Return the spec file of the node to which a file belongs."""
    return f"{path.rpartition('/')[0]}/spec.json"  # asked too often for pathlib
