"""Tables of metrics whose worth is known."""

from unlearning.comparisons import compared, meta
from unlearning.display import naming


def rows(values, *, metric="q", attack="paper", scenario="noisy", setting="", half=0.01):
    return [
        {"scenario": scenario, "method": m, "attack": attack, "metric": metric, "setting": setting, "value": v,
         "ci_low": v - half, "ci_high": v + half, "n": 100, "note": ""}
        for m, v in values.items()
    ]  # fmt: skip


def evaluated(table, **how):
    return meta.evaluate(table, naming.quantities().values(), **how)


def only(found, metric, what):
    (row,) = [r for r in found if r["metric"] == metric and r["property"] == what]
    return row


def several():
    """Scenario noisy has two metrics and pairs, budget one metric at three budgets, other a metric of its own."""
    table = rows({"retrain": 0.99, "none": 0.6, "a": 0.8})
    table += rows({"retrain": 0.9, "none": 0.1, "a": 0.4}, metric="forgetting_quality_over_null", attack="")
    for pair in range(3):
        table += rows({"retrain": 0.99, "none": 0.6, "a": 0.8}, setting=f"pair={pair}")
    for budget, value in ((0.5, 0.9), (8, 0.8), ("inf", 0.6)):
        values = {"none": value, "a": value + 0.01, "retrain": 1.0}
        table += rows(values, scenario="budget", setting=f"epsilon={budget}")
    table += rows({"retrain": 1.0, "none": 0.3}, metric="forgetting_quality_over_null", attack="", scenario="other")
    table += rows({"retrain": 1.0, "none": 3.0, "a": 2.0}, metric="efficacy_median", attack="", scenario="other")
    return evaluated(table, made={"noisy": compared.Made("swap", 3, 3, 1, 1)})
