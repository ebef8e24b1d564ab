"""Intervals of Q, advantages and AUC hold for other pairs too, where the leak differs from pair to pair."""

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.metrics import privleak, swap
from unlearning_audit.stats.readings import Question, readings

from swap_games import layout

K, LEAK, SPREAD = 60, 1.0, 0.2
KEY = ("mine", "trained")


def audit(rng, pairs):
    """The rows of one attack on pairs whose forgotten samples are more familiar by N(LEAK, SPREAD²)."""
    masks = layout(rng, samples=400, pairs=pairs, k=K, models=2)
    leak = (LEAK + SPREAD * rng.standard_normal(pairs))[masks["block"]]
    score = rng.standard_normal(masks["forget"].shape) + leak[:, None] * masks["forget"]
    rows = swap.evaluate(
        scores={KEY: (score, score > LEAK / 2)},
        **masks,
        weight=None,
        sets={"extended": [KEY]},
        rng=rng,
        fprs=(0.1,),
        draws=200,
    )
    return {row.metric: row for row in rows if row.pair is None}


@pytest.fixture(scope="module")
def truth():
    leak = LEAK + SPREAD * np.random.default_rng(0).standard_normal(400_000)
    advantage = float(np.mean(ndtr(leak - LEAK / 2) - ndtr(-LEAK / 2)))
    return {"auc": float(ndtr(leak / np.sqrt(2)).mean()), "advantage": advantage, "q": 1 - advantage}


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [2, 4, 8])
def test_intervals_cover_what_other_pairs_would_show(truth, pairs):
    rng, audits = np.random.default_rng(pairs), 150
    hits = dict.fromkeys(truth, 0)
    for _ in range(audits):
        rows = audit(rng, pairs)
        for name, value in truth.items():
            hits[name] += rows[name].ci_low <= value <= rows[name].ci_high
    least = 0.93 - 2.6 * np.sqrt(0.93 * 0.07 / audits)
    assert {name: count / audits >= least for name, count in hits.items()} == dict.fromkeys(truth, True)


def test_aucs_and_rates_of_any_score_hold_for_other_pairs():
    """As of RULI on pairs and of Min-K %: samples that differ, four pairs of three models a split, 150 studies."""
    rng, read = np.random.default_rng(6), []
    for _ in range(150):
        masks = layout(rng, samples=400, pairs=4, k=K, models=3)
        forget, heldout, block = masks["forget"], masks["heldout"], masks["block"]
        leak = (LEAK + SPREAD * rng.standard_normal(4))[block][:, None]
        score = 0.7 * (rng.standard_normal(400) + rng.standard_normal(forget.shape)) + leak * forget
        question = Question(score - LEAK / 2, forget, heldout, unit=block)
        of_pairs = readings(question, fpr=(0.1,))
        of_text = privleak.auc(score, forget, heldout, split=masks["split"], block=block)
        read.append([of_pairs["accuracy"], of_pairs["auc"], of_pairs["tpr_at_10pct_fpr"], of_text])
    value = np.array([[estimate.value for estimate in row] for row in read])
    half = np.array([[(estimate.high - estimate.low) / 2 for estimate in row] for row in read])
    held = (np.abs(value - value.mean(axis=0)) < half).mean(axis=0)
    assert (held > 0.88).all(), held
