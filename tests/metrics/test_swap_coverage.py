"""Intervals of the SWAP test hold what they promise: simulated games with known truth."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from unlearning_audit.metrics import _crossfit, _game, privleak, swap
from unlearning_audit.stats import crossed, separation
from unlearning_audit.stats.readings import Question, readings

from slow_cases import slow
from swap_games import World, layout, read

GAMES = 300
LEAST = 0.93

WORLDS = {
    "retrain": World(leak=(0, 0, 0), cut=(0, 0.5, -0.5), sample_leak=0, model_leak=0),
    "leaky models, no leak on average": World(leak=(0, 0, 0), cut=(0, 0.5, -0.5), model_leak=0.4),
    "leak": World(leak=(0.8, 0.5, 0.2), cut=(0, 0.5, -0.5)),
    "leak that varies with samples": World(leak=(0.8, 0.5, 0.2), cut=(0, 0.5, -0.5), sample_leak=1.5, noise=0.3),
    "leak that varies with models": World(leak=(0.8, 0.7, 0.2), cut=(0, 0.5, -0.5), model_leak=1.0),
}


def play(world, *, games=GAMES, seed=0, models=3):
    """Many games with 4 pairs that share 120 samples: rng, rules, scores and decisions."""
    rng = np.random.default_rng(seed)
    for _ in range(games):
        membership = layout(rng, samples=120, pairs=4, k=25, models=models)
        scores = world.scores(rng, membership["forget"])
        yield rng, _game.game(**membership), scores, world.decisions(scores)


@pytest.mark.parametrize("name", ["leak", *slow(*(name for name in WORLDS if name != "leak"))])
def test_intervals_cover_the_truth_and_estimates_are_unbiased(name):
    """Also that intervals are no wider than needed, and that the maximum is optimistic and cross-fitting is not."""
    world = WORLDS[name]
    quality = 1 - np.abs(world.advantage).max()
    rows, inside = [], []
    for rng, rules, scores, decisions in play(world):
        reading, pair = read(rules, decisions), read(rules, decisions, 0)
        part = separation.auc(score=scores[0][:, rules.columns], positive=rules.forget, negative=rules.heldout)
        auc = crossed.read(crossed.combine([part], split=rules.split), share=_game.share(rules))
        half, half_pair, half_auc = (crossed.half_widths(r) for r in (reading, pair, auc))
        q, q_pair = (swap.quality(r, n=1, rng=rng) for r in (reading, pair))
        fair = _crossfit.quality(rules, decisions, reading, rng=rng)
        target = 1 - fair.weight @ world.advantage
        inside.append(
            [
                *(np.abs(reading.value - world.advantage) <= half),
                *(np.abs(pair.value - world.advantage) <= half_pair),
                *(b.low <= a <= b.high for b, a in zip(swap.adv_bar(reading, n=1), abs(world.advantage), strict=True)),
                *(estimate.low <= quality <= estimate.high for estimate in (q, q_pair)),
                fair.estimate.low <= target <= fair.estimate.high,
                np.abs(auc.value[0] - world.auc[0]) <= half_auc[0],
            ]
        )
        of_crossfit = fair.estimate.value
        rows.append([*reading.value, of_crossfit - target, auc.value[0], *half, half_auc[0], q.value, of_crossfit])
    assert (np.mean(inside, axis=0) >= LEAST).all(), np.mean(inside, axis=0)
    rows = np.array(rows)
    mean, sd = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    assert (np.abs(mean[:4] - [*world.advantage, 0]) < 4 * sd[:4] / np.sqrt(GAMES)).all(), "a bias"
    assert (mean[5:9] < np.array([1.3, 1.3, 1.3, 1.4]) * 1.96 * sd[[0, 1, 2, 4]]).all(), "too wide"
    if name == "retrain":
        assert rows[:, 9].max() <= 1
        assert mean[9] < 0.985
        assert abs(mean[10] - 1) < 0.003
        assert (rows[:, 10] > 1).any()


def test_q_of_retrained_models_covers_one_for_ten_adversaries():
    world = World(leak=(0,) * 10, cut=tuple(np.linspace(-1, 1, 10)), sample_leak=0, model_leak=0, common=0.2)
    games = play(world, games=100, seed=1)
    assert np.mean([swap.quality(read(rules, said), n=1, rng=rng).high == 1 for rng, rules, _, said in games]) >= LEAST


@pytest.mark.parametrize("models", [1, 2])
def test_few_models_per_split_are_covered_too(models):
    world = World(leak=(0.8, 0.2), cut=(0, 0.5), model_leak=0.6)
    readings_of = [read(rules, decisions) for _, rules, _, decisions in play(world, seed=4, models=models)]
    inside = [np.abs(reading.value - world.advantage) <= crossed.half_widths(reading) for reading in readings_of]
    assert (np.mean(inside, axis=0) >= LEAST).all()


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
        rules = _game.game(**membership)
        tpr = swap.tpr(rules, score[:, rules.columns], 0.02)
        inside += tpr.low <= truth <= tpr.high
    assert inside / GAMES >= LEAST


# ---------------------------------------------------------------- other pairs, where the leak differs from pair to pair

K, LEAK, SPREAD = 60, 1.0, 0.2


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [2, 4, 8])
def test_intervals_cover_what_other_pairs_would_show(pairs):
    """Forgotten samples of a pair are more familiar by N(LEAK, SPREAD²)."""
    leaks = LEAK + SPREAD * np.random.default_rng(0).standard_normal(400_000)
    advantage = float(np.mean(ndtr(leaks - LEAK / 2) - ndtr(-LEAK / 2)))
    truth = {"auc": float(ndtr(leaks / np.sqrt(2)).mean()), "advantage": advantage, "q": 1 - advantage}
    rng, audits, key = np.random.default_rng(pairs), 150, ("mine", "trained")
    hits = dict.fromkeys(truth, 0)
    for _ in range(audits):
        masks = layout(rng, samples=400, pairs=pairs, k=K, models=2)
        leak = (LEAK + SPREAD * rng.standard_normal(pairs))[masks["block"]]
        score = rng.standard_normal(masks["forget"].shape) + leak[:, None] * masks["forget"]
        scores, how = {key: (score, score > LEAK / 2)}, {"sets": {"extended": [key]}, "fprs": (0.1,), "draws": 200}
        rows = swap.evaluate(scores=scores, target=SimpleNamespace(**masks, weight=None), rng=rng, **how)
        for row in rows:
            if row.pair is None and row.metric in truth:
                hits[row.metric] += row.ci_low <= truth[row.metric] <= row.ci_high
    assert min(hits.values()) >= (0.93 - 2.6 * np.sqrt(0.93 * 0.07 / audits)) * audits, hits


def test_aucs_and_rates_of_any_score_hold_for_other_pairs():
    """As of RULI on pairs and of Min-K %: samples that differ, four pairs of three models a split, 150 studies."""
    rng, estimates = np.random.default_rng(6), []
    for _ in range(150):
        masks = layout(rng, samples=400, pairs=4, k=K, models=3)
        forget, heldout, block = masks["forget"], masks["heldout"], masks["block"]
        leak = (LEAK + SPREAD * rng.standard_normal(4))[block][:, None]
        score = 0.7 * (rng.standard_normal(400) + rng.standard_normal(forget.shape)) + leak * forget
        of_pairs = readings(Question(score - LEAK / 2, forget, heldout, unit=block), fpr=(0.1,))
        of_text = privleak.auc(score, forget, heldout, split=masks["split"], block=block)
        estimates.append([*of_pairs.values(), of_text])
    value = np.array([[estimate.value for estimate in row] for row in estimates])
    half = np.array([[(estimate.high - estimate.low) / 2 for estimate in row] for row in estimates])
    held = (np.abs(value - value.mean(axis=0)) < half).mean(axis=0)
    assert (held > 0.88).all(), held
