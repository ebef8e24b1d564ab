"""All rows of the SWAP test: what they are made of, their limits, counts, reasons and invariances."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.metrics import _game, swap
from unlearning_audit.stats import crossed, separation

from row_places import about
from swap_games import World, layout


def value_of(rows, metric, attack, setting=""):
    (row,) = [r for r in rows if (r.metric, r.attack, about(r)) == (metric, attack, setting)]
    return row


def cases():
    """Attacks of all kinds, the degenerate ones among them, in a small game."""
    rng = np.random.default_rng(6)
    membership = layout(rng, samples=50, pairs=2, k=15, models=2)
    forget = membership["forget"]
    score = World(leak=(1.0, 0.3), cut=(0, 0)).scores(rng, forget)
    attacks = {
        ("strong", "trained"): score[0],
        ("weak", "unlearned"): score[1],
        ("perfect", "trained"): forget.astype(float),
        ("inverted", "trained"): -forget.astype(float),
        ("constant", "trained"): np.zeros(forget.shape),
    }
    scores = {key: (value, value > 0) for key, value in attacks.items()}
    scores["constant", "trained"] = (attacks["constant", "trained"], np.ones(forget.shape, bool))
    return membership, scores


SETS = {
    "paper": [("strong", "trained"), ("weak", "unlearned")],
    "extended": [("perfect", "trained"), ("inverted", "trained"), ("weak", "unlearned")],
    "useless": [("constant", "trained")],
}


@pytest.fixture
def rows():
    membership, scores = cases()
    return swap.evaluate(scores=scores, **membership, weight=None, sets=SETS, rng=np.random.default_rng(0))


def test_the_sets_of_adversaries():
    """Tu, Hu & Ma 2024, §4.1: four adversaries, learned from trained shadow models; adaptive: entropy and the other
    form besides."""
    forms = ("trained", "unlearned")
    attacks = ("correctness", "confidence", "entropy", "modified_entropy", "shadow", "lira", "random")
    set_names = swap.ATTACK_SETS
    case = SimpleNamespace(scores=dict.fromkeys(itertools.product(attacks, forms)), failed_attacks={}, sets=set_names)
    sets, lost = swap.adversaries(case)
    four = {"shadow", "correctness", "confidence", "modified_entropy"}
    assert set(sets["paper"]) == {(name, "trained") for name in four}
    assert set(sets["adaptive"]) == set(itertools.product({*four, "entropy"}, forms))
    assert set(sets["extended"]) == set(case.scores) - set(itertools.product(["random"], forms))
    assert not lost
    case.failed_attacks["entropy"] = "it broke"
    sets, lost = swap.adversaries(case)
    assert list(sets) == ["paper"]
    assert len(lost) == 2


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
    membership = {
        "forget": forget,
        "heldout": ~forget,
        "split": np.array([0, 1, 0, 1]),
        "block": np.array([0, 0, 1, 1]),
    }
    decision = np.vstack([forget[:2], ~forget[2:]])
    scores = {("a", "trained"): (decision.astype(float), decision)}
    sets = {"paper": list(scores)}
    rows = swap.evaluate(scores=scores, **membership, weight=None, sets=sets, rng=np.random.default_rng(0))
    assert value_of(rows, "advantage", "a/trained").value == 0
    assert value_of(rows, "q", "paper").value == 1
    assert [value_of(rows, "q", "paper", f"pair={b}").value for b in (0, 1)] == [0, 0]
    assert value_of(rows, "q_sd", "paper").value == 0


def test_every_value_lies_in_its_interval_within_the_unit_interval(rows):
    checked = 0
    for row in rows:
        if np.isnan(row.value):
            assert row.note
            continue
        assert row.ci_low <= row.value <= row.ci_high, row
        if row.metric not in ("q_crossfit", "q_sd"):
            assert row.ci_low >= 0
            assert row.ci_high <= 1
            assert row.ci_high - row.ci_low > 0.01, "30 samples leave some doubt even where all agree"
        checked += 1
    assert checked > 30


def test_rows_are_complete_and_named(rows):
    attacks = ["strong/trained", "weak/unlearned", "perfect/trained", "inverted/trained", "constant/trained"]
    expected = {("advantage", a, s) for a in attacks for s in ("", "pair=0", "pair=1")}
    expected |= {("q", name, s) for name in SETS for s in ("", "pair=0", "pair=1")}
    expected |= {(metric, name, "") for name in SETS for metric in ("q_sd", "q_crossfit")}
    expected |= {("auc", a, "") for a in attacks}
    expected |= {("mia_score", a, s) for a in attacks for s in ("", "pair=0", "pair=1")}
    expected |= {("tpr_at_fpr", a, f"rate={x}") for a in attacks for x in (0.01, 0.001)}
    actual = [(r.metric, r.attack, about(r)) for r in rows]
    assert sorted(actual) == sorted(expected)


def test_counts_and_reasons(rows):
    membership, _ = cases()
    either = membership["forget"] | membership["heldout"]
    assert value_of(rows, "q", "paper").n == either.any(axis=0).sum() > 30
    assert value_of(rows, "q", "paper", "pair=1").n == 30
    for metric in ("auc", "mia_score"):
        assert value_of(rows, metric, "weak/unlearned").n == either.any(axis=0).sum()
    assert value_of(rows, "mia_score", "weak/unlearned", "pair=1").n == 30
    assert value_of(rows, "q_sd", "paper").n == 2
    empty = value_of(rows, "tpr_at_fpr", "weak/unlearned", "rate=0.001")
    assert np.isnan([empty.value, empty.ci_low, empty.ci_high]).all()
    negatives = membership["heldout"].sum()
    assert empty.note == f"{negatives} negatives cannot resolve a false positive rate of 0.001"
    together = value_of(rows, "tpr_at_fpr", "weak/unlearned", "rate=0.01")
    models = len(membership["split"])
    assert together.note.startswith(f"one threshold for {models} targets: 15 negatives in one are too few")
    assert together.ci_low <= together.value <= together.ci_high
    assert "may exceed 1" in value_of(rows, "q_crossfit", "paper").note


@pytest.mark.parametrize("weighted", [True, False])
def test_auc_and_mia_score_are_means_over_splits_of_an_independent_auc(weighted):
    from sklearn.metrics import roc_auc_score

    membership, scores = cases()
    weight = np.random.default_rng(1).random(50) if weighted else None
    rows = swap.evaluate(scores=scores, **membership, weight=weight, sets={}, rng=np.random.default_rng(0))
    weight = np.ones(50) if weight is None else weight
    for key, (score, _) in scores.items():
        expected = []
        for m in range(8):
            used = membership["forget"][m] | membership["heldout"][m]
            truth = membership["forget"][m, used]
            expected.append(roc_auc_score(truth, score[m, used], sample_weight=weight[used]))
        auc, mia = (value_of(rows, metric, "/".join(key)) for metric in ("auc", "mia_score"))
        assert auc.value == pytest.approx(np.mean(expected), abs=1e-12)
        assert mia.value == pytest.approx(1 - auc.value, abs=1e-15)
        assert (mia.ci_low, mia.ci_high) == pytest.approx((1 - auc.ci_high, 1 - auc.ci_low), abs=1e-15)


def test_auc_of_one_model_has_the_interval_of_the_plain_auc():
    rng = np.random.default_rng(7)
    forget = np.arange(120)[None] < 50
    score = rng.normal(size=(1, 120)) + forget
    part = separation.auc(score=score, positive=forget.astype(float), negative=(~forget).astype(float))
    estimate = crossed.estimates(crossed.read(crossed.combine([part], split=np.zeros(1)), share=np.ones(1)), n=120)[0]
    plain = stats.auc(score=score[0], positive=forget[0])
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
        (plain.value, plain.low, plain.high), abs=1e-12
    )
    assert estimate.note == crossed.ONE_MODEL


@pytest.mark.parametrize("fpr", [0.02, 0.1])
def test_tpr_at_fpr_is_the_mean_of_the_best_allowed_thresholds(fpr):
    rng = np.random.default_rng(8)
    membership = layout(rng, samples=150, pairs=2, k=60, models=2)
    score = np.round(World(leak=(1.0,), cut=(0,)).scores(rng, membership["forget"])[0], 1)
    scores = {("a", "trained"): (score, score > 0)}
    rows = swap.evaluate(scores=scores, **membership, weight=None, sets={}, rng=rng, fprs=[fpr])
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
    rows = swap.evaluate(
        scores={("weak", "unlearned"): (holes, decision)},
        **membership,
        weight=None,
        sets={},
        rng=np.random.default_rng(0),
    )
    empty = [row for row in rows if row.metric in ("auc", "mia_score", "tpr_at_fpr")]
    assert len(empty) == 4
    assert all(np.isnan(row.value) and "NaN" in row.note for row in empty)
    assert {row.n for row in empty} == {(membership["forget"] | membership["heldout"]).any(axis=0).sum()}
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


def test_the_model_with_the_fewest_held_out_samples_decides_what_is_resolved():
    rng = np.random.default_rng(9)
    forget, heldout = np.zeros((2, 300), bool), np.zeros((2, 300), bool)
    forget[0, :50], heldout[0, 50:90] = True, True
    forget[1, 50:90], heldout[1, 90:] = True, True
    rows = swap.evaluate(
        scores={("a", "trained"): (rng.normal(size=(2, 300)), forget)}, forget=forget, heldout=heldout,
        split=np.array([0, 1]), block=np.zeros(2, int), weight=None, sets={}, rng=rng, fprs=[0.001, 0.01, 0.05],
    )  # fmt: skip
    row = value_of(rows, "tpr_at_fpr", "a/trained", "rate=0.01")
    assert row.note.startswith("one threshold for 2 targets: 40 negatives in one are too few")
    row = value_of(rows, "tpr_at_fpr", "a/trained", "rate=0.001")
    assert np.isnan(row.value)
    assert row.note == "250 negatives cannot resolve a false positive rate of 0.001"
    assert value_of(rows, "tpr_at_fpr", "a/trained", "rate=0.05").value >= 0


def test_wrong_inputs_are_named():
    membership, scores = cases()
    rng = np.random.default_rng(0)
    for change, message in (
        ({"heldout": membership["forget"]}, "overlap"),
        ({"heldout": membership["heldout"][:, :-1]}, "must be"),
        ({"split": membership["split"][:-1]}, "must be"),
        ({"forget": np.zeros_like(membership["forget"])}, "forget holds no sample"),
        ({"heldout": np.zeros_like(membership["forget"])}, "heldout holds no sample"),
        ({"weight": np.full(50, -1.0)}, "weight"),
        ({"weight": np.ones(49)}, "weight"),
    ):
        with pytest.raises(ValueError, match=message):
            _game.game(**{**membership, **change})
    for scored, sets, message in (
        (scores, {"paper": []}, "set paper"),
        (scores, {"paper": [("nobody", "trained")]}, "set paper"),
        ({("a", "b"): (np.zeros((8, 49)), np.zeros((8, 50), bool))}, {}, "a/b"),
        ({("a", "b"): (np.zeros((8, 50)), np.zeros((8, 50)))}, {}, "a/b"),
    ):
        with pytest.raises(ValueError, match=message):
            swap.evaluate(scores=scored, **membership, weight=None, sets=sets, rng=rng)
