"""A plan's nodes made by the functions of the scripts, in this process and without Snakemake."""

import importlib.util
from pathlib import Path

from unlearning_audit.plugins import source
from unlearning_audit.workflow import nodes, plan
from unlearning_audit.workflow.jobs import arguments_of


def run(study_plan: plan.Plan) -> None:
    """Make every node in the working directory, parents first."""
    maker = {
        path: node for nodes in study_plan.nodes.values() for node in nodes.values() for path in node.outputs.values()
    }
    scripts = {stage: script(stage) for stage, nodes in study_plan.nodes.items() if nodes}

    def make(node: nodes.Node) -> None:
        paths = [path for group in node.inputs.values() for path in ([group] if isinstance(group, str) else group)]
        for path in paths:
            if not Path(path).exists():
                make(maker[path])
        outputs = {role: path for role, path in node.outputs.items() if role != "spec"}
        others = {**outputs, "settings": node.settings, "place": node.place}
        function = scripts[node.stage]
        function(**arguments_of(function, node.inputs, others))

    for case in study_plan.cases:
        make(maker[case.metrics])


def script(stage: str):
    spec = importlib.util.spec_from_file_location(f"stage_{stage}", source.SCRIPTS / f"{stage}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, stage)
