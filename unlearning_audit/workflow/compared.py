"""Find the comparisons of a study, their tables, and the jobs that made the compared models."""

from functools import cache
from pathlib import Path
from typing import Any

from unlearning_audit.store.files import read_json
from unlearning_audit.workflow.nodes import Node, Plan

#: Stage → the settings of its jobs before a comparison, in the order of the batches of models.
Origins = dict[str, list[dict[str, Any]]]

#: The stages that a comparison of models made here comes from.
MAKERS = ("data", "splits", "train")


def comparisons(plan: Plan) -> list[dict[str, Any]]:
    """Return one record per comparison of the study, from which the report explains its verdicts.

    A record holds the scenario and setting, the comparison's methods and files, ``made``, the ``family`` of its tests
    ("study" or "scenario"), and, only if it was extended without a plan, ``extended``. ``made``: method → a list of the
    jobs, [stage, node] each, that trained the models and unlearned them by the method and by retraining. Jobs of shadow
    models are left out; the list is empty for imported models.
    """
    job_of = {node.outputs["spec"]: [node.stage, node.name] for node in plan.all()}
    shadows = {n.outputs["membership"] for n in plan.nodes["splits"].values() if n.settings["population"] == "shadows"}
    records = []
    for comparison in plan.comparisons:
        scenario = comparison.scenario
        logits_of: dict[str, list[str]] = {}  # method → its logits before and after unlearning, batch by batch
        for case in (case for case in plan.cases if case.scenario.place == scenario.place):
            batches = [] if scenario.imported else zip(case.splits, case.originals, case.unlearned, strict=True)
            logits_of[case.method] = [path for splits, *logits in batches if splits not in shadows for path in logits]
        methods, jobs = [method for method in scenario.methods if method in logits_of], {}
        for method in methods:
            # The method and retraining start from the same trained models, whose job is listed once.
            logits = dict.fromkeys([*logits_of[method], *logits_of.get("retrain", [])])
            jobs[method] = [job_of[spec(path)] for path in logits]
        files = {name: path for name, path in comparison.outputs.items() if name != "spec"}
        identity = {**scenario.place._asdict(), "methods": methods}
        family = "study" if plan.study.tests > 1 else "scenario"
        extended = {"extended": comparison.extended} if comparison.extended else {}
        records.append({**identity, **files, "made": jobs, "family": family, **extended})
    return records


def spec(path: str) -> str:
    """Return the path of the spec.json beside a file, which says how its job made the file."""
    return f"{path.rpartition('/')[0]}/spec.json"  # asked too often for pathlib


def origins(comparison: Node) -> Origins:
    """Return stage (`MAKERS`) → the settings of its jobs from which a planned comparison comes, in the order of the
    batches of models; empty lists for imported models."""
    # The parents of a comparison are the metrics of each method. All methods are compared on the same data and
    # memberships, so that the parents of one method's metrics suffice.
    parents = next(iter(comparison.parents.values())).parents.values()
    return {stage: [node.settings for node in parents if node.stage == stage] for stage in MAKERS}


@cache
def recorded(folder: Path) -> Origins:
    """Return stage (`MAKERS`) → the settings of its jobs from which the finished comparison in this absolute ``folder``
    comes. They are read from the spec.json files of these jobs; lists are empty for imported models.

    Raises ValueError, LookupError, TypeError, OSError or StopIteration for one that is damaged or of another version.
    """

    def parents(path: Path) -> list[Path]:
        """Return the spec files of the jobs whose files the job of this spec read, each once. Inputs are stored
        relative to the working directory, three folders above ``folder``."""
        return [*dict.fromkeys(folder.parents[2] / spec(name) for name in read_json(path)["inputs"])]

    # The first parent is the job of one method's metrics. All methods are compared on the same data and memberships, so
    # that the parents of this job suffice. A spec's path ends in stage/node/spec.json: part −3 is the stage.
    specs = parents(next(iter(parents(folder / "spec.json"))))
    return {stage: [read_json(path)["settings"] for path in specs if path.parts[-3] == stage] for stage in MAKERS}
