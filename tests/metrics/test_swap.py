"""The SWAP test: its game, all of its rows, the cross-fitted choice, and what its intervals hold."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from sklearn.metrics import roc_auc_score
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import _crossfit, _game, phi, swap
from unlearning_audit.stats import crossed, paired, separation, tail

import metric_calls as call
import row_places
from folder_cases import SETTINGS, Y, pair, population
from slow_cases import slow
from stat_cases import at_least
from swap_games import World, layout, read, rules_of, signed_advantage


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
    evaluation = SimpleNamespace(
        scores=dict.fromkeys(itertools.product(attacks, forms)), failed_attacks={}, sets=set_names
    )
    sets, lost = swap.adversaries(evaluation)
    four = {"shadow", "correctness", "confidence", "modified_entropy"}
    assert {name: set(members) for name, members in sets.items()} == {
        "paper": {(name, "trained") for name in four},
        "adaptive": set(itertools.product({*four, "entropy"}, forms)),
        "extended": set(itertools.product(attacks[:-1], forms)),
    }
    assert not lost
    evaluation.failed_attacks["entropy"] = "it broke"
    sets, lost = swap.adversaries(evaluation)
    assert (list(sets), [row.attack for row in lost]) == (["paper"], ["adaptive", "extended"])


def test_limits_lie_around_values_within_the_unit_interval_and_leave_some_doubt(rows):
    known = [row for row in rows if not np.isnan(row.value) and row.metric not in ("q_crossfit", "q_sd")]
    assert len(known) > 30
    for row in known:
        assert 0 <= row.ci_low <= row.value <= row.ci_high <= 1, row
        assert row.ci_low < row.ci_high - 0.01, "30 samples leave some doubt even where all agree"


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
    for attack, rate in (("perfect/trained", 1), ("inverted/trained", 0)):
        assert value_of(rows, "tpr_at_fpr", attack, "rate=0.01").value == pytest.approx(rate)


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
    reading = crossed.Reading(np.array([0.5, -0.4]), influence, np.zeros((2, 2)))
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
            rules_of(**{**membership, **change})


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
        assert swap.familiar_direction(score=score, phi=confidence, rows=np.ones(confidence.shape, bool)) == direction


# ---------------------------------------------------------------- imported models


def test_phi_needs_held_out_samples_of_every_model():
    evaluation = population(pair(), trace=-1.0)
    rows = phi.rows(evaluation, phi.Options(fpr=(0.25, 0.4)))
    assert [row.rate for row in rows] == [None, None, 0.25, 0.4]
    confidence, member = stats.phi(logits=evaluation.unlearned, y=Y), evaluation.membership
    expected = np.mean([
        roc_auc_score(f[f | h], of[f | h]) for of, f, h in zip(confidence, member.forget, member.heldout, strict=True)
    ])  # fmt: skip
    assert [(row.metric, row.value, row.n) for row in rows[:2]] == [
        ("auc", pytest.approx(expected), 6), ("mia_score", pytest.approx(1 - expected), 6)
    ]  # fmt: skip
    evaluation.membership.heldout[1] = False
    why = "a model has no heldout samples"
    assert [(row.metric, row.note) for row in phi.rows(evaluation, phi.Options())] == [("auc", why), ("mia_score", why)]


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


def slow_advantage(decision, forget, heldout, split, block, weight):
    """Definition 3.2 as it is written: mean over splits of the mean over models of a difference of rates."""
    per_split = {}
    for m in range(len(decision)):
        rates = []
        for side in (forget[m], heldout[m]):
            total = sum(weight[x] for x in np.flatnonzero(side))
            rates.append(sum(weight[x] * decision[m, x] for x in np.flatnonzero(side)) / total)
        per_split.setdefault((block[m], split[m]), []).append(rates[0] - rates[1])
    return np.mean([np.mean(values) for values in per_split.values()])


def test_models_have_sides_if_each_forgot_something_and_never_saw_something():
    some, rest = np.array([[1, 0, 0], [1, 0, 0]], bool), np.array([[1, 1, 1], [0, 0, 0]], bool)
    for forget, heldout, sided in ((some, ~some, True), (rest, some, False), (some, rest, False)):
        assert _game.sided(SimpleNamespace(forget=forget, heldout=heldout)) is sided


@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_advantage_is_its_definition(swapped, weighted):
    rng = np.random.default_rng(0)
    membership = layout(rng, samples=40, pairs=3, k=8, models=3, swapped=swapped)
    keep = np.delete(np.arange(18), [1, 8])  # splits of unequal numbers of models still count the same
    membership = {name: value[keep] for name, value in membership.items()}
    weight = rng.random(40) if weighted else np.ones(40)
    decision = rng.random((16, 40)) < 0.4
    rules = rules_of(**membership, weight=weight if weighted else None)
    expected = slow_advantage(decision, **membership, weight=weight)
    assert signed_advantage(rules, decision) == pytest.approx(expected, abs=1e-14)
    for block in range(3):
        of_pair = membership["block"] == block
        part = {name: value[of_pair] for name, value in membership.items()}
        expected = slow_advantage(decision[of_pair], **part, weight=weight)
        assert read(rules, [decision], block).value[0] == pytest.approx(expected, abs=1e-14)


def test_samples_of_a_block_are_those_that_any_of_its_models_forgot_or_held_out():
    forget, heldout = np.zeros((2, 3, 40), bool)
    forget[0, :3] = heldout[0, 3:5] = forget[1, 4:6] = heldout[1, 6] = forget[2, 10:] = heldout[2, :9] = True
    rules = rules_of(forget=forget, heldout=heldout, split=np.array([0, 1, 0]), block=np.array([0, 0, 1]))
    assert [_game.size(rules, block) for block in (0, 1)] == [7, 39]


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 0.9, 1.09, 600.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_bounds_are_the_papers_formulas(epsilon, delta):
    uncut = (4 - 4 * delta) / (np.exp(epsilon) + 1) - 1
    with np.errstate(all="raise"):
        assert swap.lower_bound(epsilon=epsilon, delta=delta) == pytest.approx(max(uncut, 0), abs=1e-12)
    expected = min(2 * (1 - (2 - 2 * delta) / (np.exp(epsilon) + 1)), 1)
    assert swap.advantage_bound(epsilon=epsilon, delta=delta) == pytest.approx(expected, abs=1e-12)


def test_crossfit_takes_the_sign_that_it_chose_and_the_interval_of_what_was_always_chosen():
    rng = np.random.default_rng(9)
    membership = layout(rng, samples=80, pairs=2, k=25, models=2)
    rules, guess = rules_of(**membership), rng.random((8, 80)) < 0.5
    for turned in (False, True):
        decisions = [membership["forget"] ^ (rng.random((8, 80)) < 0.2) ^ turned, guess]
        reading = read(rules, decisions)
        estimate, weight = _crossfit.quality(rules, decisions, reading, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(weight, [-1 if turned else 1, 0])
        half = crossed.half_widths(reading)[0]
        assert 0.05 < half < 0.5
        assert (estimate.high - estimate.value, estimate.value - estimate.low) == pytest.approx((half, half), rel=1e-12)
    decisions = [~membership["forget"], guess]
    certain, _ = _crossfit.quality(rules, decisions, read(rules, decisions), rng=np.random.default_rng(0))
    assert certain.value == pytest.approx(0, abs=1e-12)


def test_crossfit_of_models_that_stand_alone_says_so_and_of_tiny_sets_is_empty():
    rng = np.random.default_rng(10)
    membership = layout(rng, samples=40, pairs=1, k=10, models=1)
    rules = rules_of(**membership)
    decisions = [rng.random((2, 40)) < 0.5]
    result, _ = _crossfit.quality(rules, decisions, read(rules, decisions), rng=rng)
    assert result.note.startswith("unbiased over samples only")
    forget = np.array([[1, 0], [0, 1]], bool)
    rules = rules_of(forget=forget, heldout=~forget, split=np.array([0, 1]), block=np.zeros(2, int))
    result, _ = _crossfit.quality(rules, [forget], read(rules, [forget]), rng=rng)
    assert np.isnan(result.value)
    assert result.note == "forget and heldout are too small to be halved"


GAMES = 300

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
        yield rng, rules_of(**membership), scores, world.decisions(scores)


@pytest.mark.parametrize(("name", "games"), [("leak", 40), *slow(*((name, GAMES) for name in WORLDS))])
def test_intervals_cover_the_truth_and_estimates_are_unbiased(name, games):
    """Also that intervals are no wider than needed, and that the maximum is optimistic and cross-fitting is not."""
    world = WORLDS[name]
    quality = 1 - np.abs(world.advantage).max()
    rows, inside = [], []
    for rng, rules, scores, decisions in play(world, games=games):
        reading, pair = read(rules, decisions), read(rules, decisions, 0)
        part = separation.auc(score=scores[0][:, rules.columns], positive=rules.forget, negative=rules.heldout)
        auc = crossed.weighted_mean(crossed.combine([part], split=rules.split), share=_game.share(rules))
        half, half_pair, half_auc = (crossed.half_widths(r) for r in (reading, pair, auc))
        q, q_pair = (swap.quality(r, n=1, rng=rng) for r in (reading, pair))
        fair, weight = _crossfit.quality(rules, decisions, reading, rng=rng)
        target = 1 - weight @ world.advantage
        inside.append(
            [
                *(np.abs(reading.value - world.advantage) <= half),
                *(np.abs(pair.value - world.advantage) <= half_pair),
                *(b.low <= a <= b.high for b, a in zip(swap.adv_bar(reading, n=1), abs(world.advantage), strict=True)),
                *(estimate.low <= quality <= estimate.high for estimate in (q, q_pair)),
                fair.low <= target <= fair.high,
                np.abs(auc.value[0] - world.auc[0]) <= half_auc[0],
            ]
        )
        rows.append([*reading.value, fair.value - target, auc.value[0], *half, half_auc[0], q.value, fair.value])
    assert (np.mean(inside, axis=0) >= at_least(0.95, games)).all(), np.mean(inside, axis=0)
    rows = np.array(rows)
    mean, sd = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    assert (np.abs(mean[:4] - [*world.advantage, 0]) < 4 * sd[:4] / np.sqrt(games)).all(), "a bias"
    assert (mean[5:9] < np.array([1.3, 1.3, 1.3, 1.4]) * 1.96 * sd[[0, 1, 2, 4]]).all(), "too wide"
    if name == "retrain":
        assert rows[:, 9].max() <= 1
        assert mean[9] < 0.985
        assert abs(mean[10] - 1) < 0.003
        assert (rows[:, 10] > 1).any()


def test_q_of_retrained_models_covers_one_for_ten_adversaries():
    world = World(leak=(0,) * 10, cut=tuple(np.linspace(-1, 1, 10)), sample_leak=0, model_leak=0, common=0.2)
    ends = [swap.quality(read(rules, said), n=1, rng=rng).high for rng, rules, _, said in play(world, games=40, seed=1)]
    assert np.mean(np.array(ends) == 1) >= at_least(0.95, 40)


@pytest.mark.parametrize("models", [1, 2])
def test_few_models_per_split_are_covered_too(models):
    world = World(leak=(0.8, 0.2), cut=(0, 0.5), model_leak=0.6)
    readings_of = [read(rules, decisions) for _, rules, _, decisions in play(world, games=80, seed=4, models=models)]
    inside = [np.abs(reading.value - world.advantage) <= crossed.half_widths(reading) for reading in readings_of]
    assert (np.mean(inside, axis=0) >= at_least(0.95, 80)).all()


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
        rules = rules_of(**membership)
        tpr = swap.tpr(rules, score[:, rules.columns], 0.02)
        inside += tpr.low <= truth <= tpr.high
    assert inside / GAMES >= at_least(0.95, GAMES)


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
