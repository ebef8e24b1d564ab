"""A plan's nodes made by the functions of the stages, in this process and without Snakemake."""

from pathlib import Path

from unlearning_audit.stages import here
from unlearning_audit.workflow import nodes, plan


def one(node: nodes.Node) -> None:
    """Make a node in the working directory, where its parents lie."""
    here.run(node)


def make(node: nodes.Node) -> None:
    """Make a node, its parents first, unless it lies in the working directory."""
    for parent in node.parents.values():
        make(parent)
    if not Path(node.outputs["spec"]).exists():
        one(node)


def run(study_plan: plan.Plan) -> None:
    """Make every node but comparisons."""
    for node in study_plan.nodes["metrics"].values():
        make(node)
