"""What p-values rest on with few models: the draw of sides, or how retrained models differ; sizes and power."""

import numpy as np
import pytest
from unlearning_audit.comparisons import distances
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.effects import single
from unlearning_audit.metrics import confusion, swap
from unlearning_audit.stats import crossed

from comparison_cases import MARGINS, compare
from slow_cases import slow
from stat_cases import at_most
from swap_games import layout


def probability(method: str, parts: dict) -> float:
    """The p-value of one method by its first metric."""
    metric = next(iter(parts[method]))
    contrast = distances.contrast_or_reason(method, metric, parts)
    return distances.read(contrast, metric, margins=MARGINS, rng=np.random.default_rng(0), draws=300).distance.p


def random_advantages(rng, *, pairs, models, yes, leak=0.0, attacks=3, swapped=True):
    """Advantages over 80 drawn samples of 200 in each pair: every model says yes as often as it likes, to samples that
    it finds easy, and ``leak`` more often to what it forgot."""
    game = layout(rng, samples=200, pairs=pairs, k=40, models=models, swapped=swapped)
    count = len(game["split"])
    member = Membership(train=game["forget"], seed=np.arange(count), shadow=np.zeros(count, bool), **game)
    easy, scores = rng.standard_normal(200), {}
    for i in range(attacks):
        lean = rng.standard_normal((count, 1)) * easy + rng.standard_normal((count, 200))  # models that differ at will
        bar = np.quantile(lean, 1 - yes) + 0.3 * rng.standard_normal((count, 1))
        decision = (lean > bar) | (member.forget & (rng.random(lean.shape) < leak))
        scores[f"attack{i}", "trained"] = decision * 1.0, decision
    return swap.advantages(scores, rng.standard_normal(member.forget.shape), member)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "models", "yes", "swapped"),
    [(2, 1, 0.1, True), (4, 3, 0.3, True), (3, 1, 0.3, False), (2, 1, 0.5, True), (1, 1, 0.5, True)],
)
def test_models_that_know_nothing_of_the_draw_are_distinguishable_as_rarely_as_promised(pairs, models, yes, swapped):
    """Whatever they are: one model for each split, none like another, and still the level is neither above nor far
    below."""
    how, audits = {"pairs": pairs, "models": models, "swapped": swapped}, 400
    rng = np.random.default_rng([1, pairs, models])
    p = [probability("x", {"x": random_advantages(rng, **how, yes=yes)}) for _ in range(audits)]
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= at_most(0.05, audits)


def test_the_variance_of_a_draw_is_the_textbooks():
    """Each sample moves the mean by what models of both splits say of it, over n − 1 of 40 samples on either side."""
    part = random_advantages(np.random.default_rng(8), pairs=1, models=2, yes=0.4, attacks=1)["advantage"]
    contrast = distances.contrast_or_reason("x", "advantage", {"x": {"advantage": part}})
    influence = distances.with_errors_by_chance(contrast, distances.distances_of(contrast)).influence[
        0, : len(part.index)
    ]
    saying = part.influence[0, part.split == 0].mean(axis=0) + part.influence[0, part.split == 1].mean(axis=0)
    assert (influence != 0).sum() == 80
    np.testing.assert_allclose(influence, saying / 2 * 42 / np.sqrt(40 * 39))


def test_a_trace_is_found_by_single_models_of_two_pairs():
    rng, audits = np.random.default_rng(2), 20
    p = [probability("none", {"none": random_advantages(rng, pairs=2, models=1, yes=0.3, leak=0.4)})
         for _ in range(audits)]  # fmt: skip
    assert np.mean(np.array(p) <= 0.05) > 0.9


def scores(rng, mean: float, spread: float, models: int = 3, rows: int = 150):
    """IC scores of models that confuse each of the same samples with a probability of their own."""
    rate = np.clip(mean + spread * rng.standard_normal((models, 1)), 0, 1)
    part = crossed.per_model(value=(rng.random((models, rows)) < rate) * 1.0, weight=np.ones((models, rows)))
    effect = single(**vars(part), unit=np.zeros(models, np.int64), rule=confusion.DECIDES["ic_score"])
    return {"ic_score": effect}


def test_both_groups_show_how_models_of_one_kind_vary():
    parts = {name: scores(np.random.default_rng(seed), 0.8, 0.03) for seed, name in enumerate(("retrain", "x"))}
    contrast = distances.contrast_or_reason("x", "ic_score", parts)
    chance = distances.with_errors_by_chance(contrast, distances.distances_of(contrast))
    each = [parts[name]["ic_score"].value[0].var(ddof=1) for name in parts]
    assert (chance.models.between.item(), chance.models.dof) == (pytest.approx(np.mean(each) * 2 / 3), 4)


@pytest.mark.parametrize(("mean", "spread"), [(0.8, 0.03), (0.95, 0.1), *slow((0.8, 0.0), (0.8, 0.1))])
def test_three_models_that_are_retraining_are_distinguishable_as_rarely_as_promised(mean, spread):
    rng, audits = np.random.default_rng([3, round(100 * spread)]), 800
    p = [probability("x", {name: scores(rng, mean, spread) for name in ("retrain", "x")}) for _ in range(audits)]
    assert 0.005 <= np.mean(np.array(p) <= 0.05) <= at_most(0.05, audits)


def test_three_models_that_differ_much_more_than_retrained_ones_are_distinguishable():
    """As with differential privacy: .55 ± .09 against .97 ± .015, where three models' own spread hides it."""
    rng, p = np.random.default_rng(4), []
    for _ in range(60):
        parts = {"retrain": scores(rng, 0.97, 0.015), "none": scores(rng, 0.55, 0.09)}
        own = distances.distances_of(distances.contrast_or_reason("none", "ic_score", parts)).p_values()[0]
        p.append((probability("none", parts), own))
    found, by_own_spread = (np.array(p) <= 0.01).mean(axis=0)
    assert (found > 0.75, by_own_spread < 0.5) == (True, True)


def test_none_has_half_of_alpha_and_the_retrained_a_tenth():
    """None's p-value is adjusted alike however many others there are, and costs these nothing once it is found."""
    rng = np.random.default_rng(5)
    parts = {"none": scores(rng, 0.7, 0.0), **{f"m{i}": scores(rng, 0.9, 0.03) for i in range(9)}}
    parts |= {name: scores(rng, 0.9, 0.03) for name in ("retrain", "retrain_control")}
    tables, rows = compare(parts)
    p = {row["method"]: row["p"] for row in tables.distances}
    least = min((name for name in p if name.startswith("m")), key=p.get)
    for name, factor in (("none", 2 / 0.9), (least, 9 / 0.9), ("retrain_control", 20)):
        assert rows[name]["p_holm"] == pytest.approx(min(factor * p[name], 1), rel=1e-6)
