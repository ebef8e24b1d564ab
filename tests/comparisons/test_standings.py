"""Means over scenarios that share nothing, and the ranks that methods may have over all of them."""

import numpy as np
import pytest
from unlearning_audit.comparisons import standings
from unlearning_audit.stats import average, paired

from audit_worlds import World
from comparison_cases import MARGINS, scenario

#: Distances by two attacks in two scenarios; over both "far" is the furthest, and "over" lies on the other side.
FIRST = {"none": (0.3, 0.1), "near": (0.05, 0.02), "far": (0.25, 0.2), "over": (-0.1, 0.0), "retrain": (0.0, 0.0)}
SECOND = {"none": (0.4, 0.1), "near": (0.15, 0.02), "far": (0.35, 0.2), "retrain": (0.0, 0.0), "over": (-0.2, 0.0)}


def both(seed, **size):
    return [scenario(np.random.default_rng([seed, i]), truth, **size) for i, truth in enumerate((FIRST, SECOND))]


def test_the_mean_of_independent_audits_has_the_error_of_a_mean():
    worlds = [World(truth=(0.1, 0.3), pairs=4, samples=400), World(truth=(0.3, 0.2), pairs=8, samples=900)]
    parts = [world.read(np.random.default_rng(i)) for i, world in enumerate(worlds)]
    read = average.mean(parts)
    np.testing.assert_allclose(read.value, (parts[0].value + parts[1].value) / 2)
    np.testing.assert_allclose(read.sampled, (parts[0].sampled + parts[1].sampled) / 4)
    alone = average.mean(parts[:1])
    np.testing.assert_allclose(alone.half_widths(), parts[0].half_widths())
    np.testing.assert_allclose(average.mean([parts[0]] * 4).errors, parts[0].errors / 2)
    with pytest.raises(ValueError, match="equally many numbers"):
        average.mean([parts[0], parts[0].of(np.eye(1, 2))])


def test_what_one_audit_alone_knows_of_a_layer_holds_for_the_mean():
    """A lone model says nothing of how models and units vary; samples vary in any audit."""
    rng = np.random.default_rng(6)
    known, alone = World((0.1,)).read(rng), np.zeros(1, np.int64)
    lone = paired.distances(value=[[0.1]], influence=rng.standard_normal((1, 1, 80)) / 80, unit=alone, split=alone)
    assert lone.models.dof == lone.units.dof == 0
    np.testing.assert_allclose(average.mean([lone]).half_widths(), lone.half_widths())
    assert np.isfinite(average.mean([lone, lone]).half_widths()).all()
    both = average.mean([lone, known])
    assert (both.models.dof, both.units.dof) == (known.models.dof, known.units.dof)


def test_the_mean_is_covered_as_often_as_it_says():
    rng, audits, inside = np.random.default_rng(5), 300, 0
    worlds = [World(truth=(0.1, 0.3), pairs=3, pair=0.05), World(truth=(0.3, 0.2), pairs=5, pair=0.02, models=2)]
    for _ in range(audits):
        read = average.mean([world.read(rng) for world in worlds])
        inside += np.abs(read.value - [0.2, 0.25]) <= read.half_widths()
    assert (inside / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)).all()


def test_a_method_stands_by_its_mean_distance_in_margins_on_either_side():
    rows = {row["method"]: row for row in standings.standings(both(1), margins=MARGINS, draws=500, seed=0)}
    truth = {"none": 7.0, "near": 2.0, "far": 6.0, "over": 3.0, "retrain": 0.0}
    assert rows.keys() == truth.keys()
    for method, value in truth.items():
        row = rows[method]
        assert row["low"] - 0.5 < value < row["high"] + 0.5, method
        assert row["metric"] == "advantage"
        assert row["methods"] == 5
    assert rows["retrain"]["worst"] < rows["far"]["best"]


def test_ranks_over_scenarios_hold_the_truth():
    order, audits, inside = ["retrain", "near", "over", "far", "none"], 25, 0
    for seed in range(audits):
        table = standings.standings(both(seed, samples=200, k=40), margins=MARGINS, draws=100, seed=seed)
        rows = {row["method"]: row for row in table}
        inside += all(rows[m]["best"] <= rank <= rows[m]["worst"] for rank, m in enumerate(order, 1))
    assert inside / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_a_method_that_one_scenario_lacks_is_left_out():
    first, second = both(2)
    del second["over"]
    methods = {row["method"] for row in standings.standings([first, second], margins=MARGINS, draws=100, seed=0)}
    assert methods == {"none", "near", "far", "retrain"}
    assert len(standings.standings([second], margins=MARGINS, draws=100, seed=0)) == 4
    assert standings.standings([], margins=MARGINS, draws=100, seed=0) == []
