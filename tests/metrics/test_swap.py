"""All rows of the SWAP test: what they are made of, their limits, counts, reasons and invariances."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit.metrics import _game, swap
from unlearning_audit.stats import crossed

import row_places
from row_places import about
from swap_games import World, layout


def value_of(rows, metric, attack, setting=""):
    return row_places.only(rows, metric, setting, attack)


def cases():
    """Attacks of all kinds, the degenerate ones among them, in a small game."""
    rng = np.random.default_rng(6)
    membership = layout(rng, samples=50, pairs=2, k=15, models=2)
    forget = membership["forget"]
    strong, weak = World(leak=(1.0, 0.3), cut=(0, 0)).scores(rng, forget)
    scores = {
        ("strong", "trained"): (strong, strong > 0),
        ("weak", "unlearned"): (weak, weak > 0),
        ("perfect", "trained"): (forget * 1.0, forget),
        ("inverted", "trained"): (-1.0 * forget, np.zeros(forget.shape, bool)),
        ("constant", "trained"): (np.zeros(forget.shape), np.ones(forget.shape, bool)),
    }
    return membership, scores


SETS = {
    "paper": [("strong", "trained"), ("weak", "unlearned")],
    "extended": [("perfect", "trained"), ("inverted", "trained"), ("weak", "unlearned")],
    "useless": [("constant", "trained")],
}


def evaluated(scores, membership, sets=(), weight=None, **more):
    target, rng = SimpleNamespace(**membership, weight=weight), np.random.default_rng(0)
    return swap.evaluate(scores=scores, target=target, sets=dict(sets), rng=rng, **more)


@pytest.fixture(scope="module")
def rows():
    membership, scores = cases()
    return evaluated(scores, membership, SETS)


def test_the_sets_of_adversaries():
    """Tu, Hu & Ma 2024, §4.1: four adversaries, learned from trained shadow models; adaptive: entropy and the other
    form besides."""
    forms = ("trained", "unlearned")
    attacks = ("correctness", "confidence", "entropy", "modified_entropy", "shadow", "lira", "random")
    set_names = swap.ATTACK_SETS
    case = SimpleNamespace(scores=dict.fromkeys(itertools.product(attacks, forms)), failed_attacks={}, sets=set_names)
    sets, lost = swap.adversaries(case)
    four = {"shadow", "correctness", "confidence", "modified_entropy"}
    assert {name: set(members) for name, members in sets.items()} == {
        "paper": {(name, "trained") for name in four},
        "adaptive": set(itertools.product({*four, "entropy"}, forms)),
        "extended": set(itertools.product(attacks[:-1], forms)),
    }
    assert not lost
    case.failed_attacks["entropy"] = "it broke"
    sets, lost = swap.adversaries(case)
    assert (list(sets), [row.attack for row in lost]) == (["paper"], ["adaptive", "extended"])


def test_q_is_one_minus_the_largest_advantage(rows):
    for setting in ("", "pair=0", "pair=1"):
        bars = [value_of(rows, "advantage", a, setting).value for a in ("strong/trained", "weak/unlearned")]
        q = value_of(rows, "q", "paper", setting)
        assert q.value == pytest.approx(1 - max(bars), abs=1e-15)
        assert q.note == f"strongest: {('strong/trained', 'weak/unlearned')[np.argmax(bars)]}"
        assert value_of(rows, "q", "extended", setting).value == 0
        assert value_of(rows, "q", "useless", setting).value == 1


def test_overall_advantage_is_the_mean_of_signed_pairs_not_of_absolute_ones():
    forget = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], bool)
    membership = {"forget": forget, "heldout": ~forget, "split": np.arange(4) % 2, "block": np.arange(4) // 2}
    decision = np.vstack([forget[:2], ~forget[2:]])
    scores = {("a", "trained"): (decision.astype(float), decision)}
    rows = evaluated(scores, membership, {"paper": list(scores)})
    assert value_of(rows, "advantage", "a/trained").value == 0
    assert [value_of(rows, "q", "paper", setting).value for setting in ("", "pair=0", "pair=1")] == [1, 0, 0]
    assert value_of(rows, "q_sd", "paper").value == 0


def test_rows_are_complete_and_every_value_lies_in_its_interval_within_the_unit_interval(rows):
    attacks = ["strong/trained", "weak/unlearned", "perfect/trained", "inverted/trained", "constant/trained"]
    pairs = ("", "pair=0", "pair=1")
    expected = [
        *itertools.product(["advantage", "mia_score"], attacks, pairs), *itertools.product(["q"], SETS, pairs),
        *itertools.product(["q_sd", "q_crossfit"], SETS, [""]), *itertools.product(["auc"], attacks, [""]),
        *itertools.product(["tpr_at_fpr"], attacks, ["rate=0.01", "rate=0.001"]),
    ]  # fmt: skip
    assert sorted((r.metric, r.attack, about(r)) for r in rows) == sorted(expected)
    known = [row for row in rows if not np.isnan(row.value)]
    assert all(row.note for row in rows if row not in known)
    for row in known:
        assert row.ci_low <= row.value <= row.ci_high, row
        if row.metric not in ("q_crossfit", "q_sd"):
            assert 0 <= row.ci_low < row.ci_high - 0.01, "30 samples leave some doubt even where all agree"
            assert row.ci_high <= 1
    assert len(known) > 30


def test_counts_and_reasons(rows):
    membership, _ = cases()
    samples = (membership["forget"] | membership["heldout"]).any(axis=0).sum()
    weak = "weak/unlearned"
    counted = {
        ("q", "paper", ""): samples, ("q", "paper", "pair=1"): 30, ("q_sd", "paper", ""): 2, ("auc", weak, ""): samples,
        ("mia_score", weak, ""): samples, ("mia_score", weak, "pair=1"): 30,
    }  # fmt: skip
    assert {place: value_of(rows, *place).n for place in counted} == counted
    empty = value_of(rows, "tpr_at_fpr", weak, "rate=0.001")
    assert np.isnan([empty.value, empty.ci_low, empty.ci_high]).all()
    assert empty.note == f"{membership['heldout'].sum()} negatives cannot resolve a false positive rate of 0.001"
    together = value_of(rows, "tpr_at_fpr", weak, "rate=0.01")
    assert together.note.startswith("one threshold for 8 targets: 15 negatives in one are too few")
    assert "may exceed 1" in value_of(rows, "q_crossfit", "paper").note


@pytest.mark.parametrize("weighted", [True, False])
def test_auc_and_mia_score_are_means_over_splits_of_an_independent_auc(weighted):
    membership, scores = cases()
    weight = np.random.default_rng(1).random(50) if weighted else np.ones(50)
    rows = evaluated(scores, membership, weight=weight if weighted else None)
    for key, (score, _) in scores.items():
        expected = []
        for m in range(8):
            used = membership["forget"][m] | membership["heldout"][m]
            truth = membership["forget"][m, used]
            expected.append(roc_auc_score(truth, score[m, used], sample_weight=weight[used]))
        auc, mia = (value_of(rows, metric, "/".join(key)) for metric in ("auc", "mia_score"))
        assert auc.value == pytest.approx(np.mean(expected), abs=1e-12)
        turned = (1 - auc.value, 1 - auc.ci_high, 1 - auc.ci_low)
        assert (mia.value, mia.ci_low, mia.ci_high) == pytest.approx(turned, abs=1e-15)


def test_tpr_at_fpr_is_the_mean_of_the_best_allowed_thresholds():
    rng = np.random.default_rng(8)
    membership = layout(rng, samples=150, pairs=2, k=60, models=2)
    score = np.round(World(leak=(1.0,), cut=(0,)).scores(rng, membership["forget"])[0], 1)
    rows = evaluated({("a", "trained"): (score, score > 0)}, membership, fprs=[0.02, 0.1])
    for fpr in (0.02, 0.1):
        expected = []
        for m in range(8):
            forgot, heldout = score[m, membership["forget"][m]], score[m, membership["heldout"][m]]
            allowed = [t for t in np.unique(score[m]) if (heldout >= t).mean() <= fpr]
            expected.append(max((forgot >= t).mean() for t in allowed))
        assert value_of(rows, "tpr_at_fpr", "a/trained", f"rate={fpr}").value == pytest.approx(np.mean(expected))


def test_nan_scores_leave_empty_cells_but_keep_the_advantage():
    membership, scores = cases()
    score, decision = scores["weak", "unlearned"]
    holes = np.where(membership["forget"], score, np.nan)
    rows = evaluated({("weak", "unlearned"): (holes, decision)}, membership)
    empty = [row for row in rows if row.metric in ("auc", "mia_score", "tpr_at_fpr")]
    samples = (membership["forget"] | membership["heldout"]).any(axis=0).sum()
    assert [(np.isnan(row.value), "NaN" in row.note, row.n) for row in empty] == [(True, True, samples)] * 4
    assert not np.isnan(value_of(rows, "advantage", "weak/unlearned").value)


@pytest.mark.parametrize("errors", [(0.02, 0.1), (0.1, 0.02)])
def test_the_limits_of_q_are_those_of_the_whole_band(errors):
    """The strongest adversary in sight need not have the highest upper limit, nor the highest lower one."""
    influence = np.repeat(np.diag(errors), 200, axis=1) / np.sqrt(200)
    reading = crossed.Reading(np.array([0.5, -0.4]), influence, np.zeros((2, 2)), np.zeros((2, 2)), 0)
    half = crossed.joint_half_widths(reading, rng=np.random.default_rng(0), draws=500)
    low, high = np.array([0.5, 0.4]) - half, np.array([0.5, 0.4]) + half
    assert high.argmax() == low.argmin()
    q = swap.quality(reading, n=2, rng=np.random.default_rng(0), draws=500, names=["first", "second"])
    assert (q.value, q.low, q.high) == pytest.approx((0.5, 1 - high.max(), 1 - low.max()))
    assert q.note.startswith("strongest: first")


def test_wrong_inputs_are_named():
    membership, _ = cases()
    for change, message in (
        ({"forget": np.zeros_like(membership["forget"])}, "forget holds no sample"),
        ({"heldout": np.zeros_like(membership["forget"])}, "heldout holds no sample"),
    ):
        with pytest.raises(ValueError, match=message):
            _game.game(**{**membership, **change})
