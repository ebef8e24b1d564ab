"""Means over scenarios that share nothing, and the ranks that methods may have over all of them."""

import numpy as np
import pytest
from unlearning_audit.comparisons import standings

from comparison_cases import MARGINS, scenario
from stat_cases import at_least

#: Distances by two attacks in two scenarios; over both "far" is the furthest, and "over" lies on the other side.
FIRST = {"none": (0.3, 0.1), "near": (0.05, 0.02), "far": (0.25, 0.2), "over": (-0.1, 0.0), "retrain": (0.0, 0.0)}
SECOND = {"none": (0.4, 0.1), "near": (0.15, 0.02), "far": (0.35, 0.2), "retrain": (0.0, 0.0), "over": (-0.2, 0.0)}


def both(seed, **size):
    return [scenario(np.random.default_rng([seed, i]), truth, **size) for i, truth in enumerate((FIRST, SECOND))]


def stand(scenarios, draws=100, seed=0):
    table = standings.standings(scenarios, margins=MARGINS, draws=draws, seed=seed)
    return {row["method"]: row for row in table}


def test_a_method_stands_by_its_mean_distance_in_margins_on_either_side():
    rows, truth = stand(both(1), draws=500), {"none": 7.0, "near": 2.0, "far": 6.0, "over": 3.0, "retrain": 0.0}
    assert rows.keys() == truth.keys()
    for method, value in truth.items():
        low, high = rows[method]["low"], rows[method]["high"]
        assert low - 0.5 < value < high + 0.5, method
        assert (low + high) / 2 == pytest.approx(rows[method]["distance"])
    assert {(row["metric"], row["methods"]) for row in rows.values()} == {("advantage", 5)}
    assert rows["retrain"]["worst"] < rows["far"]["best"]


@pytest.mark.slow
def test_ranks_over_scenarios_hold_the_truth():
    order, audits, inside = ["retrain", "near", "over", "far", "none"], 25, 0
    for seed in range(audits):
        rows = stand(both(seed, samples=200, k=40), seed=seed)
        inside += all(rows[m]["best"] <= rank <= rows[m]["worst"] for rank, m in enumerate(order, 1))
    assert inside / audits >= at_least(0.95, audits)


def test_a_method_that_one_scenario_lacks_is_left_out():
    first, second = both(2)
    del second["over"]
    assert stand([first, second]).keys() == {"none", "near", "far", "retrain"}
    assert len(stand([second])) == 4
    assert stand([]) == {}
