"""Intervals of the SWAP test hold what they promise: simulated games with known truth."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from unlearning_audit.metrics import _crossfit, _game, swap
from unlearning_audit.stats import crossed as _crossed
from unlearning_audit.stats import separation

from slow_cases import slow
from swap_games import World, layout

GAMES = 300
LEAST = 0.93

WORLDS = {
    "retrain": World(leak=(0, 0, 0), cut=(0, 0.5, -0.5), sample_leak=0, model_leak=0),
    "leaky models, no leak on average": World(leak=(0, 0, 0), cut=(0, 0.5, -0.5), model_leak=0.4),
    "leak": World(leak=(0.8, 0.5, 0.2), cut=(0, 0.5, -0.5)),
    "leak that varies with samples": World(leak=(0.8, 0.5, 0.2), cut=(0, 0.5, -0.5), sample_leak=1.5, noise=0.3),
    "leak that varies with models": World(leak=(0.8, 0.7, 0.2), cut=(0, 0.5, -0.5), model_leak=1.0),
}


def play(world, *, games=GAMES, seed=0):
    """Readings of many games with 4 pairs that share 120 samples and 3 models per split."""
    rng = np.random.default_rng(seed)
    for _ in range(games):
        membership = layout(rng, samples=120, pairs=4, k=25, models=3)
        scores = world.scores(rng, membership["forget"])
        rules = _game.game(**membership)
        decisions = world.decisions(scores)
        crossed = _crossed.combine([_game.advantage(rules, d) for d in decisions], split=rules.split)
        yield rng, rules, scores, decisions, crossed


@pytest.fixture(
    scope="module",
    params=["leak", *slow(*(name for name in WORLDS if name != "leak"))],
    ids=lambda name: name.replace(" ", "_"),
)
def played(request):
    world = WORLDS[request.param]
    quality = 1 - np.abs(world.advantage).max()
    rows = []
    for rng, rules, scores, decisions, crossed in play(world):
        reading = _crossed.read(crossed, share=_game.share(rules))
        pair = _crossed.read(crossed, share=_game.share(rules, 0))
        sides = {"positive": rules.forget, "negative": rules.heldout}
        part = separation.auc(score=scores[0][:, rules.columns], **sides)
        auc = _crossed.read(_crossed.combine([part], split=rules.split), share=_game.share(rules))
        half = {name: _crossed.half_widths(r) for name, r in (("all", reading), ("pair", pair), ("auc", auc))}
        q = swap.quality(reading, n=1, rng=rng)
        q_pair = swap.quality(pair, n=1, rng=rng)
        fair = _crossfit.quality(rules, decisions, reading, rng=rng)
        target = 1 - fair.weight @ world.advantage
        bars = swap.adv_bar(reading, n=1)
        rows.append(
            {
                "advantage": np.abs(reading.value - world.advantage) <= half["all"],
                "advantage of a pair": np.abs(pair.value - world.advantage) <= half["pair"],
                "Adv̄": [b.low <= abs(a) <= b.high for b, a in zip(bars, world.advantage, strict=True)],
                "Q": q.low <= quality <= q.high,
                "Q of a pair": q_pair.low <= quality <= q_pair.high,
                "crossfit": fair.estimate.low <= target <= fair.estimate.high,
                "auc": np.abs(auc.value - world.auc[0]) <= half["auc"],
                "values": reading.value,
                "half": half["all"],
                "auc value": auc.value[0],
                "auc half": half["auc"][0],
                "q": q.value,
                "fair": fair.estimate.value - target,
                "fair value": fair.estimate.value,
            }
        )
    return request.param, world, {key: np.array([row[key] for row in rows]) for key in rows[0]}


@pytest.mark.parametrize("interval", ["advantage", "advantage of a pair", "Adv̄", "Q", "Q of a pair", "crossfit", "auc"])
def test_interval_covers_the_truth(played, interval):
    _, _, results = played
    assert (results[interval].mean(axis=0) >= LEAST).all(), results[interval].mean(axis=0)


def test_intervals_are_not_wider_than_needed(played):
    _, _, results = played
    half_width = 1.96 * results["values"].std(axis=0, ddof=1)
    assert (results["half"].mean(axis=0) < 1.3 * half_width).all()
    assert results["auc half"].mean() < 1.4 * 1.96 * results["auc value"].std(ddof=1)


def test_signed_advantage_is_unbiased(played):
    _, world, results = played
    error = results["values"] - world.advantage
    assert (np.abs(error.mean(axis=0)) < 4 * error.std(axis=0) / np.sqrt(GAMES)).all()


def test_crossfit_is_unbiased_for_the_adversaries_it_chose(played):
    _, _, results = played
    error = results["fair"]
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(GAMES)


def test_the_maximum_is_optimistic_and_crossfit_is_not(played):
    name, _, results = played
    if name == "retrain":
        assert results["q"].max() <= 1
        assert results["q"].mean() < 0.985
        assert abs(results["fair value"].mean() - 1) < 0.003
        assert (results["fair value"] > 1).any()


def test_q_of_retrained_models_covers_one_for_ten_adversaries():
    world = World(leak=(0,) * 10, cut=tuple(np.linspace(-1, 1, 10)), sample_leak=0, model_leak=0, common=0.2)
    reached = []
    for rng, rules, _, _, crossed in play(world, games=100, seed=1):
        q = swap.quality(_crossed.read(crossed, share=_game.share(rules)), n=1, rng=rng)
        reached.append(q.high == 1)
    assert np.mean(reached) >= LEAST


@pytest.mark.slow
@pytest.mark.parametrize("leak", [0.0, 0.8, 2.5])
def test_tpr_at_fpr_covers_the_truth(leak):
    rng = np.random.default_rng(3)
    world = World(leak=(leak,), cut=(0,), model=0, model_leak=0.1, noise=0.3)
    out = np.hypot(world.sample, world.noise)
    forgotten = np.sqrt(out**2 + world.sample_leak**2 + world.model_leak**2)
    truth = ndtr((leak - out * ndtri(0.98)) / forgotten)
    inside = 0
    for _ in range(GAMES):
        membership = layout(rng, samples=500, pairs=2, k=200, models=2)
        score = world.scores(rng, membership["forget"])[0]
        scores = {("a", "trained"): (score, score > 0)}
        rows = swap.evaluate(scores=scores, **membership, weight=None, sets={}, rng=rng, fprs=[0.02])
        (tpr,) = [row for row in rows if row.metric == "tpr_at_fpr"]
        inside += tpr.ci_low <= truth <= tpr.ci_high
    assert inside / GAMES >= LEAST


@pytest.mark.parametrize("models", [1, 2])
def test_few_models_per_split_are_covered_too(models):
    rng = np.random.default_rng(4)
    world = World(leak=(0.8, 0.2), cut=(0, 0.5), model_leak=0.6)
    inside = []
    for _ in range(GAMES):
        membership = layout(rng, samples=120, pairs=4, k=25, models=models)
        rules = _game.game(**membership)
        decisions = world.decisions(world.scores(rng, membership["forget"]))
        crossed = _crossed.combine([_game.advantage(rules, d) for d in decisions], split=rules.split)
        reading = _crossed.read(crossed, share=_game.share(rules))
        inside.append(np.abs(reading.value - world.advantage) <= _crossed.half_widths(reading))
    assert (np.mean(inside, axis=0) >= LEAST).all()
