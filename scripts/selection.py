"""Find the samples that the models of one scenario memorise; other scenarios select target samples by it."""

from job import script
from unlearning.adversary.case import Case
from unlearning.plugins import registry


@script
def selection(data: str, splits: list[str], originals: list[str], selection: str, settings: dict) -> dict:
    """The metric's verdicts on every sample; how many are of either kind goes to the spec."""
    metric = registry.load("metrics", settings["metric"])
    found = metric.select(Case(data, splits, originals, originals), settings["options"])
    found.write(selection)
    return {"vulnerable": int(found.vulnerable.sum()), "protected": int(found.protected.sum())}
