"""Advice, before a study runs, on settings that this machine computes slowly."""

from pathlib import Path

from unlearning_audit.training import device
from unlearning_audit.workflow.nodes import Plan


def slow_precision(plan: Plan) -> str:
    """Return a sentence that advises float32 if models still to be trained or unlearned multiply in bfloat16 and this
    machine has neither a GPU nor processor instructions for bfloat16; "" otherwise."""
    if device.gpus() or not device.emulates_bfloat16():
        return ""
    slow = [
        node
        for stage in ("train", "unlearn")
        for node in plan.nodes[stage].values()
        if node.settings["recipe"]["precision"] == "bfloat16" and not Path(node.outputs["spec"]).exists()
    ]
    if not slow:
        return ""
    jobs = "1 job trains" if len(slow) == 1 else f"{len(slow)} jobs train"
    return (
        f"{jobs} in bfloat16, which this processor has no instructions for (avx512_bf16 or amx_bf16): "
        "recipe.precision: float32 takes a tenth to a fifth of the time."
    )
