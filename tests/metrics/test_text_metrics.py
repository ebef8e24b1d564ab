"""Metrics and attacks of language models on hand-made rows, on identities, and by simulation of known truth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import leak_at_k, memorisation, overlap, privleak, truth_ratio
from unlearning_audit.metrics._text import nll, utilities
from unlearning_audit.stats import separation

from passage_cases import two

NO = math.nan


def test_truth_ratio_by_hand():
    """TOFU's own: the geometric mean of the wrong answers' probabilities over that of the paraphrase."""
    logits = two(np.log(np.array([[0.5, 0.4, 0.2, 0.1, 0.3, 0.25]])))
    perturbed = np.array([[3, 4], [5, -1], *[[-1, -1]] * 4])
    right = np.array([[2], *[[-1]] * 5])
    for mean, ratio in (("geometric", math.sqrt(0.1 * 0.3) / 0.2), ("arithmetic", 0.2 / 0.2)):
        log_ratio = truth_ratio.log_ratio(logits, perturbed, right, mean)[0]
        np.testing.assert_allclose(np.exp(log_ratio[:2]), [ratio, 0.25 / 0.4], rtol=1e-6)
        assert np.isnan(log_ratio[2:]).all()
        np.testing.assert_allclose(truth_ratio.closeness(log_ratio[:2]), [min(ratio, 1 / ratio), 0.625], rtol=1e-6)
        np.testing.assert_allclose(truth_ratio.true_better(log_ratio[:2]), [1 - ratio, 0.375], rtol=1e-6, atol=1e-6)
    assert truth_ratio.true_better(np.array([0.7])) == 0


ONE = {"split": np.zeros(1), "block": np.zeros(1)}


def small(pairs):
    """How often forget quality falls below .05 for pairs of log R [1, questions]."""
    of_pairs = [truth_ratio.compared(*both, np.ones(both[0].shape, bool), **ONE) for both in pairs]
    return np.mean([numbers["forget_quality"].value < 0.05 for numbers in of_pairs])


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0.0, 0.02), (0.2, 0.22, 0.4)])
def test_forget_quality_takes_retrained_models_that_differ_for_unlearned_ones(spread, least, most):
    """As docs/metrics.md says: the published test knows of questions alone."""
    rng, shape = np.random.default_rng(5), (300, 2, 1, 400)
    question, level = 1.5 * rng.normal(size=(300, 1, 1, 400)), spread * rng.normal(size=(300, 2, 1, 1))
    assert least <= small(question + level + rng.normal(size=shape)) <= most


def test_a_model_without_a_question_has_no_forget_quality():
    value, mask = np.arange(8.0).reshape(2, 4), np.array([[1, 1, 0, 0], [0, 0, 0, 0]], bool)
    for estimate in truth_ratio.compared(value, value, mask, split=np.arange(2), block=np.zeros(2, int)).values():
        assert math.isnan(estimate.value)
        assert (estimate.n, estimate.note) == (2, "no perturbed answers in the forget set of some model")


def test_forget_quality_is_a_geometric_mean_over_splits():
    """Models of a split repeat each other: p of 1 twice in one split and of ⅓ (three values above three) once."""
    low, high = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    unlearned, retrained = np.stack([low, low, low]), np.stack([low, low, high])
    groups = {"split": np.array([0, 0, 1]), "block": np.zeros(3, int)}
    ks, quality = truth_ratio.compared(unlearned, retrained, np.ones((3, 3), bool), **groups).values()
    assert ks.value == 0.5
    assert quality.value == pytest.approx(math.sqrt(0.1))  # of C(6, 3) = 20 orders, two are as far apart
    assert (ks.low, ks.high, quality.high) == (0, 1, 1)
    assert quality.low < 1e-3
    groups["split"] = np.arange(3)
    same = truth_ratio.compared(unlearned, unlearned + 10, np.ones((3, 3), bool), **groups)["truth_ratio_ks"]
    assert (same.value, same.low, same.high) == (1, 1, 1)
    far = np.arange(5000.0)[None]
    assert truth_ratio.compared(far, far + 9000, far >= 0, **ONE)["forget_quality"].value == pytest.approx(1e-300)


def test_distances_of_truth_ratios_cover_pairs_that_differ():
    """Two splits of a pair share their samples, so that pairs are what varies."""
    rng, read = np.random.default_rng(3), []
    split, block = np.tile([0, 0, 1, 1], 4), np.repeat(np.arange(4), 4)
    for _ in range(150):
        shift = np.repeat(rng.normal(1, 0.4, 4), 4)[:, None]
        audited, retrained = rng.normal(size=(2, 16, 40))
        asked, groups = np.ones((16, 40), bool), {"split": split, "block": block}
        ks = truth_ratio.compared(audited + shift, retrained, asked, **groups)["truth_ratio_ks"]
        read.append((ks.value, (ks.high - ks.low) / 2))
    values, halves = np.array(read).T
    assert np.mean(np.abs(values - values.mean()) < halves) > 0.9


# ---------------------------------------------------------------- overlap of the data


def test_overlap_of_runs_by_hand():
    """Of runs of two tokens in what is kept, the first row; ~0 looks like padding, and is none."""
    x = np.int32([[1, 2, 3, 1], [~1, 2, 3, -1], [9, 1, 2, 3], [~0, 1, 7, 7], [5, -1, -1, -1]])
    kept = np.arange(5) == 0
    np.testing.assert_allclose(overlap.shared(overlap.numbered(x, 2), kept), [1, 1, 2 / 3, 0, 0])
    np.testing.assert_allclose(overlap.shared(overlap.numbered(x, 2), np.arange(5) == 3), [0, 0, 0, 1, 0])
    assert overlap.shared(overlap.numbered(x, 5), kept).tolist() == [0.0] * 5


def test_what_forgotten_spans_share_with_held_out_ones_by_hand():
    """Scored tokens alone count, wherever in the sample they stand."""
    x = np.array([
        [~9, 1, 2, 3],    # forgotten: the whole span is held out too
        [~9, 4, 5, -1],   # forgotten: 5 is held out, 4 is not
        [~9, ~9, 7, 7],   # forgotten: nothing is
        [1, 2, 3, ~8],    # held out
        [~4, ~4, ~4, 5],  # held out, but 4 is not scored
    ])  # fmt: skip
    spans = overlap.scored(x)
    np.testing.assert_array_equal(spans, [[1, 2, 3], [4, 5, -1], [7, 7, -1], [1, 2, 3], [5, -1, -1]])
    heldout = np.arange(5) >= 3
    np.testing.assert_allclose(overlap.shared(spans, heldout)[:3], [1, 1 / 2, 0])
    np.testing.assert_allclose(overlap.shared(overlap.whole(spans), heldout)[:3], [1, 0, 0])
    for nothing in (np.full((2, 3), -1), np.array([[3, 4], [-1, -1]])):
        spans = overlap.whole(overlap.scored(nothing))
        assert overlap.shared(spans, np.array([False, True])).tolist() == [0, 0]


# ---------------------------------------------------------------- memorisation


def test_memorisation_by_hand():
    rank = np.array([
        [0, 0, 0, 0],    # all right: extracted whole
        [0, 0, 0, 2],    # the last one wrong: nothing can be extracted
        [3, 0, 0, 0],
        [0, 5, 0, NO],   # padded
        [NO, NO, 0, 0],  # only the end is scored
        [1, 1, 1, 1],
    ])[None].astype(float)  # fmt: skip
    scores = memorisation.both(rank)
    np.testing.assert_allclose(scores["exact_memorisation"][0], [1, 0.75, 0.75, 2 / 3, 1, 0])
    np.testing.assert_allclose(scores["extraction_strength"][0], [1, 0, 0.75, 1 / 3, 1, 0])


# ---------------------------------------------------------------- leaks of the best of k answers


def test_leaks_by_hand():
    """Half and half: one answer says .5 of the first, .25 of both; two say .75 and .4375."""
    logp = np.log(np.array([[[0.5, 0.5]]]))
    for answers, share, whole in ((1, 0.375, 0.25), (2, (0.75 + 0.4375) / 2, 0.4375)):
        assert np.ravel(leak_at_k.leaks(logp, answers)) == pytest.approx([share, whole])
    ends = np.array([[[0.0, 0.0, NO], [-np.inf, 0.0, NO], [NO] * 3]])  # certain, impossible, without a scored token
    np.testing.assert_array_equal(leak_at_k.leaks(ends, 128), [[[1, 0, NO]]] * 2)


def test_the_expected_leak_is_that_of_sampled_answers():
    """20,000 times three answers, each token right with its probability until the first that is wrong."""
    p = np.array([0.9, 0.3, 0.8, 0.6])
    right = np.random.default_rng(3).random((20_000, 3, 4)) < p
    best = np.cumprod(right, axis=-1).sum(-1).max(-1) / 4
    share, whole = leak_at_k.leaks(np.log(p)[None, None], 3)
    for values, expected in ((best, share.item()), (best == 1, whole.item())):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))


# ---------------------------------------------------------------- privleak


def simulate(rng, models, samples, shift, noise=0.6):
    """Scores that know forgotten samples by ``shift``: a part of each sample's is the same in all models."""
    forget = np.tile(np.arange(samples) < samples // 2, (models, 1))
    score = np.sqrt(1 - noise**2) * rng.normal(size=(1, samples)) + noise * rng.normal(size=(models, samples))
    return score + shift * forget, forget


def groups(models):
    return {"split": np.zeros(models, int), "block": np.zeros(models, int)}


def test_privleak_ends_where_an_auc_is_one_or_nought():
    rng, forget = np.random.default_rng(6), np.arange(20)[None] < 10
    retrained = rng.normal(size=(1, 20))
    highest = 100 * (1 / (1 - separation.auc(score=retrained, positive=forget * 1.0, negative=~forget * 1.0).value) - 1)
    for way, end in ((1, -100), (-1, highest)):
        score = way * (2.0 * forget + rng.normal(size=(1, 20)))
        estimate = privleak.leak(score, retrained, forget, ~forget, **groups(1))
        assert end in (pytest.approx(estimate.low), pytest.approx(estimate.high))
        assert -100 <= estimate.low <= estimate.value <= estimate.high <= highest + 1e-9
    with pytest.raises(ValueError, match="check the splits"):
        privleak.leak(retrained, 1.0 * forget, forget, ~forget, **groups(1))


@pytest.mark.parametrize("d", [0.5, 0.0])
def test_intervals_of_privleak_cover(d):
    """d between the sides gives an AUC of Φ(d/√2), retrained models .5, so that another retrained population (d = 0)
    reads 0; 300 studies."""
    rng, inside, studies = np.random.default_rng(4), np.zeros(2), 300
    auc = stats.normal_probability(d / math.sqrt(2))
    truth = 100 * ((1 - auc) / 0.5 - 1)
    for _ in range(studies):
        (audited, forget), (retrained, _) = (simulate(rng, 4, 80, shift) for shift in (d, 0.0))
        leak = privleak.leak(audited, retrained, forget, ~forget, **groups(4))
        area = privleak.auc(audited, forget, ~forget, **groups(4))
        inside += [leak.low <= truth <= leak.high, area.low <= auc <= area.high]
    # Binomial with .95: four standard errors are .05.
    assert (inside / studies >= 0.95 - 0.05).all()


# ---------------------------------------------------------------- worth


def test_the_worth_of_a_language_model_is_its_loss_on_what_it_keeps_and_on_the_test_part():
    rng = np.random.default_rng(3)
    logits = np.stack([rng.normal(size=(4, 30)), np.zeros((4, 30))], axis=-1)
    test, forget, split = np.arange(30) >= 20, np.zeros((4, 30), bool), np.array([0, 0, 1, 1])
    forget[:2, :5], forget[2:, 5:10] = True, True
    none = np.zeros(4, int)
    member = Membership(np.tile(~test, (4, 1)), forget, np.zeros_like(forget), np.arange(4), split, none, none > 0)
    case = SimpleNamespace(
        unlearned=logits, target=np.ones(4, bool), membership=member, data=SimpleNamespace(part=test.astype(np.uint8))
    )
    parts, loss = utilities(case, forgotten=True), nll(logits)
    assert list(utilities(case)) == ["nll_retain", "nll_test"]
    assert list(parts) == ["nll_retain", "nll_test", "nll_forget"]
    for part, rows in zip(parts.values(), (member.retain, np.tile(test, (4, 1)), forget), strict=True):
        np.testing.assert_allclose(part.value[0], [loss[m, rows[m]].mean() for m in range(4)])
        assert (part.rule.direction, part.rule.deciding) == ((-1, True) if rows is forget else (1, False))
        assert part.influence[0].sum(axis=1) == pytest.approx(0, abs=1e-12)
    assert utilities(SimpleNamespace(unlearned=np.zeros((4, 30, 10)), target=case.target)) == {}
