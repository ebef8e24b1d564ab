"""Find the comparisons of a study, their tables, and the jobs that made the compared models."""

from functools import cache
from pathlib import Path
from typing import Any

from unlearning_audit.plugins import registry
from unlearning_audit.store.files import read_json
from unlearning_audit.workflow.nodes import Node, Plan

#: Stage → the settings of its jobs before a comparison, in the order of the batches of models.
Origins = dict[str, list[dict[str, Any]]]

#: The stages that a comparison of models made here comes from.
MAKERS = ("data", "splits", "train")


def comparisons(plan: Plan) -> list[dict[str, Any]]:
    """Return one record per comparison of the study, from which the report explains its verdicts.

    A record holds the scenario and setting, the comparison's files, its methods, and the ``family`` of its tests
    ("study" or "scenario"); ``extended`` only if it was extended without a plan. ``made``: method → a list of
    the jobs, [stage, node] each, that trained the models and unlearned them by the method and by retraining. Jobs of
    shadow models are left out; the list is empty for imported models.
    """
    stage_of = {node.outputs["spec"]: [node.stage, node.name] for node in plan.all()}
    shadows = {n.outputs["membership"] for n in plan.nodes["splits"].values() if n.settings["population"] == "shadows"}
    cases = {(*c.scenario.place, c.method): c for c in plan.cases}
    records = []
    for comparison in plan.comparisons:
        place = comparison.scenario.place
        jobs, methods = {}, [name for name in comparison.scenario.methods if (*place, name) in cases]
        for method in methods:
            # The files of the method, and of retraining if the scenario has it; retraining itself has them once.
            compared = [cases[(*place, name)] for name in dict.fromkeys((method, "retrain")) if (*place, name) in cases]
            # Logits before and after unlearning, batch by batch, without batches of shadow models.
            logits = [
                path
                for case in compared if not registry.offers(comparison.scenario.protocol, "imported")
                for batch in zip(case.splits, case.originals, case.unlearned, strict=True) if batch[0] not in shadows
                for path in batch[1:]
            ]  # fmt: skip
            jobs[method] = [stage_of[spec(path)] for path in dict.fromkeys(logits)]
        files = {name: path for name, path in comparison.outputs.items() if name != "spec"}
        identity = {**place._asdict(), "methods": methods}
        family = "study" if plan.study.tests > 1 else "scenario"
        extended = {"extended": comparison.extended} if comparison.extended else {}
        records.append({**identity, **files, "made": jobs, "family": family, **extended})
    return records


def spec(path: str) -> str:
    """Return the spec file of the node to which a file belongs."""
    return f"{path.rpartition('/')[0]}/spec.json"  # asked too often for pathlib


def origins(comparison: Node) -> Origins:
    """Return the settings of the jobs from which a planned comparison comes; empty lists for imported models."""
    # All methods are compared on the same data and memberships, so that the parents of one method's metrics suffice.
    parents = next(iter(comparison.parents.values())).parents.values()
    return {stage: [node.settings for node in parents if node.stage == stage] for stage in MAKERS}


@cache
def recorded(folder: Path) -> Origins:
    """Return the settings of the jobs from which the finished comparison in this absolute ``folder`` comes, as
    `origins` does.

    Raises ValueError, LookupError, TypeError, OSError or StopIteration for one that is damaged or of another version.
    """

    def parents(path: Path) -> list[Path]:
        """Return the spec files of the jobs whose files the job of this spec read."""
        return [*dict.fromkeys(folder.parents[2] / spec(name) for name in read_json(path)["inputs"])]

    # The first parent is the job of one method's metrics. As in `origins`, its parents suffice. A spec's path ends in
    # the stage, the node and spec.json.
    specs = parents(next(iter(parents(folder / "spec.json"))))
    return {stage: [read_json(path)["settings"] for path in specs if path.parts[-3] == stage] for stage in MAKERS}
