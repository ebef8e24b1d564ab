"""A plan's nodes made by the functions of the scripts, in this process and without Snakemake."""

import runpy
from pathlib import Path

from unlearning_audit.plugins import source
from unlearning_audit.stages import here
from unlearning_audit.workflow import nodes, plan


def run(study_plan: plan.Plan) -> None:
    """Make every node but comparisons in the working directory, parents first."""

    def make(node: nodes.Node) -> None:
        for parent in node.parents.values():
            make(parent)
        if not Path(node.outputs["spec"]).exists():
            here.run(node, runpy.run_path(str(source.SCRIPTS / f"{node.stage}.py"))[node.stage])

    for node in study_plan.nodes["metrics"].values():
        make(node)
