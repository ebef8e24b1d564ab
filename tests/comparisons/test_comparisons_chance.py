"""What p-values rest on with few models: the draw of sides, or how retrained models differ; sizes and power."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.comparisons import distances
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.contributions import single
from unlearning_audit.metrics import confusion, swap
from unlearning_audit.stats import crossed

from comparison_cases import MARGINS, compare
from slow_cases import slow
from swap_games import layout

AUDITS = 400


def too_often(distinguishable: list, rate: float = 0.05) -> bool:
    """Whether a share of audits lies further above a rate than chance takes it in one of 1,000 tests."""
    return np.mean(distinguishable) > rate + 3.1 * np.sqrt(rate * (1 - rate) / len(distinguishable))


def probability(method: str, parts: dict) -> float:
    """The p-value of one method by its first metric."""
    metric = next(iter(parts[method]))
    side = distances.against(method, metric, parts)
    return distances.read(side, metric, margins=MARGINS, rng=np.random.default_rng(0), draws=1000).distance.p


def random_advantages(
    rng, *, pairs: int, models: int, yes: float, leak: float = 0.0, attacks: int = 3, swapped: bool = True
):
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


@pytest.mark.parametrize(
    ("pairs", "models", "yes", "swapped"),
    [
        (2, 1, 0.1, True),
        *slow((4, 3, 0.3, True), (3, 1, 0.3, False), (2, 1, 0.5, True), (1, 1, 0.5, True)),
    ],
)  # fmt: skip
def test_models_that_know_nothing_of_the_draw_are_distinguishable_as_rarely_as_promised(pairs, models, yes, swapped):
    """Whatever they are: one model for each split, none like another, and still the level is neither above nor far
    below."""
    rng, rejected = np.random.default_rng([1, pairs, models]), []
    for _ in range(AUDITS):
        parts = {"x": random_advantages(rng, pairs=pairs, models=models, yes=yes, swapped=swapped)}
        rejected.append(probability("x", parts) <= 0.05)
    assert not too_often(rejected)
    assert np.mean(rejected) >= 0.01


def test_the_variance_of_a_draw_is_the_textbooks():
    """Each sample moves the mean by what models of both splits say of it, over n − 1 of 40 samples on either side."""
    part = random_advantages(np.random.default_rng(8), pairs=1, models=2, yes=0.4, attacks=1)["advantage"]
    side = distances.against("x", "advantage", {"x": {"advantage": part}})
    influence = distances.by_chance(side, distances.distances_of(side)).influence[0, : len(part.index)]
    saying = part.influence[0, part.split == 0].mean(axis=0) + part.influence[0, part.split == 1].mean(axis=0)
    assert (influence != 0).sum() == 80
    np.testing.assert_allclose(influence, saying / 2 * 42 / np.sqrt(40 * 39))


def test_a_trace_is_found_by_single_models_of_two_pairs():
    rng, rejected = np.random.default_rng(2), []
    for i in range(40):
        _, rows = compare({"none": random_advantages(rng, pairs=2, models=1, yes=0.3, leak=0.4)}, seed=i)
        rejected.append(rows["none"]["verdict"] == "distinguishable")
    assert np.mean(rejected) > 0.9


def scores(rng, mean: float, spread: float, models: int = 3, rows: int = 150):
    """IC scores of models that confuse each of the same samples with a probability of their own."""
    rate = np.clip(mean + spread * rng.standard_normal((models, 1)), 0, 1)
    part = crossed.per_model(value=(rng.random((models, rows)) < rate) * 1.0, weight=np.ones((models, rows)))
    contribution = single(**vars(part), unit=np.zeros(models, np.int64), standard=confusion.DECIDES["ic_score"])
    return {"ic_score": contribution}


@pytest.mark.parametrize("spread", [0.0, 0.03, 0.1])
def test_three_models_that_are_retraining_are_distinguishable_as_rarely_as_promised(spread):
    rng, rejected = np.random.default_rng([3, round(100 * spread)]), []
    for _ in range(AUDITS):
        parts = {name: scores(rng, 0.8, spread) for name in ("retrain", "x")}
        rejected.append(probability("x", parts) <= 0.05)
    assert not too_often(rejected)
    assert np.mean(rejected) >= 0.005


def test_three_models_that_differ_much_more_than_retrained_ones_are_distinguishable():
    """As with differential privacy: .55 ± .09 against .97 ± .015, where three models' own spread hides it."""
    rng, rejected, by_own_spread = np.random.default_rng(4), [], []
    for _ in range(100):
        parts = {"retrain": scores(rng, 0.97, 0.015), "none": scores(rng, 0.55, 0.09)}
        rejected.append(probability("none", parts) <= 0.01)
        by_own_spread.append(distances.distances_of(distances.against("none", "ic_score", parts)).p_values()[0] <= 0.01)
    assert np.mean(rejected) > 0.9
    assert np.mean(by_own_spread) < 0.5


def test_what_is_found_by_the_spread_of_retrained_models_shows_an_interval_that_says_so():
    parts = {"retrain": scores(np.random.default_rng(6), 0.97, 0.0)}
    values = scores(np.random.default_rng(7), 0.75, 0.15)["ic_score"]
    parts["x"] = {"ic_score": replace(values, value=np.array([[0.60, 0.75, 0.90]]))}
    _, rows = compare(parts)
    assert rows["x"]["verdict"] == "distinguishable"
    assert rows["x"]["ci_low"] < 0
    assert distances.DISAGREE in rows["x"]["note"]


def test_none_has_half_of_alpha_and_the_retrained_a_tenth():
    """None's p-value is adjusted alike however many others there are, and costs these nothing once it is found."""
    rng = np.random.default_rng(5)
    parts = {"none": scores(rng, 0.5, 0.0), **{f"m{i}": scores(rng, 0.9, 0.03) for i in range(9)}}
    parts |= {name: scores(rng, 0.9, 0.03) for name in ("retrain", "retrain_control")}
    tables, rows = compare(parts)
    p = {row["method"]: row["p"] for row in tables.distances}
    assert rows["none"]["p_holm"] == pytest.approx(2 * p["none"] / 0.9, rel=1e-6)
    least = min((name for name in p if name.startswith("m")), key=p.get)
    assert rows[least]["p_holm"] == pytest.approx(min(9 * p[least] / 0.9, 1))
    assert rows["retrain_control"]["p_holm"] == pytest.approx(min(20 * p["retrain_control"], 1))
