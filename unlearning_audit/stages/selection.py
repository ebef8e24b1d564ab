"""Find the samples that the models of one scenario memorise; other scenarios select their target samples among them."""

from typing import Any

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.plugins import registry


def selection(
    data: str, splits: list[str], originals: list[str], selection: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Select vulnerable and protected samples by the metric in ``settings``, and write them to the file ``selection``;
    return how many of each.

    Parameters
    ----------
    data
        The file of samples.
    splits
        For each batch of trained models, the file of their memberships.
    originals
        For each batch of trained models, the file of their logits.
    """
    metric = registry.load("metrics", settings["metric"])
    evaluation = Evaluation(data, splits, originals, unlearned_files=originals)  # nothing has been unlearned yet
    chosen_rows = metric.select(evaluation, metric.Options(**settings["options"]))
    chosen_rows.write(selection)
    return {"vulnerable": int(chosen_rows.vulnerable.sum()), "protected": int(chosen_rows.protected.sum())}
