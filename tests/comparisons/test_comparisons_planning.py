"""What would decide an inconclusive method, and what a pilot foretells, against studies of that size."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.comparisons import planning, sensitivity
from unlearning_audit.evaluation.contributions import Standard, single
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import competition

from comparison_cases import compare, scenario

PLAN = "x", "pairs", 4.0


def test_an_inconclusive_method_says_what_would_decide():
    parts = scenario(np.random.default_rng(6), {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}, pairs=2)
    tables, rows = compare(parts)
    assert rows["x"]["verdict"] == "inconclusive"
    needs = [row for row in tables.resolution if row["method"] == "x" and row["what"].startswith("decides_")]
    assert {row["metric"] for row in needs} >= {"advantage"}
    alike = [row for row in needs if row["outcome"] == "equivalent"]
    most = max(row["units"] for row in alike if row["what"] == "decides_pairs")
    assert f"if the method is like retraining, {most:g} pairs" in rows["x"]["note"]
    (advantage,) = (row for row in tables.distances if row["method"] == "x" and row["metric"] == "advantage")
    ends = {row["assumed"] for row in needs if row["outcome"] == "distinguishable" and row["metric"] == "advantage"}
    assert ends <= {advantage["ci_low"], advantage["ci_high"]}  # the estimate is not taken for the truth
    assert all(row["assumed"] == 0 for row in alike)


def test_no_worth_makes_a_method_distinguishable_and_what_there_is_is_no_advice():
    """Accuracies lie beyond their margin by more than chance, and far more than a study of this size needs to see."""
    truth = dict.fromkeys(("retrain", "retrain_control", "x"), (0.0,))
    parts = scenario(np.random.default_rng(0), {"none": (0.3,), **truth}, {"x": 0.07}, pairs=8, samples=1200, k=240)
    tables, rows = compare(parts)
    assert rows["x"]["verdict"] == "inconclusive"
    assert "accuracy_retain" in rows["x"]["note"]
    needs = [row for row in tables.resolution if row["method"] == "x" and row["what"].startswith("decides_")]
    assert {(row["outcome"], row["times"]) for row in needs} == {("equivalent", 1.0)}
    enough = "if the method is like retraining, a study of this size shows it with power 0.8"
    assert rows["x"]["note"].count("; if") == rows["x"]["note"].count(enough) == 1


def test_without_models_before_unlearning_nothing_shows_equivalence():
    truth = {"retrain": (0.0,), "x": (0.0,)}
    tables, rows = compare(scenario(np.random.default_rng(0), truth, pairs=5, models=2, samples=1200, k=40))
    assert rows["x"]["verdict"] == "inconclusive"
    assert rows["x"]["note"].startswith(sensitivity.NO_NONE)
    assert "if the method is like retraining" not in rows["x"]["note"]
    assert "find it" in rows["x"]["note"]
    assert "equivalent" not in {row["outcome"] for row in tables.resolution}


def test_what_would_decide_decides():
    """With as many pairs as were asked for, four of five such methods are decided."""
    rng, studies, decided = np.random.default_rng(7), 12, 0
    truth = {"none": (0.3,), "retrain": (0.0,), "x": (0.0,)}
    pilot, _ = compare(scenario(rng, truth, pairs=3, samples=4000))
    needs = [row for row in pilot.resolution if row["method"] == "x" and row["what"] == "decides_pairs"]
    needs = [row for row in needs if row["outcome"] == "equivalent"]
    pairs = int(max(row["units"] for row in needs))
    for i in range(studies):
        _, rows = compare(scenario(rng, truth, pairs=pairs, samples=4000), seed=i)
        decided += rows["x"]["verdict"] == "equivalent"
    assert decided / studies >= 0.8 - 3.1 * np.sqrt(0.8 * 0.2 / studies)


def test_the_size_of_a_pool_is_found_from_how_often_its_samples_are_drawn():
    rng, units, per_unit, pool = np.random.default_rng(10), 5, 60, 300
    met = [len(np.unique([rng.permutation(pool)[:per_unit] for _ in range(units)])) for _ in range(400)]
    assert planning.pool_size(units=units, per_unit=per_unit, distinct=round(np.mean(met))) == pytest.approx(
        pool, rel=0.03
    )
    assert planning.pool_size(units=4, per_unit=10, distinct=40) == np.inf
    assert planning.pool_size(units=4, per_unit=10, distinct=10) == pytest.approx(10)


def test_a_pilot_foretells_the_half_width_of_any_study():
    """From what the file keeps: the rows that are in it, and what a study of other models and pairs then gives."""
    rng, truth = np.random.default_rng(15), {"none": (0.3, 0.2), "retrain": (0.0, 0.0)}

    def rows(pairs: int, models: int):
        parts = scenario(rng, truth, pairs=pairs, models=models, samples=2000)
        tables, _ = compare({name: {"advantage": metrics["advantage"]} for name, metrics in parts.items()})
        return [row for row in tables.resolution if row["method"] == "retrain"]

    pilot = rows(4, 2)
    for dimension, times in (("pairs", 4.0), ("models", 2.0)):
        stored = next(row for row in pilot if (row["what"], row["times"]) == (dimension, times))
        forecast = planning.foretold(pilot, **{"pairs": 1.0, "models": 1.0, dimension: times})
        assert (forecast["units"], forecast["models"], forecast["samples"]) == (
            stored["units"],
            stored["models"],
            stored["samples"],
        )
        assert forecast["half_width"] == pytest.approx(stored["half_width"], rel=0.05)
        assert forecast["least_distance"] == pytest.approx(stored["least_distance"], rel=0.05)
    foretold = [planning.foretold(rows(4, 2), pairs=3.0, models=2.0)["half_width"] for _ in range(8)]
    measured = [rows(12, 4)[0]["half_width"] for _ in range(4)]
    assert np.mean(foretold) == pytest.approx(np.mean(measured), rel=0.2)


@pytest.mark.slow
def test_a_pilot_foretells_the_half_width_of_a_larger_study():
    """Four times as many pairs: the mean of what pilots foretell is within a fifth of what larger studies give."""
    rng, studies = np.random.default_rng(8), 10
    truth = {"none": (0.3, 0.2), "retrain": (0.0, 0.0), "x": (0.1, 0.0)}

    def study(pairs: int, seed: int):
        parts = scenario(rng, truth, pairs=pairs, samples=2000)
        return compare({name: {"advantage": metrics["advantage"]} for name, metrics in parts.items()}, seed=seed)

    foretold, measured = [], []
    for i in range(studies):
        rows = study(4, i)[0].resolution
        foretold += [row["half_width"] for row in rows if (row["method"], row["what"], row["times"]) == PLAN]
        row = study(16, i)[1]["x"]
        measured.append((row["ci_high"] - row["ci_low"]) / 2)
    assert len(foretold) == studies
    assert np.mean(foretold) == pytest.approx(np.mean(measured), rel=0.2)


@pytest.mark.slow
def test_more_models_do_not_narrow_the_competition_s_score_and_none_is_foretold():
    """F₀ is that of the luckiest threshold among models that do not differ, however many there are."""
    rng, options, widths = np.random.default_rng(20), competition.Options(), {}
    for models in (16, 64):
        widths[models] = []
        for _ in range(8):
            sample = rng.standard_normal(30)
            x, retrained, control = sample + rng.standard_normal((3, models, 30))
            none = sample + 1.5 + rng.standard_normal((models, 30))
            parts = {
                name: competition.over_null(phi, retrained, control, np.arange(30), options, rng)
                for name, phi in {"none": none, "x": x, "retrain": retrained}.items()
            }
            tables, rows = compare(parts)
            (row,) = (row for row in tables.resolution if row["method"] == "x" and row["what"] == "today")
            widths[models].append(row["half_width"])
            assert {row["what"] for row in tables.resolution} == {"today", "samples"}
            assert planning.foretold([row], pairs=4.0, models=1.0)["half_width"] == row["half_width"]
            if rows["x"]["verdict"] == "inconclusive":
                assert "neither more pairs nor more models would decide" in rows["x"]["note"]
    assert 0.7 < np.median(widths[64]) / np.median(widths[16]) < 1.4  # half as wide, if they were averages


@pytest.mark.parametrize(("audited", "retrained_models"), [(1, 10), (3, 10), (10, 10)])
def test_models_without_partners_resolve_what_their_interval_does(audited, retrained_models):
    """Models vary by .08, which samples alone, of which there are many, do not show."""
    rng, standard = np.random.default_rng(0), Standard(1, "auc", lowest=0.0, highest=1.0)

    def models(count, mean):
        influence = 0.02 / np.sqrt(60) * rng.standard_normal((count, 60))
        value, unit = mean + 0.08 * rng.standard_normal(count), np.zeros(count, int)
        return {"auc": replace(single(value=value, influence=influence, unit=unit, standard=standard), partners=False)}

    parts = {"none": models(audited, 0.9), "x": models(audited, 0.5)}
    tables, _ = compare({**parts, **{name: models(retrained_models, 0.5) for name in ("retrain", "retrain_control")}})
    plans = {row["method"]: row for row in tables.resolution if not row["what"].startswith("decides_")}
    assert len(plans) == sum(not row["what"].startswith("decides_") for row in tables.resolution) == 4
    for distance in tables.distances:
        today = plans[distance["method"]]
        assert today["what"] == "today"
        assert today["half_width"] == pytest.approx((distance["ci_high"] - distance["ci_low"]) / 2)
        count = audited if distance["method"] in parts else retrained_models
        assert today["least_distance"] > (1.96 + 0.84) * 0.5 * 0.08 * np.sqrt(1 / count + 1 / retrained_models)
        assert planning.foretold([today], pairs=4.0, models=1.0) == today


def row(metric, outcome, times, assumed=0.0):
    return {"metric": metric, "what": "decides_pairs", "outcome": outcome, "times": times, "units": 4 * times,
            "unit": "pairs", "models": 1, "assumed": assumed}  # fmt: skip


def test_equivalence_takes_every_metric_that_is_inconclusive():
    rows = [row("a", "equivalent", 2), row("b", "equivalent", 3)]
    sentence = "if the method is like retraining, 12 pairs show it with power 0.8"
    assert planning.instruction(rows, metrics={"a", "b"}, unknown=[]) == sentence
    no = "neither more pairs nor more models would decide"
    assert planning.instruction(rows, metrics={"a", "b", "c"}, unknown=[]) == no
    today = [row("a", "equivalent", 1), row("b", "equivalent", 1)]
    enough = "if the method is like retraining, a study of this size shows it with power 0.8"
    assert planning.instruction(today, metrics={"a", "b"}, unknown=[]) == enough
    assert planning.instruction([*today[:1], rows[1]], metrics={"a", "b"}, unknown=[]) == sentence


def test_a_distance_is_found_by_one_metric_at_either_limit():
    rows = [row("a", "distinguishable", 9, -0.02), row("a", "distinguishable", 2, 0.3)]
    rows.append(row("b", "distinguishable", 5, 0.1))
    assert planning.instruction(rows, metrics={"a", "b"}, unknown=[]) == (
        "if its distance is the upper limit of the interval, 8 pairs find it; "
        "if its distance is the lower limit of the interval, 20 pairs find it"
    )
    enough = [row("a", "distinguishable", 9, -0.02), row("a", "distinguishable", 1, 0.3)]
    assert planning.instruction(enough, metrics={"a"}, unknown=[]) == (
        "if its distance is the lower limit of the interval, 36 pairs find it"
    ), "what there is is no advice"
    by_one = [*enough, row("b", "distinguishable", 7, 0.1), row("b", "distinguishable", 6, -0.1)]
    assert planning.instruction(by_one, metrics={"a", "b"}, unknown=[]) == (
        "if its distance is the lower limit of the interval, 24 pairs find it"
    ), "nor is it where another metric would need more"
    today = "if its distance is the upper limit of the interval, a study of this size finds it"
    assert planning.instruction([row("a", "distinguishable", 1, 0.3)], metrics={"a"}, unknown=[]).startswith(today)


def test_more_seeds_bring_what_their_variances_foretell():
    """The spread of differences in mean confidence, over 2,000 studies of today's size and of larger ones."""
    training, unlearning, retrained = 1.0, 0.6, 0.8
    rows = {
        "finetune": [
            Row("sd_of_training", training, n=8), Row("sd_of_unlearning", unlearning, n=32), Row("accuracy", 0.5)
        ],
        "retrain": [Row("sd_of_training", 0.0, n=8), Row("sd_of_unlearning", retrained, n=32)],
        "salun": [Row("sd_of_training", note="alone", n=1), Row("sd_of_unlearning", unlearning, n=32)],
    }  # fmt: skip
    plans = planning.seeds(rows)
    assert {row["method"] for row in plans} == {"finetune"}
    rng = np.random.default_rng(0)
    for row in plans:
        if (row["what"], row["times"]) not in (("today", 1.0), ("pairs", 4.0), ("models", 4.0)):
            continue
        p, m = row["units"], round(row["models"])
        assert (p, m) == {"today": (8, 4), "pairs": (32, 4), "models": (8, 16)}[row["what"]]
        assert (row["pair"], row["model"]) == (training**2, pytest.approx(unlearning**2 + retrained**2))
        shape = (2_000, p, m)
        phi = training * rng.standard_normal((2_000, p, 1)) + unlearning * rng.standard_normal(shape)
        apart = (phi - retrained * rng.standard_normal(shape)).mean(axis=(1, 2))
        t = stats.t_quantile(p=0.975, dof=p - 1)
        assert row["half_width"] == pytest.approx(t * apart.std(), rel=0.08)


def test_the_spread_of_retrained_training_seeds_is_not_taken_for_that_of_unlearning():
    both = [Row("sd_of_training", 1.0, n=8), Row("sd_of_unlearning", 0.5, n=32)]
    assert planning.seeds({"finetune": both, "retrain": both[:1]}) == []
    turned = planning.seeds({"finetune": both[::-1], "retrain": both[::-1]})
    assert turned == planning.seeds({"finetune": both, "retrain": both})
    assert turned
