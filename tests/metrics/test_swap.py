"""All rows of the SWAP test: what they are made of, their limits, counts, reasons and invariances."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _game, phi, swap
from unlearning_audit.stats import crossed, paired, tail

import metric_calls as call
import row_places
from folder_cases import SETTINGS, Y, pair, population
from row_places import about
from swap_games import World, layout, signed_advantage


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
    samples, weak = (membership["forget"] | membership["heldout"]).any(axis=0).sum(), "weak/unlearned"
    counted = {
        ("q", "paper", ""): samples, ("q", "paper", "pair=1"): 30, ("q_sd", "paper", ""): 2, ("auc", weak, ""): samples,
        ("mia_score", weak, ""): samples, ("mia_score", weak, "pair=1"): 30,
    }  # fmt: skip
    assert {place: value_of(rows, *place).n for place in counted} == counted
    for rate, note in (("0.001", f"{membership['heldout'].sum()} negatives cannot resolve a false positive rate of"),
                       ("0.01", "one threshold for 8 targets: 15 negatives in one are too few")):  # fmt: skip
        assert value_of(rows, "tpr_at_fpr", weak, f"rate={rate}").note.startswith(note)
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


# ---------------------------------------------------------------- effects


def mean(part) -> np.ndarray:
    """The numbers that effects add up to, float64 [K]."""
    return paired.distances(**{n: getattr(part, n) for n in ("value", "influence", "imagined", "unit", "split")}).value


def game():
    """(membership, scores of two attacks, phi): samples that were forgotten look familiar."""
    rng, world = np.random.default_rng(0), World(leak=(0.8, 0.4), cut=(0.5, 0.2))
    masks = layout(rng, samples=200, pairs=3, k=40, models=2)
    scores, count = world.scores(rng, masks["forget"]), len(masks["split"])
    decided = world.decisions(scores)
    member = Membership(train=masks["forget"], seed=np.arange(count), shadow=np.zeros(count, bool), **masks)
    return member, {("a", "trained"): (scores[0], decided[0]), ("b", "trained"): (scores[1], decided[1])}, scores[0]


def test_advantages_add_up_to_the_signed_advantage():
    member, scores, phi = game()
    part, rules = swap.advantages(scores, phi, member)["advantage"], _game.of_models(member)
    expected = [signed_advantage(rules, decision) for _, decision in scores.values()]
    np.testing.assert_allclose(mean(part), expected, atol=1e-12)
    assert part.names == ("a/trained", "b/trained")
    assert np.array_equal(part.index, rules.columns)


def test_an_attack_that_learned_to_say_yes_to_the_unfamiliar_is_turned():
    """An unlearned model that finds forgotten samples less familiar: the attack finds them, on the far side."""
    member, scores, phi = game()
    score, decision = scores["a", "trained"]
    straight = mean(swap.advantages({("a", "trained"): (score, decision)}, phi, member)["advantage"])[0]
    assert straight > 0.1
    attacks = {("a", "unlearned"): (-score, ~decision), ("c", "trained"): (-score, ~decision)}
    parts = swap.advantages(attacks, phi, member)
    np.testing.assert_allclose(mean(parts["advantage"]), [straight, -straight], atol=1e-12)
    rules = _game.of_models(member)
    whole = tail.advantage(score=score[:, rules.columns], forget=rules.forget, heldout=rules.heldout)
    np.testing.assert_array_equal(parts["tail_advantage"].value[0], whole.value)


def test_the_direction_of_an_attack_is_that_of_its_ranks():
    phi = np.random.default_rng(1).standard_normal((3, 50))
    nothing, few = np.full(phi.shape, np.nan), np.arange(4.0)[None]
    for score, confidence, direction in (
        (np.exp(5 * phi), phi, 1), ((phi < 0) * 1.0, phi, -1), (nothing, phi, 1), (0 * phi, phi, 1),
        (few[:, :2], few[:, :2], 1), (-few[:, :2], few[:, :2], -1),
        (np.array([[0.0, 0.0, 0.0, 1.0]]), few, 1),  # equal scores share their mean rank, however many they are
    ):  # fmt: skip
        assert swap.familiar(score=score, phi=confidence, rows=np.ones(confidence.shape, bool)) == direction


# ---------------------------------------------------------------- imported models


def test_phi_needs_held_out_samples_of_every_model():
    case = population(pair(), trace=-1.0)
    rows = phi.rows(case, phi.Options(fpr=(0.25, 0.4)), None)
    assert [row.rate for row in rows] == [None, None, 0.25, 0.4]
    confidence, member = stats.phi(logits=case.unlearned, y=Y), case.membership
    expected = np.mean([
        roc_auc_score(f[f | h], of[f | h]) for of, f, h in zip(confidence, member.forget, member.heldout, strict=True)
    ])  # fmt: skip
    assert [(row.metric, row.value, row.n) for row in rows[:2]] == [
        ("auc", pytest.approx(expected), 6), ("mia_score", pytest.approx(1 - expected), 6)
    ]  # fmt: skip
    case.membership.heldout[1] = False
    why = "a model has no heldout samples"
    assert [(row.metric, row.note) for row in phi.rows(case, phi.Options(), None)] == [("auc", why), ("mia_score", why)]


def scored(member):
    score = np.random.default_rng(9).normal(size=member.train.shape)
    return population(member, scores={(name, "trained"): (score + i, score > 0) for i, name in enumerate("ab")})


def test_q_needs_swapped_pairs_and_scores():
    nothing = population(pair())
    nothing.missing = {"b/trained": "why not"}
    rows = call.rows(swap, nothing, SETTINGS)
    assert [(row.metric, row.attack, row.note) for row in rows] == [
        ("q", "adaptive", "no attack could be asked"), ("advantage", "b/trained", "why not")
    ]  # fmt: skip
    member = pair()
    settings = SETTINGS | {"metrics": {"swap": {"fpr": [0.25]}}}
    rows = call.rows(swap, scored(replace(member, split=np.arange(4))), settings)
    assert not [row for row in rows if row.pair is not None]
    assert [(row.attack, "4 splits" in row.note) for row in rows if row.metric == "q"] == [("adaptive", True)]
    assert {("advantage", "a/trained"), ("mia_score", "b/trained")} <= {(row.metric, row.attack) for row in rows}
    member.heldout[3] = False
    *_, last = call.rows(swap, scored(member), settings)
    assert ("heldout holds no sample" in last.note, last.metric) == (True, "advantage")
