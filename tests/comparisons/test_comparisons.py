"""Verdicts on scenarios whose truth is known: classes, error rates, shares, ranks, and what would decide."""

import math
from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.comparisons import distances as measured
from unlearning_audit.comparisons import planning, sensitivity, standings, verdicts
from unlearning_audit.evaluation.contributions import Contribution, Standard, single
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _text
from unlearning_audit.stats import decide, ratio

from comparison_cases import MARGINS, compare, of_seeds, scenario

TRUTH = {
    "none": (0.3, 0.2), "retrain": (0.0, 0.0), "retrain_control": (0.0, 0.0), "half": (0.15, 0.1),
    "over": (-0.25, -0.1), "broken": (0.0, 0.0), "worse": (0.45, 0.2),
}  # fmt: skip


LARGE = {"pairs": 6, "models": 4, "samples": 3000, "k": 700}


@pytest.fixture(scope="module")
def large():
    """One scenario, large enough to decide on all of it."""
    return scenario(np.random.default_rng(0), TRUTH, {"broken": 0.3}, **LARGE)


@pytest.fixture(scope="module")
def verdicts_on_large(large):
    return compare({**large, "diverged": {}}, {"diverged": "NaN in the logits"})


def test_every_method_has_the_class_of_its_truth(verdicts_on_large):
    _, rows = verdicts_on_large
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "none": "distinguishable", "retrain": "equivalent", "retrain_control": "equivalent", "half": "distinguishable",
        "over": "over_unlearned", "broken": "broken", "worse": "distinguishable", "diverged": "failed",
    }  # fmt: skip
    against = {name: row["against_none"] for name, row in rows.items()}
    assert (against["half"], against["worse"], against["over"]) == ("better", "worse", "better")
    assert rows["half"]["found_by"] == "advantage attack0/trained"
    assert rows["retrain"]["found_by"] == ""
    assert rows["diverged"]["note"] == "NaN in the logits"
    assert rows["broken"]["note"].startswith("accuracy_retain 0.")
    assert "worse than retraining" in rows["broken"]["note"]


def test_no_p_value_is_printed_that_nobody_knows(verdicts_on_large):
    """Of intervals that are normal at best, p-values below 10⁻⁴ are none of a probability."""
    tables, rows = verdicts_on_large
    p = np.array([(row["p"], row["p_holm"]) for row in tables.distances])
    assert np.nanmin(p, axis=0).tolist() == [1e-4, 1e-4]
    assert rows["none"]["p_holm"] == 1e-4


def test_the_share_closed_is_that_of_the_truth(verdicts_on_large):
    _, rows = verdicts_on_large
    half = rows["half"]
    assert half["share_low"] < 0.5 < half["share_high"]
    assert half["share_high"] - half["share_low"] < 0.25
    assert rows["worse"]["share_closed"] == pytest.approx(-0.5, abs=0.15)
    assert np.isnan(rows["none"]["share_closed"])


def test_only_what_is_left_beyond_retraining_is_called_the_far_side(verdicts_on_large):
    tables, _ = verdicts_on_large
    notes = {row["method"]: row["note"] for row in tables.distances if row["metric"] == "advantage"}
    assert {m for m in ("half", "over", "worse") if measured.FAR_SIDE in notes[m]} == {"over"}


def test_ranks_hold_the_truth(verdicts_on_large):
    tables, _ = verdicts_on_large
    sets = {row["method"]: (row["best"], row["worst"]) for row in tables.ranks}
    # by distance: retraining and what equals it, then half, over, none, worse
    assert sets["worse"] == (7, 7)
    assert sets["none"][1] < 7
    assert all(sets[name][0] == 1 and sets[name][1] <= 3 for name in ("retrain", "retrain_control", "broken"))
    assert sets["half"][0] >= 4
    # Neither references count, nor "broken", of which there is no usable model.
    ahead = {row["method"]: row["ahead"] for row in tables.ranks}
    assert (ahead["broken"], ahead["half"], ahead["worse"]) == (0, 0, 2)


def test_the_order_of_methods_does_not_matter():
    parts = scenario(np.random.default_rng(9), {name: TRUTH[name] for name in ("none", "retrain", "half")}, pairs=2)
    straight, turned = (compare(order)[0] for order in (parts, dict(reversed(parts.items()))))
    for name in ("verdicts", "distances", "ranks"):
        rows = {(row.get("metric"), row["method"]): row for row in getattr(straight, name)}
        for row in getattr(turned, name):
            for column, value in rows[row.get("metric"), row["method"]].items():
                assert (
                    value == row[column] if isinstance(value, str) else np.isclose(value, row[column], equal_nan=True)
                )


def test_methods_that_correspond_with_most_others_have_ranks_whoever_comes_first():
    """One of two attacks has no score of `odd`; of two sets of one size, that with most methods to compare."""
    truth = {"odd": (0.1, 0.1), "none": (0.4, 0.3), "x": (0.05, 0.0), "y": (0.2, 0.1)}
    parts = scenario(np.random.default_rng(0), truth, pairs=3, models=1)
    parts = {method: {"advantage": metrics["advantage"]} for method, metrics in parts.items()}
    for lone, ranked in (({"odd"}, {"none", "x", "y"}), ({"odd", "none"}, {"x", "y"}), ({"x", "y"}, {"x", "y"})):
        mixed = {method: {"advantage": one_attack(by["advantage"]) if method in lone else by["advantage"]}
                 for method, by in parts.items()}  # fmt: skip
        for turn in range(len(truth)):
            order = [*truth][turn:] + [*truth][:turn]
            rows = compare({method: mixed[method] for method in order})[0].ranks
            assert {row["method"] for row in rows} == ranked
        straight, turned = (standings.standings([by] * 2, margins=MARGINS, draws=100, seed=0)
                            for by in (mixed, dict(reversed(mixed.items()))))  # fmt: skip
        assert {row["method"] for row in straight} == {row["method"] for row in turned} == ranked


def one_attack(part: Contribution) -> Contribution:
    arrays = {name: getattr(part, name)[:1] for name in ("names", "value", "influence", "imagined")}
    return replace(part, **arrays)


def test_methods_that_are_retraining_are_seldom_distinguishable():
    rng, scenarios, wrong = np.random.default_rng(1), 40, 0
    truth = {"none": (0.3, 0.2), **dict.fromkeys(("retrain", "a", "b", "c"), (0.0, 0.0))}
    for i in range(scenarios):
        parts = scenario(rng, truth, pairs=2, samples=200, k=40)
        _, rows = compare({name: {"advantage": metrics["advantage"]} for name, metrics in parts.items()}, seed=i)
        wrong += any(rows[name]["p_holm"] <= 0.05 for name in ("retrain", "a", "b", "c"))
        assert rows["none"]["verdict"] == "distinguishable"
    assert wrong / scenarios <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / scenarios)


def test_methods_at_the_margin_are_seldom_called_retrained():
    rng, scenarios, wrong = np.random.default_rng(2), 40, 0
    for i in range(scenarios):
        parts = scenario(rng, {"none": (0.3,), "retrain": (0.0,), "edge": (0.05,)}, pairs=3, samples=800, k=200)
        wrong += compare(parts, seed=i)[1]["edge"]["verdict"] == "equivalent"
    assert wrong / scenarios <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / scenarios)


def test_without_accuracies_nothing_is_as_retrained(large):
    lone = {name: {"advantage": metrics["advantage"]} for name, metrics in large.items()}
    lone["retrain"] = large["retrain"]
    _, rows = compare(lone)
    assert rows["retrain_control"]["verdict"] == "inconclusive"
    assert "accuracy_test (has no number with an uncertainty)" in rows["retrain_control"]["note"]


# ---------------------------------------------------------------- what tells is what is shown


def advantages(rng, truth: dict[str, tuple[float, ...]], spread: tuple[float, ...], pairs=2, splits=6):
    """Advantages of two attacks: means over many models, which vary by ``spread`` between pairs, little within."""
    names = "loud/trained", "sure/trained"
    unit, split = np.repeat(np.arange(pairs), splits), np.zeros(pairs * splits, np.int64)
    parts = {}
    for method, distances in truth.items():
        apart = [np.repeat(s * np.where(np.arange(pairs) % 2, 1.0, -1.0), splits) for s in spread]
        value = np.stack([d + a + 0.01 * rng.standard_normal(len(unit)) for d, a in zip(distances, apart, strict=True)])
        empty = np.zeros((2, len(unit), 0))
        standard = Standard(1, "advantage", ideal=0.0, units="pairs", lowest=-1.0, highest=1.0)
        contribution = Contribution(names, value, empty, empty, unit, split, np.arange(0), standard)
        parts[method] = {"advantage": contribution}
    return parts


def test_a_method_that_is_distinguishable_shows_an_interval_that_says_so():
    """Two pairs that differ: how far others are is unknown, but that these are not retraining is not."""
    parts = advantages(np.random.default_rng(11), {"none": (0.3, 0.1), "x": (0.2, 0.0)}, (0.05, 0.0))
    tables, rows = compare(parts)
    for name in ("none", "x"):
        assert rows[name]["verdict"] == "distinguishable"
        assert rows[name]["ci_low"] < 0 < rows[name]["distance"]
        assert measured.DISAGREE in rows[name]["note"]
        assert rows[name]["ci_low"] >= -1
        assert rows[name]["ci_high"] <= 1
    far = {row["method"]: row for row in tables.distances}
    assert all(row["disagree"] == 1 for row in far.values())
    assert far["x"]["inner_low"] < 0 < far["x"]["distance"]  # equivalence is asked of all pairs that there might be
    assert rows["x"]["share_closed"] == pytest.approx(1 / 3, abs=0.1)
    assert np.isnan(rows["x"]["share_low"])
    assert ratio.UNBOUNDED in rows["x"]["note"]


def test_the_attack_that_tells_is_shown_not_a_louder_one_that_does_not():
    rng = np.random.default_rng(12)
    parts = advantages(rng, {"none": (0.3, 0.3), "x": (0.12, 0.08)}, (0.0, 0.0))
    noisy = parts["x"]["advantage"]
    value = noisy.value.copy()
    value[0] += 0.5 * (rng.standard_normal(value.shape[1]))
    value[0] += 0.12 - value[0].mean()
    parts["x"]["advantage"] = replace(noisy, value=value)
    _, rows = compare(parts)
    assert rows["x"]["found_by"] == "advantage sure/trained"
    assert rows["x"]["distance"] == pytest.approx(0.08, abs=0.02)
    assert rows["x"]["ci_low"] > 0


def test_of_attacks_that_tell_the_strongest_is_shown():
    parts = advantages(np.random.default_rng(13), {"none": (0.3, 0.1), "x": (-0.12, 0.08)}, (0.0, 0.0), pairs=4)
    _, rows = compare(parts)
    assert rows["none"]["found_by"] == rows["x"]["found_by"] == "advantage loud/trained"
    assert rows["x"]["verdict"] == "over_unlearned"


def test_a_language_model_is_broken_by_its_perplexity():
    """Loss per token against retraining: a quarter more perplexity is broken, a tenth is within the margin."""
    rng = np.random.default_rng(14)
    truth = {"none": (0.3, 0.1), **dict.fromkeys(("retrain", "control", "worse", "x"), (0.0, 0.0))}
    metrics = advantages(rng, truth, (0.0, 0.0), pairs=4)
    for method, lost in {"none": 0.0, "retrain": 0.0, "control": 0.0, "worse": 0.4, "x": 0.03}.items():
        parts = metrics[method]["advantage"]
        for role in ("retain", "test"):
            metrics[method][f"nll_{role}"] = single(
                value=3.0 + lost + 0.01 * rng.standard_normal(len(parts.unit)), unit=parts.unit, split=parts.split,
                standard=_text.UTILITY,
            )  # fmt: skip
    _, rows = compare(metrics)
    assert rows["worse"]["verdict"] == "broken"
    assert rows["worse"]["note"].startswith("nll_retain 0.")
    assert rows["x"]["verdict"] == rows["retrain"]["verdict"] == "equivalent"
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
    assert (verdicts["none"], verdicts["twice"], verdicts["below"]) == (
        "distinguishable",
        "distinguishable",
        "over_unlearned",
    )
    assert rows["retrain_control"]["p_holm"] > 0.05
    assert rows["twice"]["margin"] == pytest.approx(np.log(1.5))
    # what doing nothing leaves is a factor of 8, of which a factor of 2 is a third
    assert rows["twice"]["share_closed"] == pytest.approx(2 / 3, abs=0.06)


def test_retraining_without_a_control_has_nothing_to_be_measured_from():
    rng = np.random.default_rng(4)
    tables, rows = compare(
        of_seeds({name: seeds(rng, factor) for name, factor in {"none": 4.0, "retrain": 1.0}.items()})
    )
    assert rows["retrain"]["verdict"] == "inconclusive"
    assert rows["retrain"]["note"] == "no distance: there is no retrain control to compare with"
    assert rows["none"]["verdict"] == "distinguishable"
    assert {row["method"] for row in tables.distances} == {"none"}


def test_models_without_partners_are_held_against_the_mean():
    rng = np.random.default_rng(5)
    parts = of_seeds({"none": seeds(rng, 4.0), "retrain": seeds(rng, 1.0, count=8)})
    _, rows = compare(parts)
    assert rows["none"]["verdict"] == "distinguishable"
    assert rows["none"]["distance"] == pytest.approx(np.log(4), abs=0.1)


@pytest.mark.parametrize(("near", "value", "ends"), [(-1, 0.5, (-0.25, 0.2)), (1, 1.6, (-0.2, 0.25))])
def test_the_margin_of_a_ratio_is_a_factor_to_both_sides(near, value, ends):
    (part,) = of_seeds({"x": np.full(6, value) + 0.01 * np.arange(6)})["x"].values()
    standard = replace(part.standard, ideal=1.0, direction=near, margin="forgetting_quality", scale="ratio", far=False)
    tables, _ = compare({"x": {"f": replace(part, standard=standard)}})
    (row,) = tables.distances
    assert (row["margin_far"], row["margin_near"]) == pytest.approx(ends)
    assert row["distance"] == pytest.approx(near * (value + 0.025 - 1))
    assert row["from"] == "theory"


# ---------------------------------------------------------------- what a scenario can say


def test_where_doing_nothing_is_not_found_no_method_has_a_class():
    truth = {"none": (0.0, 0.0), "retrain": (0.0, 0.0), "x": (0.0, 0.0), "over": (-0.3, -0.1), "broken": (0.0, 0.0)}
    parts = scenario(np.random.default_rng(21), truth, {"broken": 0.4}, **LARGE)
    _, rows = compare({**parts, "diverged": {}}, {"diverged": "NaN"})
    assert {name: row["verdict"] for name, row in rows.items()} == {
        **dict.fromkeys(("none", "retrain", "x", "over"), "nothing_to_find"), "broken": "broken", "diverged": "failed",
    }  # fmt: skip
    assert rows["over"]["found_by"] == "advantage attack0/trained"
    assert "the method differs from retraining nonetheless" in rows["over"]["note"]


def test_a_margin_is_at_most_half_of_what_doing_nothing_leaves():
    parts = scenario(np.random.default_rng(22), {"none": (0.06,), "retrain": (0.0,), "x": (0.035,)}, **LARGE)
    tables, rows = compare(parts)
    none = next(row for row in tables.distances if row["method"] == "none" and row["metric"] == "advantage")
    assert none["p_holm"] <= 0.05
    assert 0 < rows["x"]["margin"] < 0.03  # .05 is what the study names
    assert rows["x"]["verdict"] != "equivalent"


def test_yardsticks_that_disagree_are_none():
    truth = {"none": (0.3,), "retrain": (0.0,), "retrain_control": (0.2,), "x": (0.0,)}
    _, rows = compare(scenario(np.random.default_rng(23), truth, **LARGE))
    assert {rows[name]["verdict"] for name in ("retrain", "retrain_control", "x")} == {"yardsticks_disagree"}
    assert rows["none"]["verdict"] == "distinguishable"


def test_without_a_yardstick_there_is_no_verdict():
    rng = np.random.default_rng(24)
    _, rows = compare(of_seeds({"none": seeds(rng, 4.0), "x": seeds(rng, 1.0)}))
    assert {row["verdict"] for row in rows.values()} == {"no_yardstick"}


def test_nothing_is_equivalent_without_models_by_which_attacks_are_shown_to_find_something():
    parts = scenario(np.random.default_rng(25), {"retrain": (0.0,), "x": (0.0,)}, **LARGE)
    _, rows = compare(parts)
    assert rows["x"]["verdict"] == "inconclusive"
    assert sensitivity.NO_NONE in rows["x"]["note"]


NOISE = 20


@pytest.fixture
def beside_noise(monkeypatch):
    """Verdicts of attacks with known distances and many that decide by coins, whoever is asked; no forecasts."""
    for name in ("requirements", "plans"):
        monkeypatch.setattr(planning, name, lambda *_: [])

    def judged(truth, seed):
        truth = {method: (*distances, *[0.0] * NOISE) for method, distances in truth.items()}
        size = {"samples": 1040, "k": 260, "models": 2}
        return compare(scenario(np.random.default_rng(seed), truth, **size))[1]

    return judged


def test_attacks_that_see_nothing_do_not_decide_equivalence(beside_noise, monkeypatch):
    """Twenty of them, each nearly as wide as the margin, leave a retrained method what it is by the one that sees."""
    truth = {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}
    rows = [beside_noise(truth, seed)["x"] for seed in range(4)]
    assert sum(row["verdict"] == "equivalent" for row in rows) >= 3
    assert decide.BLIND.format(NOISE) in rows[0]["note"]
    monkeypatch.setattr(measured.Read, "sighted", lambda read, *_: read)
    rows = [beside_noise(truth, seed)["x"] for seed in range(2)]
    assert not any(row["verdict"] == "equivalent" for row in rows)


def test_an_attack_that_sees_a_method_but_not_doing_nothing_decides(beside_noise):
    truth = {"none": (0.3, 0.0), "retrain": (0.0, 0.0), "x": (0.0, -0.2)}
    row = beside_noise(truth, 1)["x"]
    assert row["verdict"] == "over_unlearned"
    assert row["found_by"] == "advantage attack1/trained"


def test_a_method_at_the_margin_by_an_attack_that_sees_is_not_equivalent(beside_noise):
    truth = {"none": (0.3,), "retrain": (0.0,), "x": (0.05,)}
    assert not any(beside_noise(truth, seed)["x"]["verdict"] == "equivalent" for seed in range(2))


@pytest.mark.parametrize(
    ("shares", "least", "words"),
    [
        ({"retain": (0.11, 0.09, 0.13), "most_frequent": (0.12, 0.12, 0.12)}, 0.01, "learned nothing"),
        ({"retain": (0.9, 0.8, 1.0), "most_frequent": (0.1, 0.1, 0.1), "forget": (0.8, 0.75, 0.85),
          "heldout": (0.72, 0.69, 0.75)}, 0.01, "memorised nothing"),
        ({"forget": (0.99, 0.97, 1.0), "heldout": (0.6, 0.5, 0.7)}, 0.2, "too few pairs, models or samples"),
        ({"forget": (0.99, 0.97, 1.0), "heldout": (0.6, 0.5, 0.7)}, 0.02, "the attacks find no traces"),
        ({"forget": (0.25, 0.0, 0.67, 2), "heldout": (0.6, 0.5, 0.7)}, 0.02, "0.25 [0.00, 0.67] on samples to be"),
        ({"forget": (1.0, 0.24, 1.0, 1), "heldout": (0.6, 0.5, 0.7)}, 0.2, "only one sample is to be forgotten, which"),
    ],
)  # fmt: skip
def test_why_there_is_nothing_to_find(shares, least, words):
    of_several = {name: sensitivity.Share(*numbers, *[40] * (4 - len(numbers))) for name, numbers in shares.items()}
    sentence = sensitivity.explanation(of_several, least_distance=least, margin=0.05)
    assert words in sentence
    assert sensitivity.reason({"note": f"{sentence}; it differs all the same"}) == sentence


def test_accuracies_of_all_models_are_read_by_role():
    rows = [
        Row("accuracy", 0.9, 0.8, 1.0, 7, role="retain"), Row("majority_share", 0.5, 0.4, 0.6, 9, role="retain"),
        Row("accuracy", math.nan, role="test"), Row("accuracy", 0.1, role="forget", pair=0), Row("auc", 0.3),
    ]  # fmt: skip
    read = {"retain": sensitivity.Share(0.9, 0.8, 1.0, 7), "most_frequent": sensitivity.Share(0.5, 0.4, 0.6, 9)}
    assert sensitivity.accuracies(rows) == read


def test_what_is_seen_but_may_be_chance_takes_more_models_and_not_other_attacks():
    sentence = sensitivity.explanation({}, least_distance=0.01, margin=0.05, more="retrained models", measured=0.41)
    assert sentence.startswith("too few retrained models: doing nothing lies 0.41 from retraining, beyond the margin")
    assert sentence.endswith("add retrained models")


def test_a_planned_look_asks_for_more():
    """At a level of .001 a distance that .05 finds is not found, and an interval is wider."""
    parts = scenario(np.random.default_rng(27), {"none": (0.3,), "retrain": (0.0,), "x": (0.02,)}, samples=2000, k=400)
    whole, early = (
        verdicts.compare(parts, {}, margins=MARGINS, draws=300, seed=0, alpha=alpha).verdicts for alpha in (0.05, 1e-3)
    )
    late, soon = ({row["method"]: row for row in rows}["x"] for rows in (whole, early))
    assert soon["p_holm"] == pytest.approx(min(50 * late["p_holm"], 1), rel=0.5)
    assert soon["ci_high"] - soon["ci_low"] > 1.3 * (late["ci_high"] - late["ci_low"])


@pytest.mark.parametrize(("truth", "better"), [((0.15, 0.1), True), ((0.3, 0.2), False), ((0.4, 0.3), False)])
def test_a_method_that_is_no_better_than_its_sham_says_so_and_nothing_else_changes(truth, better):
    parts = scenario(np.random.default_rng(4), {**TRUTH, "mine": truth, "sham": (0.3, 0.2)}, **LARGE)
    alone, _ = compare({method: of for method, of in parts.items() if method != "sham"})
    with_sham = verdicts.compare(parts, {}, margins=MARGINS, draws=300, seed=0, shams={"sham": "mine"})
    said = {row["method"]: verdicts.NOT_BETTER.format("sham") in row["note"] for row in with_sham.verdicts}
    assert said == {**dict.fromkeys(TRUTH, False), "mine": not better}
    for name in ("distances", "ranks", "resolution"):
        np.testing.assert_equal(getattr(with_sham, name), getattr(alone, name))


@pytest.mark.slow
def test_a_method_that_is_a_sham_is_called_better_in_one_audit_of_twenty_at_most():
    audits, better = 200, 0
    for seed in range(audits):
        truth = {name: TRUTH[name] for name in ("none", "retrain", "retrain_control")} | {
            "mine": (0.2, 0.2),
            "sham": (0.2, 0.2),
        }
        parts = scenario(np.random.default_rng(seed), truth)
        rows = verdicts.compare(parts, {}, margins=MARGINS, draws=100, seed=seed, shams={"sham": "mine"}).verdicts
        (note,) = (row["note"] for row in rows if row["method"] == "mine")
        better += verdicts.NOT_BETTER.format("sham") not in note
    assert better / audits <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / audits)
