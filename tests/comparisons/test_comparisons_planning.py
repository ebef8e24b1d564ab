"""What would decide an inconclusive method, and what a pilot foretells, against studies of that size."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.comparisons import planning, sensitivity
from unlearning_audit.evaluation.effects import DecisionRule, single
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import competition

from comparison_cases import compare, scenario, verdicts_of
from stat_cases import at_least


def inconclusive(seed, truth, lost=None, **size):
    """What would decide on the inconclusive method x, its line, and its distance by the advantage."""
    tables, rows = compare(scenario(np.random.default_rng(seed), truth, lost, **size))
    assert rows["x"]["verdict"] == "inconclusive"
    needs = [row for row in tables.resolution if row["method"] == "x" and row["what"].startswith("decides_")]
    (advantage,) = (row for row in tables.distances if (row["method"], row["metric"]) == ("x", "advantage"))
    return needs, rows["x"]["note"], advantage


def test_an_inconclusive_method_says_what_would_decide():
    needs, note, advantage = inconclusive(6, {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}, pairs=2)
    alike, finding = ([row for row in needs if row["outcome"] == way] for way in ("equivalent", "distinguishable"))
    most = max(row["units"] for row in alike if row["what"] == "decides_pairs")
    assert f"if the method is like retraining, {most:g} pairs" in note
    ends = {row["assumed"] for row in finding if row["metric"] == "advantage"}
    assert set() < ends <= {advantage["ci_low"], advantage["ci_high"]}  # the estimate is not taken for the truth
    assert {row["assumed"] for row in alike} == {0}


def test_no_worth_makes_a_method_distinguishable_and_what_there_is_is_no_advice():
    """Accuracies lie beyond their margin by more than chance, and far more than a study of this size needs to see."""
    truth = {"none": (0.3,), **dict.fromkeys(("retrain", "retrain_control", "x"), (0.0,))}
    needs, note, _ = inconclusive(0, truth, {"x": 0.07}, pairs=8, samples=1200, k=240)
    assert "accuracy_retain" in note
    assert {(row["outcome"], row["times"]) for row in needs} == {("equivalent", 1.0)}
    enough = "if the method is like retraining, a study of this size shows it with power 0.8"
    assert note.count("; if") == note.count(enough) == 1


def test_without_models_before_unlearning_nothing_shows_equivalence():
    truth = {"retrain": (0.0,), "x": (0.0,)}
    needs, note, _ = inconclusive(0, truth, pairs=5, models=2, samples=1200, k=40)
    assert note.startswith(sensitivity.NO_NONE)
    assert "if the method is like retraining" not in note
    assert "find it" in note
    assert {row["outcome"] for row in needs} == {"distinguishable"}


def test_what_would_decide_decides():
    """With as many pairs as were asked for, four of five such methods are decided."""
    rng, audits, decided = np.random.default_rng(7), 8, 0
    truth = {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}
    pilot, _ = compare(scenario(rng, truth, pairs=3, samples=4000))
    planned = [row for row in pilot.resolution if (row["method"], row["what"]) == ("x", "decides_pairs")]
    pairs = max(row["units"] for row in planned if row["outcome"] == "equivalent")
    for i in range(audits):
        lines = verdicts_of(scenario(rng, truth, pairs=pairs, samples=4000), seed=i)
        decided += lines["x"]["verdict"] == "equivalent"
    assert decided / audits >= at_least(0.8, audits)


def test_the_size_of_a_pool_is_found_from_how_often_its_samples_are_drawn():
    distinct = 300 * (1 - (1 - 60 / 300) ** 5)
    sizes = [planning.pool_size(units=units, per_unit=per_unit, distinct=count)
             for units, per_unit, count in ((5, 60, distinct), (4, 10, 40), (4, 10, 10))]  # fmt: skip
    assert sizes == pytest.approx([300, np.inf, 10])


def of_retraining(rng, pairs: int, models: int):
    """Rows on retraining in the table of resolution of one study."""
    truth = {"none": (0.3, 0.2), "retrain": (0.0, 0.0)}
    parts = scenario(rng, truth, pairs=pairs, models=models, samples=2000)
    tables, _ = compare({name: {"advantage": metrics["advantage"]} for name, metrics in parts.items()})
    return [row for row in tables.resolution if row["method"] == "retrain"]


@pytest.mark.parametrize(("dimension", "times"), [("pairs", 4.0), ("models", 2.0)])
def test_what_is_foretold_of_any_study_is_what_the_file_says_of_that_size(dimension, times):
    pilot = of_retraining(np.random.default_rng(15), 4, 2)
    stored = next(row for row in pilot if (row["what"], row["times"]) == (dimension, times))
    forecast = planning.forecast(pilot, **{"pairs": 1.0, "models": 1.0, dimension: times})
    assert [forecast[n] for n in ("units", "models", "samples")] == [stored[n] for n in ("units", "models", "samples")]
    assert (stored["samples"] > pilot[0]["samples"]) == (dimension == "pairs"), "pairs alone bring further samples"
    for name in ("half_width", "least_distance"):
        assert forecast[name] == pytest.approx(stored[name], rel=0.05)


@pytest.mark.slow
def test_a_pilot_foretells_the_half_width_of_a_larger_study():
    """The mean of what pilots foretell is within a fifth of what studies of three times as many pairs give, with twice
    as many models."""
    rng = np.random.default_rng(8)
    foretold = [planning.forecast(of_retraining(rng, 4, 2), pairs=3.0, models=2.0)["half_width"] for _ in range(24)]
    measured = [of_retraining(rng, 12, 4)[0]["half_width"] for _ in range(8)]
    assert np.mean(foretold) == pytest.approx(np.mean(measured), rel=0.2)


@pytest.mark.slow
def test_more_models_do_not_narrow_the_competition_s_score_and_none_is_foretold():
    """F₀ is that of the luckiest threshold among models that do not differ, however many there are."""
    rng, options, widths = np.random.default_rng(20), competition.Options(), {16: [], 64: []}
    for models in [16, 64] * 8:
        sample = rng.standard_normal(30)
        x, retrained, control = sample + rng.standard_normal((3, models, 30))
        none = sample + 1.5 + rng.standard_normal((models, 30))
        parts = {
            name: competition.over_null((phi, retrained, control), np.arange(30), options, rng)
            for name, phi in {"none": none, "x": x, "retrain": retrained}.items()
        }
        tables, rows = compare(parts)
        (row,) = (row for row in tables.resolution if row["method"] == "x" and row["what"] == "today")
        widths[models].append(row["half_width"])
        assert {row["what"] for row in tables.resolution} == {"today", "samples"}
        assert planning.forecast([row], pairs=4.0, models=1.0)["half_width"] == row["half_width"]
        if rows["x"]["verdict"] == "inconclusive":
            assert planning.NEITHER in rows["x"]["note"]
    assert 0.7 < np.median(widths[64]) / np.median(widths[16]) < 1.4  # half as wide, if they were averages


@pytest.mark.parametrize("audited", [1, 3, 10])
def test_models_without_partners_resolve_what_their_interval_does(audited):
    """Models vary by .08, which samples alone, of which there are many, do not show; ten are retrained."""
    rng, rule = np.random.default_rng(0), DecisionRule(1, "auc", lowest=0.0, highest=1.0)

    def models(count, mean):
        influence = 0.02 / np.sqrt(60) * rng.standard_normal((count, 60))
        value, unit = mean + 0.08 * rng.standard_normal(count), np.zeros(count, int)
        return {"auc": replace(single(value=value, influence=influence, unit=unit, rule=rule), partners=False)}

    counts = {"none": audited, "x": audited, "retrain": 10, "retrain_control": 10}
    tables, _ = compare({name: models(count, 0.9 if name == "none" else 0.5) for name, count in counts.items()})
    plans = [row for row in tables.resolution if not row["what"].startswith("decides_")]
    assert [(row["method"], row["what"]) for row in plans] == [(name, "today") for name in counts]
    for today, distance in zip(plans, tables.distances, strict=True):
        assert today["half_width"] == pytest.approx((distance["ci_high"] - distance["ci_low"]) / 2)
        error = 0.08 * np.sqrt(1 / counts[today["method"]] + 1 / 10)
        assert today["least_distance"] > (1.96 + 0.84) * 0.5 * error
        assert planning.forecast([today], pairs=4.0, models=1.0) == today


def row(metric, outcome, times, assumed=0.0, part="pairs", unit="pairs"):
    return {"metric": metric, "what": f"decides_{part}", "outcome": outcome, "times": times, "units": 4 * times,
            "unit": unit, "models": 3 * times, "assumed": assumed}  # fmt: skip


ALIKE, LIMIT = (
    "if the method is like retraining, {} with power 0.8",
    "if its distance is the {} limit of the interval, {}",
)
SIZE = "a study of this size"


@pytest.mark.parametrize(
    ("rows", "metrics", "sentence"),
    [
        ([("a", 2), ("b", 3)], "ab", ALIKE.format("12 pairs show it")),
        ([("a", 2), ("b", 3)], "abc", planning.NEITHER),
        ([("a", 1), ("b", 1)], "ab", ALIKE.format(f"{SIZE} shows it")),
        ([("a", 2), ("b", 3, 0.0, "pairs", "blocks")], "ab", ALIKE.format("12 pairs show it")),
        ([("a", 2), ("a", 3, 0.0, "models")], "a", ALIKE.format("8 pairs or 9 models per split show it")),
        ([("a", 0.25, 0.0, "pairs", "blocks"), ("a", 2, 0.0, "retrained", "blocks")], "a",
         ALIKE.format("1 block or 6 retrained models show it")),
        ([], "a", planning.NEITHER),
    ],
)  # fmt: skip
def test_equivalence_takes_every_metric_that_is_inconclusive(rows, metrics, sentence):
    needs = [row(name, "equivalent", *rest) for name, *rest in rows]
    assert planning.instruction(needs, metrics=set(metrics), unknown=[]) == sentence


@pytest.mark.parametrize(
    ("rows", "metrics", "sentence"),
    [
        ([("a", 9, -0.02), ("a", 2, 0.3), ("b", 5, 0.1)], "ab",
         f"{LIMIT.format('upper', '8 pairs find it')}; {LIMIT.format('lower', '20 pairs find it')}"),
        # What there is is no advice, nor is it where another metric would need more.
        ([("a", 9, -0.02), ("a", 1, 0.3)], "a", LIMIT.format("lower", "36 pairs find it")),
        ([("a", 9, -0.02), ("a", 1, 0.3), ("b", 7, 0.1), ("b", 6, -0.1)], "ab",
         LIMIT.format("lower", "24 pairs find it")),
        ([("a", 1, 0.3)], "a",
         f"{LIMIT.format('upper', f'{SIZE} finds it')}; {LIMIT.format('lower', f'{SIZE} finds it')}"),
    ],
)  # fmt: skip
def test_a_distance_is_found_by_one_metric_at_either_limit(rows, metrics, sentence):
    needs = [row(name, "distinguishable", *rest) for name, *rest in rows]
    assert planning.instruction(needs, metrics=set(metrics), unknown=[]) == sentence
    assert planning.instruction(needs, metrics=set(metrics), unknown=["q", "r"]) == "nothing to compare with by q, r"


def test_more_seeds_bring_what_their_variances_foretell():
    """Of differences in mean confidence, σ² = σ²_training/p + (σ²_unlearning + σ²_retrained)/(p·m)."""
    training, unlearning, retrained = 1.0, 0.6, 0.8
    both = [Row("sd_of_training", training, n=8), Row("sd_of_unlearning", unlearning, n=32)]
    of_retrained = [Row("sd_of_training", 0.0, n=8), Row("sd_of_unlearning", retrained, n=32)]
    alone = [Row("sd_of_training", note="alone", n=1), both[1]]
    plans = planning.seed_rows({"finetune": [*both, Row("accuracy", 0.5)], "retrain": of_retrained, "salun": alone})
    assert {row["method"] for row in plans} == {"finetune"}
    sizes = {(row["what"], row["times"]): (row["units"], round(row["models"])) for row in plans}
    assert {size: sizes[size] for size in (("today", 1.0), ("pairs", 4.0), ("models", 4.0))} == {
        ("today", 1.0): (8, 4), ("pairs", 4.0): (32, 4), ("models", 4.0): (8, 16),
    }  # fmt: skip
    for plan in plans:
        p, m = plan["units"], round(plan["models"])
        assert (plan["pair"], plan["model"]) == (training**2, pytest.approx(unlearning**2 + retrained**2))
        error = np.sqrt(training**2 / p + (unlearning**2 + retrained**2) / (p * m))
        assert plan["half_width"] == pytest.approx(stats.t_quantile(p=0.975, dof=p - 1) * error, rel=0.08)
    assert planning.seed_rows({"finetune": both, "retrain": of_retrained[:1]}) == [], "only of training seeds"
    assert planning.seed_rows({"finetune": both[::-1], "retrain": of_retrained[::-1]}) == plans
