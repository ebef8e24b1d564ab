"""Verdicts on scenarios whose truth is known: classes, error rates, shares, ranks, and what would decide."""

from dataclasses import replace

import numpy as np
import pytest

from comparison_cases import compare, of_seeds, scenario
from unlearning.artifacts import verdicts as files
from unlearning.artifacts.contributions import Contribution, Standard, single
from unlearning.metrics import _text
from unlearning.stats import decide

TRUTH = {
    "none": (0.3, 0.2), "retrain": (0.0, 0.0), "retrain_control": (0.0, 0.0), "half": (0.15, 0.1),
    "over": (-0.25, -0.1), "broken": (0.0, 0.0), "worse": (0.45, 0.2),
}  # fmt: skip


LARGE = {"pairs": 6, "models": 4, "samples": 3000, "k": 700}


@pytest.fixture(scope="module")
def found():
    """One scenario, large enough to decide on all of it."""
    return scenario(np.random.default_rng(0), TRUTH, {"broken": 0.3}, **LARGE)


@pytest.fixture(scope="module")
def made(found):
    return compare({**found, "diverged": {}}, {"diverged": "NaN in the logits"})


def test_every_method_has_the_class_of_its_truth(made):
    _, rows = made
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "none": "told", "retrain": "as_retrained", "retrain_control": "as_retrained", "half": "told",
        "over": "over_unlearned", "broken": "broken", "worse": "told", "diverged": "failed",
    }  # fmt: skip
    against = {name: row["against_none"] for name, row in rows.items()}
    assert (against["half"], against["worse"], against["over"]) == ("better", "worse", "better")
    assert rows["half"]["told_by"] == "advantage attack0/trained"
    assert rows["retrain"]["told_by"] == ""
    assert rows["diverged"]["note"] == "NaN in the logits"
    assert rows["broken"]["note"].startswith("accuracy_retain 0.")
    assert "worse than retraining" in rows["broken"]["note"]


def test_rows_have_the_columns_of_their_files(made):
    tables, _ = made
    for rows, columns in (
        (tables.verdicts, files.VERDICTS), (tables.distances, files.DISTANCES), (tables.ranks, files.RANKS),
        (tables.resolution, files.RESOLUTION),
    ):  # fmt: skip
        assert rows
        assert all(set(row) == set(columns) for row in rows)


def test_the_share_closed_is_that_of_the_truth(made):
    _, rows = made
    half = rows["half"]
    assert half["share_low"] < 0.5 < half["share_high"]
    assert half["share_high"] - half["share_low"] < 0.25
    assert rows["worse"]["share_closed"] == pytest.approx(-0.5, abs=0.15)
    assert np.isnan(rows["none"]["share_closed"])


def test_ranks_hold_the_truth(made):
    tables, _ = made
    sets = {row["method"]: (row["best"], row["worst"]) for row in tables.ranks}
    # by distance: retraining and what equals it, then half, over, none, worse
    assert sets["worse"] == (7, 7)
    assert sets["none"][1] < 7
    assert all(sets[name][0] == 1 and sets[name][1] <= 3 for name in ("retrain", "retrain_control", "broken"))
    assert sets["half"][0] >= 4


def test_the_order_of_methods_does_not_matter():
    found = scenario(np.random.default_rng(9), {name: TRUTH[name] for name in ("none", "retrain", "half")}, pairs=2)
    one, turned = (compare(some)[0] for some in (found, dict(reversed(found.items()))))
    for name in ("verdicts", "distances", "ranks"):
        rows = {(row.get("metric"), row["method"]): row for row in getattr(one, name)}
        for row in getattr(turned, name):
            for column, value in rows[row.get("metric"), row["method"]].items():
                assert (
                    value == row[column] if isinstance(value, str) else np.isclose(value, row[column], equal_nan=True)
                )


def test_methods_that_are_retraining_are_seldom_told():
    rng, scenarios, wrong = np.random.default_rng(1), 40, 0
    truth = {"none": (0.3, 0.2), **dict.fromkeys(("retrain", "a", "b", "c"), (0.0, 0.0))}
    for i in range(scenarios):
        parts = scenario(rng, truth, pairs=2, samples=200, k=40)
        _, rows = compare({name: {"advantage": own["advantage"]} for name, own in parts.items()}, seed=i)
        wrong += any(rows[name]["p_holm"] <= 0.05 for name in ("retrain", "a", "b", "c"))
        assert rows["none"]["verdict"] == "told"
    assert wrong / scenarios <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / scenarios)


def test_methods_at_the_margin_are_seldom_called_retrained():
    rng, scenarios, wrong = np.random.default_rng(2), 40, 0
    for i in range(scenarios):
        parts = scenario(rng, {"none": (0.3,), "retrain": (0.0,), "edge": (0.05,)}, pairs=3, samples=800, k=200)
        wrong += compare(parts, seed=i)[1]["edge"]["verdict"] == "as_retrained"
    assert wrong / scenarios <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / scenarios)


def test_without_accuracies_nothing_is_as_retrained(found):
    lone = {name: {"advantage": own["advantage"]} for name, own in found.items()}
    lone["retrain"] = found["retrain"]
    _, rows = compare(lone)
    assert rows["retrain_control"]["verdict"] == "undecided"
    assert "accuracy_test (has no number with its parts)" in rows["retrain_control"]["note"]


# ---------------------------------------------------------------- what tells is what is shown


def advantages(rng, truth: dict[str, tuple[float, ...]], spread: tuple[float, ...], pairs=2, splits=6):
    """Advantages of two attacks: means over many models, which vary by ``spread`` between pairs, little within."""
    names = "loud/trained", "sure/trained"
    unit, split = np.repeat(np.arange(pairs), splits), np.zeros(pairs * splits, np.int64)
    found = {}
    for method, distances in truth.items():
        apart = [np.repeat(s * np.where(np.arange(pairs) % 2, 1.0, -1.0), splits) for s in spread]
        value = np.stack([d + a + 0.01 * rng.standard_normal(len(unit)) for d, a in zip(distances, apart, strict=True)])
        empty = np.zeros((2, len(unit), 0))
        standard = Standard(0.0, 1, "advantage", units="pairs")
        one = Contribution(names, value, empty, empty, unit, split, np.arange(0), standard)
        found[method] = {"advantage": one}
    return found


def test_a_method_that_is_told_shows_an_interval_that_tells():
    """Two pairs that differ: how far others are is unknown, but that these are not retraining is not."""
    found = advantages(np.random.default_rng(11), {"none": (0.3, 0.1), "x": (0.2, 0.0)}, (0.05, 0.0))
    made, rows = compare(found)
    for name in ("none", "x"):
        assert rows[name]["verdict"] == "told"
        assert rows[name]["ci_low"] > 0
        assert "interval of these 2 pairs; it does not cover how others differ" in rows[name]["note"]
    own = {row["method"]: row for row in made.distances}
    assert all(row["alone"] == 1 for row in own.values())
    assert own["x"]["inner_low"] < 0 < own["x"]["distance"]  # equivalence is asked of all pairs that there might be
    assert rows["x"]["share_closed"] == pytest.approx(1 / 3, abs=0.1)
    assert rows["x"]["against_none"] == "better"


def test_the_attack_that_tells_is_shown_not_a_louder_one_that_does_not():
    rng = np.random.default_rng(12)
    found = advantages(rng, {"none": (0.3, 0.3), "x": (0.12, 0.08)}, (0.0, 0.0))
    noisy = found["x"]["advantage"]
    value = noisy.value.copy()
    value[0] += 0.5 * (rng.standard_normal(value.shape[1]))
    value[0] += 0.12 - value[0].mean()
    found["x"]["advantage"] = replace(noisy, value=value)
    _, rows = compare(found)
    assert rows["x"]["told_by"] == "advantage sure/trained"
    assert rows["x"]["distance"] == pytest.approx(0.08, abs=0.02)
    assert rows["x"]["ci_low"] > 0


def test_of_attacks_that_tell_the_strongest_is_shown():
    found = advantages(np.random.default_rng(13), {"none": (0.3, 0.1), "x": (-0.12, 0.08)}, (0.0, 0.0), pairs=4)
    _, rows = compare(found)
    assert rows["none"]["told_by"] == rows["x"]["told_by"] == "advantage loud/trained"
    assert rows["x"]["verdict"] == "over_unlearned"


def test_a_language_model_is_broken_by_its_perplexity():
    """Loss per token against retraining: a quarter more perplexity is broken, a tenth is within the margin."""
    rng = np.random.default_rng(14)
    found = advantages(rng, dict.fromkeys(("retrain", "control", "worse", "x"), (0.0, 0.0)), (0.0, 0.0), pairs=4)
    for method, lost in {"retrain": 0.0, "control": 0.0, "worse": 0.4, "x": 0.03}.items():
        parts = found[method]["advantage"]
        for role in ("retain", "test"):
            found[method][f"nll_{role}"] = single(
                value=3.0 + lost + 0.01 * rng.standard_normal(len(parts.unit)), unit=parts.unit, split=parts.split,
                standard=_text.WORTH,
            )  # fmt: skip
    _, rows = compare(found)
    assert rows["worse"]["verdict"] == "broken"
    assert rows["worse"]["note"].startswith("nll_retain 0.")
    assert rows["x"]["verdict"] == rows["retrain"]["verdict"] == "as_retrained"
    assert all(abs(rows["x"][end]) < rows["x"]["margin"] for end in ("ci_low", "ci_high"))
    assert decide.INNER in rows["x"]["note"]


# ---------------------------------------------------------------- measured from retrained models


def seeds(rng, factor: float, count=12) -> np.ndarray:
    return np.log(factor) + 0.05 * rng.standard_normal(count)


def test_efficacy_is_measured_from_retrained_models_seed_by_seed():
    rng = np.random.default_rng(3)
    common = rng.standard_normal(12)  # what a seed does to all methods: twenty times as large as the rest
    values = {"none": 8.0, "retrain": 1.0, "retrain_control": 1.0, "twice": 2.0, "below": 0.4}
    _, rows = compare(of_seeds({name: common + seeds(rng, factor) for name, factor in values.items()}))
    assert rows["twice"]["distance"] == pytest.approx(np.log(2), abs=0.1)
    assert rows["twice"]["ci_high"] - rows["twice"]["ci_low"] < 0.2
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert (verdicts["none"], verdicts["twice"], verdicts["below"]) == ("told", "told", "over_unlearned")
    assert rows["retrain_control"]["p_holm"] > 0.05
    assert rows["twice"]["margin"] == pytest.approx(np.log(1.5))
    # what doing nothing leaves is a factor of 8, of which a factor of 2 is a third
    assert rows["twice"]["share_closed"] == pytest.approx(2 / 3, abs=0.06)


def test_retraining_without_a_control_has_nothing_to_be_measured_from():
    rng = np.random.default_rng(4)
    made, rows = compare(of_seeds({name: seeds(rng, factor) for name, factor in {"none": 4.0, "retrain": 1.0}.items()}))
    assert rows["retrain"]["verdict"] == "undecided"
    assert rows["retrain"]["note"] == "no distance: there is no retrain control to measure it from"
    assert rows["none"]["verdict"] == "told"
    assert {row["method"] for row in made.distances} == {"none"}


def test_models_that_are_not_the_same_are_not_paired():
    rng = np.random.default_rng(5)
    parts = of_seeds({"none": seeds(rng, 4.0), "retrain": seeds(rng, 1.0, count=8)})
    _, rows = compare(parts)
    assert rows["none"]["verdict"] == "undecided"
    assert "retrain has other models or samples" in rows["none"]["note"]


@pytest.mark.parametrize(("near", "value", "ends"), [(-1, 0.5, (-0.25, 0.2)), (1, 1.6, (-0.2, 0.25))])
def test_the_margin_of_a_ratio_is_a_factor_to_both_sides(near, value, ends):
    (own,) = of_seeds({"x": np.full(6, value) + 0.01 * np.arange(6)})["x"].values()
    standard = replace(own.standard, ideal=1.0, near=near, margin="forgetting_quality", scale="ratio", far=False)
    made, _ = compare({"x": {"f": replace(own, standard=standard)}})
    (row,) = made.distances
    assert (row["margin_far"], row["margin_near"]) == pytest.approx(ends)
    assert row["distance"] == pytest.approx(near * (value + 0.025 - 1))
    assert row["from"] == "theory"
