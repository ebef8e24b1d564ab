"""What would decide an undecided method, and what a pilot foretells, against studies of that size."""

import numpy as np
import pytest

from comparison_cases import compare, scenario
from unlearning.comparisons import planning
from unlearning.metrics import competition

PLAN = "x", "pairs", 4.0


def test_an_undecided_method_says_what_would_decide():
    parts = scenario(np.random.default_rng(6), {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}, pairs=2)
    made, rows = compare(parts)
    assert rows["x"]["verdict"] == "undecided"
    needs = [row for row in made.resolution if row["method"] == "x" and row["what"].startswith("decides_")]
    assert {row["metric"] for row in needs} >= {"advantage"}
    most = max(row["units"] for row in needs if row["what"] == "decides_pairs")
    assert f"to decide: about {most:g} pairs" in rows["x"]["note"]
    assert all(row["times"] > 1 for row in needs)


def test_what_would_decide_decides():
    """With as many pairs as were asked for, four of five such methods are decided."""
    rng, studies, decided = np.random.default_rng(7), 12, 0
    truth = {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}
    pilot, _ = compare(scenario(rng, truth, pairs=3, samples=4000))
    needs = [row for row in pilot.resolution if row["method"] == "x" and row["what"] == "decides_pairs"]
    pairs = int(max(row["units"] for row in needs))
    for i in range(studies):
        _, rows = compare(scenario(rng, truth, pairs=pairs, samples=4000), seed=i)
        decided += rows["x"]["verdict"] == "as_retrained"
    assert decided / studies >= 0.8 - 3.1 * np.sqrt(0.8 * 0.2 / studies)


def test_the_size_of_a_pool_is_found_from_how_often_its_samples_are_drawn():
    rng, units, asked, pool = np.random.default_rng(10), 5, 60, 300
    met = [len(np.unique([rng.permutation(pool)[:asked] for _ in range(units)])) for _ in range(400)]
    assert planning.pool_size(units=units, asked=asked, distinct=round(np.mean(met))) == pytest.approx(pool, rel=0.03)
    assert planning.pool_size(units=4, asked=10, distinct=40) == np.inf
    assert planning.pool_size(units=4, asked=10, distinct=10) == pytest.approx(10)


def test_a_pilot_foretells_the_half_width_of_any_study():
    """From what the file keeps: the rows that are in it, and what a study of other models and pairs then gives."""
    rng, truth = np.random.default_rng(15), {"none": (0.3, 0.2), "retrain": (0.0, 0.0)}

    def rows(pairs: int, models: int):
        parts = scenario(rng, truth, pairs=pairs, models=models, samples=2000)
        found, _ = compare({name: {"advantage": own["advantage"]} for name, own in parts.items()})
        return [row for row in found.resolution if row["method"] == "retrain"]

    pilot = rows(4, 2)
    for what, times in (("pairs", 4.0), ("models", 2.0)):
        kept = next(row for row in pilot if (row["what"], row["times"]) == (what, times))
        found = planning.foretold(pilot, **{"pairs": 1.0, "models": 1.0, what: times})
        assert (found["units"], found["models"], found["samples"]) == (kept["units"], kept["models"], kept["samples"])
        assert found["half_width"] == pytest.approx(kept["half_width"], rel=0.05)
        assert found["least_distance"] == pytest.approx(kept["least_distance"], rel=0.05)
    foretold = [planning.foretold(rows(4, 2), pairs=3.0, models=2.0)["half_width"] for _ in range(8)]
    given = [rows(12, 4)[0]["half_width"] for _ in range(4)]
    assert np.mean(foretold) == pytest.approx(np.mean(given), rel=0.2)


def test_a_pilot_foretells_the_half_width_of_a_larger_study():
    """Four times as many pairs: the mean of what pilots foretell is within a fifth of what larger studies give."""
    rng, studies = np.random.default_rng(8), 10
    truth = {"none": (0.3, 0.2), "retrain": (0.0, 0.0), "x": (0.1, 0.0)}

    def study(pairs: int, seed: int):
        parts = scenario(rng, truth, pairs=pairs, samples=2000)
        return compare({name: {"advantage": own["advantage"]} for name, own in parts.items()}, seed=seed)

    foretold, given = [], []
    for i in range(studies):
        rows = study(4, i)[0].resolution
        foretold += [row["half_width"] for row in rows if (row["method"], row["what"], row["times"]) == PLAN]
        row = study(16, i)[1]["x"]
        given.append((row["ci_high"] - row["ci_low"]) / 2)
    assert len(foretold) == studies
    assert np.mean(foretold) == pytest.approx(np.mean(given), rel=0.2)


def test_more_models_do_not_narrow_the_competition_s_score_and_none_is_foretold():
    """F₀ is that of the luckiest threshold among models that do not differ, however many there are."""
    rng, options, widths = np.random.default_rng(20), competition.Options(), {}
    for models in (16, 64):
        widths[models] = []
        for _ in range(8):
            sample = rng.standard_normal(30)
            x, retrained, control = sample + rng.standard_normal((3, models, 30))
            none = sample + 1.5 + rng.standard_normal((models, 30))
            found = {
                name: competition.over_null(phi, retrained, control, np.arange(30), options, rng)
                for name, phi in {"none": none, "x": x, "retrain": retrained}.items()
            }
            made, rows = compare(found)
            (row,) = (row for row in made.resolution if row["method"] == "x" and row["what"] == "today")
            widths[models].append(row["half_width"])
            assert {row["what"] for row in made.resolution} == {"today", "samples"}
            assert planning.foretold([row], pairs=4.0, models=1.0)["half_width"] == row["half_width"]
            if rows["x"]["verdict"] == "undecided":
                assert "neither more pairs nor more models would decide" in rows["x"]["note"]
    assert 0.7 < np.median(widths[64]) / np.median(widths[16]) < 1.4  # half as wide, if they were averages


def test_as_retrained_takes_every_metric_that_is_undecided():
    rows = [
        {"metric": metric, "what": "decides_pairs", "outcome": "as_retrained", "times": times, "units": 4 * times,
         "unit": "pairs", "models": 1}
        for metric, times in (("a", 2), ("b", 3))
    ]  # fmt: skip
    assert planning.instruction(rows, metrics={"a", "b"}, unknown=[]) == "to decide: about 12 pairs"
    no = "neither more pairs nor more models would decide"
    assert planning.instruction(rows, metrics={"a", "b", "c"}, unknown=[]) == no
    rows[0]["outcome"] = "told"
    assert planning.instruction(rows, metrics={"a", "b", "c"}, unknown=[]) == "to decide: about 8 pairs"


def test_what_most_studies_of_this_size_would_tell_takes_little_more():
    rows = [{"metric": "a", "what": f"decides_{what}", "outcome": "told", "times": 1, "units": 3, "unit": "pairs",
             "models": 1} for what in ("pairs", "models")]  # fmt: skip
    assert planning.instruction(rows, metrics={"a"}, unknown=[]) == "to decide: little more than there is"
