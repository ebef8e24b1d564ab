"""Find the samples that the models of one scenario memorise; other scenarios select target samples by it."""

from typing import Any

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.plugins import registry


def selection(
    data: str, splits: list[str], originals: list[str], selection: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """The metric's verdicts on every sample; how many are of either kind goes to the spec."""
    metric = registry.load("metrics", settings["metric"])
    case = Evaluation(data, splits, originals, originals)
    chosen_rows = metric.select(case, metric.Options(**settings["options"]))
    chosen_rows.write(selection)
    return {"vulnerable": int(chosen_rows.vulnerable.sum()), "protected": int(chosen_rows.protected.sum())}
