"""Verdicts on scenarios whose truth is known: classes, error rates, shares, ranks, and what a scenario can say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.comparisons import distances as measured
from unlearning_audit.comparisons import sensitivity, standings, verdicts
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _text
from unlearning_audit.stats import Estimate, decide, ratio

from comparison_cases import MARGINS, compare, of_seeds, scenario, verdicts_of
from stat_cases import at_most

TRUTH = {
    "none": (0.3, 0.2), "retrain": (0.0, 0.0), "retrain_control": (0.0, 0.0), "half": (0.15, 0.1),
    "over": (-0.25, -0.1), "broken": (0.0, 0.0), "worse": (0.45, 0.2),
}  # fmt: skip
LARGE = {"pairs": 6, "models": 3, "samples": 2000, "k": 500}


@pytest.fixture(scope="module")
def large():
    """One scenario, large enough to decide on all of it."""
    return scenario(np.random.default_rng(0), TRUTH, {"broken": 0.3}, **LARGE)


@pytest.fixture(scope="module")
def judged(large):
    return compare({**large, "diverged": {}}, {"diverged": "NaN in the logits"})


def classes(rows):
    return {name: row["verdict"] for name, row in rows.items()}


def test_every_method_has_the_class_of_its_truth(judged):
    tables, rows = judged
    assert classes(rows) == {
        "none": "distinguishable", "retrain": "equivalent", "retrain_control": "equivalent", "half": "distinguishable",
        "over": "over_unlearned", "broken": "broken", "worse": "distinguishable", "diverged": "failed",
    }  # fmt: skip
    assert [rows[name]["against_none"] for name in ("half", "worse", "over")] == ["better", "worse", "better"]
    assert [rows[name]["found_by"] for name in ("half", "retrain")] == ["advantage attack0/trained", ""]
    assert rows["diverged"]["note"] == "NaN in the logits"
    assert rows["broken"]["note"].startswith("accuracy_retain 0.")
    assert {row["method"] for row in tables.distances if row["broken"]} == {"broken"}


def test_no_p_value_is_printed_that_nobody_knows(judged):
    """Of intervals that are normal at best, p-values below 10⁻⁴ are none of a probability."""
    tables, rows = judged
    p = np.array([(row["p"], row["p_holm"]) for row in tables.distances])
    assert np.nanmin(p, axis=0).tolist() == [1e-4, 1e-4]
    assert rows["none"]["p_holm"] == 1e-4


def test_the_share_closed_is_that_of_the_truth_and_only_what_is_beyond_retraining_lies_on_the_far_side(judged):
    tables, rows = judged
    half = rows["half"]
    assert half["share_high"] - 0.25 < half["share_low"] < 0.5 < half["share_high"]
    assert rows["worse"]["share_closed"] == pytest.approx(-0.5, abs=0.15)
    assert np.isnan(rows["none"]["share_closed"])
    notes = {row["method"]: row["note"] for row in tables.distances if row["metric"] == "advantage"}
    assert {m for m in ("half", "over", "worse") if measured.FAR_SIDE in notes[m]} == {"over"}


def test_ranks_hold_the_truth(judged):
    """By distance: retraining and what equals it, then half, over, none, worse. Neither references count, nor "broken",
    of which there is no usable model."""
    tables, _ = judged
    sets = {row["method"]: (row["best"], row["worst"]) for row in tables.ranks}
    assert sets["worse"] == (7, 7)
    assert sets["none"][1] < 7
    assert all(sets[name][0] == 1 and sets[name][1] <= 3 for name in ("retrain", "retrain_control", "broken"))
    assert sets["half"][0] >= 4
    ahead = {row["method"]: row["ahead"] for row in tables.ranks}
    assert (ahead["broken"], ahead["half"], ahead["worse"]) == (0, 0, 2)


def test_methods_that_correspond_with_most_others_have_ranks_whoever_comes_first():
    """One of two attacks has no score of `odd`; of two sets of one size, that with most methods to compare."""
    truth = {"odd": (0.1, 0.1), "none": (0.4, 0.3), "x": (0.05, 0.0), "y": (0.2, 0.1)}
    parts = scenario(np.random.default_rng(0), truth, pairs=3, models=1)
    parts = {method: {"advantage": metrics["advantage"]} for method, metrics in parts.items()}
    for lone, ranked in (({"odd"}, {"none", "x", "y"}), ({"odd", "none"}, {"x", "y"}), ({"x", "y"}, {"x", "y"})):
        mixed = {method: {"advantage": one_attack(by["advantage"]) if method in lone else by["advantage"]}
                 for method, by in parts.items()}  # fmt: skip
        for order in ([*truth], [*truth][2:] + [*truth][:2], [*truth][::-1]):
            turned = {method: mixed[method] for method in order}
            assert {row["method"] for row in compare(turned, draws=50)[0].ranks} == ranked
            table = standings.standings([turned] * 2, margins=MARGINS, draws=50, seed=0)
            assert {row["method"] for row in table} == ranked


def one_attack(part: Effect) -> Effect:
    arrays = {name: getattr(part, name)[:1] for name in ("names", "value", "influence", "imagined")}
    return replace(part, **arrays)


def test_methods_that_are_retraining_are_seldom_distinguishable():
    rng, audits, wrong = np.random.default_rng(1), 10, 0
    alike = ("retrain", "a", "b", "c")
    for i in range(audits):
        parts = scenario(rng, {"none": (0.3, 0.2), **dict.fromkeys(alike, (0.0, 0.0))}, pairs=2, samples=200, k=40)
        lone = {name: {"advantage": metrics["advantage"]} for name, metrics in parts.items()}
        rows = verdicts_of(lone, seed=i, draws=100)
        wrong += any(rows[name]["p_holm"] <= 0.05 for name in alike)
        assert rows["none"]["verdict"] == "distinguishable"
    assert wrong / audits <= at_most(0.05, audits)


def test_methods_at_the_margin_are_seldom_called_retrained():
    rng, audits, wrong = np.random.default_rng(2), 10, 0
    for i in range(audits):
        parts = scenario(rng, {"none": (0.3,), "retrain": (0.0,), "edge": (0.05,)}, pairs=3, samples=800, k=200)
        wrong += verdicts_of(parts, seed=i, draws=50)["edge"]["verdict"] == "equivalent"
    assert wrong / audits <= at_most(0.05, audits)


def test_without_accuracies_nothing_is_as_retrained(large):
    lone = {name: {"advantage": metrics["advantage"]} for name, metrics in large.items()}
    _, rows = compare({**lone, "retrain": large["retrain"]})
    assert rows["retrain_control"]["verdict"] == "inconclusive"
    assert "accuracy_test (has no number with an uncertainty)" in rows["retrain_control"]["note"]


# ---------------------------------------------------------------- what tells is what is shown


def advantages(seed, truth: dict[str, tuple[float, ...]], spread=0.0, pairs=2, splits=6, noise=0.0):
    """Advantages of two attacks: means over many models. The first attack varies by ``spread`` between pairs, and by
    ``noise`` about its mean for method x; models vary little."""
    rng, unit = np.random.default_rng(seed), np.repeat(np.arange(pairs), splits)
    apart = [[spread], [0.0]] * np.where(unit % 2, 1.0, -1.0)
    rule = DecisionRule(1, "advantage", ideal=0.0, units="pairs", lowest=-1.0, highest=1.0)
    empty, parts = np.zeros((2, len(unit), 0)), {}
    for method, distances in truth.items():
        value = np.array(distances)[:, None] + apart + 0.01 * rng.standard_normal((2, len(unit)))
        if method == "x" and noise:
            loud = noise * rng.standard_normal(len(unit))
            value[0] += loud - loud.mean()
        names = "loud/trained", "sure/trained"
        parts[method] = {"advantage": Effect(names, value, empty, empty, unit, 0 * unit, np.arange(0), rule)}
    return parts


def test_a_method_that_is_distinguishable_shows_an_interval_that_says_so():
    """Two pairs that differ: how far others are is unknown, but that these are not retraining is not."""
    tables, rows = compare(advantages(11, {"none": (0.3, 0.1), "x": (0.2, 0.0)}, 0.05))
    for name in ("none", "x"):
        assert rows[name]["verdict"] == "distinguishable"
        assert -1 <= rows[name]["ci_low"] < 0 < rows[name]["distance"] < rows[name]["ci_high"] <= 1
        assert measured.DISAGREE in rows[name]["note"]
    far = {row["method"]: row for row in tables.distances}
    assert all(row["disagree"] == 1 for row in far.values())
    # equivalence is asked of all pairs that there might be
    assert far["x"]["inner_low"] < 0 < far["x"]["distance"] < far["x"]["inner_high"]
    assert rows["x"]["share_closed"] == pytest.approx(1 / 3, abs=0.1)
    assert np.isnan(rows["x"]["share_low"])
    assert ratio.UNBOUNDED in rows["x"]["note"]


def test_of_attacks_that_tell_the_strongest_is_shown_not_a_louder_one_that_does_not():
    x = compare(advantages(12, {"none": (0.3, 0.3), "x": (0.12, 0.08)}, noise=0.5))[1]["x"]
    assert (x["found_by"], x["distance"]) == ("advantage sure/trained", pytest.approx(0.08, abs=0.02))
    assert x["ci_low"] > 0
    _, rows = compare(advantages(13, {"none": (0.3, 0.1), "x": (-0.12, 0.08)}, pairs=4))
    assert rows["none"]["found_by"] == rows["x"]["found_by"] == "advantage loud/trained"
    assert rows["x"]["verdict"] == "over_unlearned"


def test_a_language_model_is_broken_by_its_perplexity():
    """Loss per token against retraining: a quarter more perplexity is broken, a tenth is within the margin."""
    rng, lost = np.random.default_rng(14), {"none": 0.0, "retrain": 0.0, "control": 0.0, "worse": 0.4, "x": 0.03}
    metrics = advantages(14, {method: (0.3 * (method == "none"),) * 2 for method in lost}, pairs=4)
    for method, parts in metrics.items():
        places = {"unit": parts["advantage"].unit, "split": parts["advantage"].split, "rule": _text.UTILITY}
        for role in ("retain", "test"):
            value = 3.0 + lost[method] + 0.01 * rng.standard_normal(len(places["unit"]))
            parts[f"nll_{role}"] = single(value=value, **places)
    _, rows = compare(metrics)
    assert rows["worse"]["verdict"] == "broken"
    assert rows["worse"]["note"].startswith("nll_retain 0.")
    assert rows["x"]["verdict"] == rows["retrain"]["verdict"] == "equivalent"
    assert all(abs(rows["x"][end]) < rows["x"]["margin"] for end in ("ci_low", "ci_high"))
    assert decide.INNER in rows["x"]["note"]


# ---------------------------------------------------------------- measured from retrained models


def by_seed(seed, common=0.0, **factors):
    """Verdicts on logarithms of efficacy: of twelve seeds, or of (factor, seeds)."""
    rng, values = np.random.default_rng(seed), {}
    for name, factor in factors.items():
        factor, count = factor if isinstance(factor, tuple) else (factor, 12)
        values[name] = common + np.log(factor) + 0.05 * rng.standard_normal(count)
    return compare(of_seeds(values))


def test_efficacy_is_measured_from_retrained_models_seed_by_seed():
    """What a seed does to all methods is twenty times as large as the rest. Doing nothing leaves a factor of 8, of
    which a factor of 2 is a third."""
    common = np.random.default_rng(3).standard_normal(12)
    _, rows = by_seed(3, common, none=8.0, retrain=1.0, retrain_control=1.0, twice=2.0, below=0.4)
    twice = rows["twice"]
    assert twice["distance"] == pytest.approx(np.log(2), abs=0.1)
    assert twice["ci_high"] - twice["ci_low"] < 0.2
    assert classes(rows)["none"] == classes(rows)["twice"] == "distinguishable"
    assert rows["below"]["verdict"] == "over_unlearned"
    assert rows["retrain_control"]["p_holm"] > 0.05
    assert (twice["margin"], twice["share_closed"]) == (pytest.approx(np.log(1.5)), pytest.approx(2 / 3, abs=0.06))


def test_retraining_without_a_control_has_nothing_to_be_measured_from():
    tables, rows = by_seed(4, none=4.0, retrain=1.0)
    assert classes(rows) == {"none": "distinguishable", "retrain": "inconclusive"}
    assert rows["retrain"]["note"] == "no distance: there is no retrain control to compare with"
    assert {row["method"] for row in tables.distances} == {"none"}


def test_models_without_partners_are_held_against_the_mean_and_without_retraining_there_is_no_verdict():
    row = by_seed(5, none=4.0, retrain=(1.0, 8))[1]["none"]
    assert (row["verdict"], row["distance"]) == ("distinguishable", pytest.approx(np.log(4), abs=0.1))
    assert set(classes(by_seed(24, none=4.0, x=1.0)[1]).values()) == {"no_yardstick"}


@pytest.mark.parametrize(("near", "value", "ends"), [(-1, 0.5, (-0.25, 0.2)), (1, 1.6, (-0.2, 0.25))])
def test_the_margin_of_a_ratio_is_a_factor_to_both_sides(near, value, ends):
    (part,) = of_seeds({"x": np.full(6, value) + 0.01 * np.arange(6)})["x"].values()
    rule = replace(part.rule, ideal=1.0, direction=near, margin="forgetting_quality", scale="ratio", two_sided=False)
    (row,) = compare({"x": {"f": replace(part, rule=rule)}})[0].distances
    with pytest.raises(ValueError, match="the margin 'auk' of a metric is neither a number nor one of the study's"):
        compare({"x": {"f": replace(part, rule=replace(rule, margin="auk"))}})
    assert (row["margin_far"], row["margin_near"]) == pytest.approx(ends)
    assert (row["distance"], row["from"]) == (pytest.approx(near * (value + 0.025 - 1)), "theory")


# ---------------------------------------------------------------- what a scenario can say


def test_where_doing_nothing_is_not_found_no_method_has_a_class():
    truth = {"none": (0.0, 0.0), "retrain": (0.0, 0.0), "x": (0.0, 0.0), "over": (-0.3, -0.1), "broken": (0.0, 0.0)}
    parts = scenario(np.random.default_rng(21), truth, {"broken": 0.4}, **LARGE)
    _, rows = compare({**parts, "diverged": {}}, {"diverged": "NaN"})
    assert classes(rows) == {
        **dict.fromkeys(("none", "retrain", "x", "over"), "nothing_to_find"), "broken": "broken", "diverged": "failed",
    }  # fmt: skip
    assert rows["over"]["found_by"] == "advantage attack0/trained"
    assert "the method differs from retraining nonetheless" in rows["over"]["note"]


def test_a_margin_is_at_most_half_of_what_doing_nothing_leaves():
    """.05 is what the study names."""
    parts = scenario(np.random.default_rng(22), {"none": (0.06,), "retrain": (0.0,), "x": (0.035,)}, **LARGE)
    _, rows = compare(parts)
    assert rows["none"]["p_holm"] <= 0.05
    assert 0 < rows["x"]["margin"] < 0.03
    assert rows["x"]["verdict"] != "equivalent"


def test_yardsticks_that_disagree_are_none():
    truth = {"none": (0.3,), "retrain": (0.0,), "retrain_control": (0.2,), "x": (0.0,)}
    _, rows = compare(scenario(np.random.default_rng(23), truth, **LARGE))
    assert classes(rows) == {"none": "distinguishable",
                             **dict.fromkeys(("retrain", "retrain_control", "x"), "yardsticks_disagree")}  # fmt: skip


NOISE = 20


def beside_noise(truth, seed):
    """Method x beside attacks with known distances and many that decide by coins, whoever is asked."""
    truth = {method: (*distances, *[0.0] * NOISE) for method, distances in truth.items()}
    size = {"samples": 1040, "k": 260, "models": 2}
    return verdicts_of(scenario(np.random.default_rng(seed), truth, **size), draws=100)["x"]


def test_attacks_that_see_nothing_do_not_decide_equivalence(monkeypatch):
    """Twenty of them, each nearly as wide as the margin, leave a retrained method what it is by the one that sees."""
    alike, edge = ({"none": (0.3,), "retrain": (0.0,), "x": (x,)} for x in (0.0, 0.05))
    row = beside_noise(alike, 0)
    assert row["verdict"] == "equivalent"
    assert decide.BLIND.format(NOISE) in row["note"]
    assert beside_noise(edge, 0)["verdict"] != "equivalent"
    monkeypatch.setattr(measured.Read, "with_blind_attacks", lambda read, *_, **__: read)
    assert beside_noise(alike, 0)["verdict"] != "equivalent"


def test_an_attack_that_sees_a_method_but_not_doing_nothing_decides():
    row = beside_noise({"none": (0.3, 0.0), "retrain": (0.0, 0.0), "x": (0.0, -0.2)}, 1)
    assert (row["verdict"], row["found_by"]) == ("over_unlearned", "advantage attack1/trained")


@pytest.mark.parametrize(
    ("shares", "least", "words"),
    [
        ({"retain": (0.11, 0.09, 0.13), "most_frequent": (0.12, 0.12, 0.12)}, 0.01, "learned nothing"),
        ({"retain": (0.9, 0.8, 1.0), "most_frequent": (0.1, 0.1, 0.1), "forget": (0.8, 0.75, 0.85),
          "heldout": (0.72, 0.69, 0.75)}, 0.01, "memorised nothing"),
        ({"forget": (0.99, 0.97, 1.0), "heldout": (0.6, 0.5, 0.7)}, 0.2, "too few pairs, models or samples"),
        ({"forget": (0.99, 0.97, 1.0), "heldout": (0.6, 0.5, 0.7)}, 0.02, "the attacks find no traces"),
        ({"forget": (0.25, 0.0, 0.67, 2), "heldout": (0.6, 0.5, 0.7)}, 0.02, "0.25 [0.00, 0.67] on samples to be"),
    ],
)  # fmt: skip
def test_why_there_is_nothing_to_find(shares, least, words):
    of_several = {name: Estimate(*numbers, *[40] * (4 - len(numbers))) for name, numbers in shares.items()}
    sentence = sensitivity.explanation(of_several, least_distance=least, margin=0.05)
    assert words in sentence
    assert sensitivity.reason({"note": f"{sentence}; it differs all the same"}) == sentence


def test_what_is_seen_but_may_be_chance_takes_more_models_and_not_other_attacks():
    shares = {"forget": Estimate(0.8, 0.75, 0.85, 40), "heldout": Estimate(0.77, 0.74, 0.8, 40)}
    sentence = sensitivity.explanation(shares, least_distance=0.01, margin=0.05, more="retrained models", measured=0.41)
    assert sentence.startswith("too few retrained models: doing nothing lies 0.41 from retraining, beyond the margin")
    assert sentence.endswith("add retrained models")


def test_accuracies_of_all_models_are_read_by_role():
    rows = [
        Row("accuracy", 0.9, 0.8, 1.0, 7, role="retain"), Row("majority_share", 0.5, 0.4, 0.6, 9, role="retain"),
        Row("accuracy", math.nan, role="test"), Row("accuracy", 0.1, role="forget", pair=0), Row("auc", 0.3),
    ]  # fmt: skip
    read = {"retain": Estimate(0.9, 0.8, 1.0, 7), "most_frequent": Estimate(0.5, 0.4, 0.6, 9)}
    assert sensitivity.accuracies(rows) == read


def test_a_planned_look_asks_for_more():
    """At a level of .001 a distance that .05 finds is not found, and an interval is wider."""
    parts = scenario(np.random.default_rng(27), {"none": (0.3,), "retrain": (0.0,), "x": (0.02,)}, samples=2000, k=400)
    late, soon = (
        next(row for row in verdicts.compare(parts, {}, margins=MARGINS, draws=300, seed=0, alpha=alpha).verdicts
             if row["method"] == "x")
        for alpha in (0.05, 1e-3)
    )  # fmt: skip
    assert soon["p_holm"] == pytest.approx(min(50 * late["p_holm"], 1), rel=0.5)
    assert soon["ci_high"] - soon["ci_low"] > 1.3 * (late["ci_high"] - late["ci_low"])


def with_sham(parts, draws, seed):
    """The tables of a scenario where `sham` changes weights as `mine` does, and whose notes say that they are alike."""
    tables = verdicts.compare(parts, {}, margins=MARGINS, draws=draws, seed=seed, shams={"sham": "mine"})
    said = verdicts.NOT_BETTER.format("sham")
    return tables, {row["method"] for row in tables.verdicts if said in row["note"]}


@pytest.mark.parametrize(("mine", "alike"), [((0.15, 0.1), set()), ((0.29, 0.19), {"mine"}), ((0.4, 0.3), {"mine"})])
def test_a_method_that_is_no_better_than_its_sham_says_so_and_nothing_else_changes(mine, alike):
    truth = {"none": (0.3, 0.2), "retrain": (0.0, 0.0), "mine": mine, "sham": (0.3, 0.2)}
    parts = scenario(np.random.default_rng(4), truth, pairs=4, samples=1200, k=300)
    alone, _ = compare({method: of for method, of in parts.items() if method != "sham"}, draws=50)
    tables, said = with_sham(parts, 50, 0)
    assert said == alike
    for name in ("distances", "ranks", "resolution"):
        np.testing.assert_equal(getattr(tables, name), getattr(alone, name))


@pytest.mark.slow
def test_a_method_that_is_a_sham_is_called_better_in_one_audit_of_twenty_at_most():
    truth = {**{name: TRUTH[name] for name in ("none", "retrain", "retrain_control")},
             "mine": (0.2, 0.2), "sham": (0.2, 0.2)}  # fmt: skip
    better = [not with_sham(scenario(np.random.default_rng(seed), truth), 100, seed)[1] for seed in range(200)]
    assert np.mean(better) <= at_most(0.05, 200)
