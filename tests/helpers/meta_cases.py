"""Tables of metrics whose worth is known."""

from dataclasses import replace

import numpy as np
from unlearning_audit.comparisons import meta
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.rows import Record, Row
from unlearning_audit.report import naming


def rows(values, *, metric="q", attack="adaptive", scenario="noisy", axes=None, half=0.01, **place):
    return [
        Record(scenario, "swap", m, axes or {}, Row(metric, v, v - half, v + half, 100, "", attack, **place))
        for m, v in values.items()
    ]


def changed(record, **fields):
    return replace(record, row=replace(record.row, **fields))


def evaluated(table, *, broken=0.1, **how):
    return meta.evaluate(table, naming.quantities().values(), breaking_loss=broken, **how)


def only(table, metric, name):
    (row,) = [r for r in table if r["metric"] == metric and r["property"] == name]
    return row


def several():
    """Scenario noisy has two metrics and pairs, budget one metric at three budgets, other a metric of its own."""
    table = rows({"retrain": 0.99, "none": 0.6, "a": 0.8})
    table += rows({"retrain": 0.9, "none": 0.1, "a": 0.4}, metric="forgetting_quality_over_null", attack="")
    for pair in range(3):
        table += rows({"retrain": 0.99, "none": 0.6, "a": 0.8}, pair=pair)
    for budget, value in ((0.5, 0.9), (8, 0.8), ("inf", 0.6)):
        values = {"none": value, "a": value + 0.01, "retrain": 1.0}
        table += rows(values, scenario="budget", axes={"epsilon": str(budget)})
    table += rows({"retrain": 1.0, "none": 0.3}, metric="forgetting_quality_over_null", attack="", scenario="other")
    table += rows({"retrain": 1.0, "none": 3.0, "a": 2.0}, metric="efficacy_median", attack="", scenario="other")
    number, nobody = np.arange(4), np.zeros((4, 1), bool)
    member = Membership(nobody, nobody, nobody, number, number, number, number == 3)
    return evaluated(table, members={"noisy": ("swap", member)})
