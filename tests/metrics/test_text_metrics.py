"""Metrics and attacks of language models on hand-made rows, on identities, and by simulation of known truth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import memorisation, overlap, privleak, truth_ratio
from unlearning_audit.metrics._text import nll, utilities
from unlearning_audit.stats import separation

from passage_cases import two

NO = math.nan


def test_truth_ratio_by_hand():
    """TOFU's own: the geometric mean of the wrong answers' probabilities over that of the paraphrase."""
    p = np.array([[0.5, 0.4, 0.2, 0.1, 0.3, 0.25]])
    perturbed = np.array([[3, 4], [5, -1], *[[-1, -1]] * 4])
    right = np.array([[2], *[[-1]] * 5])
    log_ratio = truth_ratio.log_ratio(two(np.log(p)), perturbed, right)[0]
    np.testing.assert_allclose(np.exp(log_ratio[:2]), [math.sqrt(0.1 * 0.3) / 0.2, 0.25 / 0.4], rtol=1e-6)
    assert np.isnan(log_ratio[2:]).all()
    np.testing.assert_allclose(truth_ratio.closeness(log_ratio[:2]), [math.sqrt(0.03) / 0.2, 0.625], rtol=1e-6)
    np.testing.assert_allclose(truth_ratio.true_better(log_ratio[:2]), [1 - math.sqrt(0.03) / 0.2, 0.375], rtol=1e-6)
    assert truth_ratio.true_better(np.array([0.7])) == 0


def distance(a, b) -> float:
    """Kolmogorov–Smirnov, from its definition."""
    return max(abs(sum(v <= t for v in a) / len(a) - sum(v <= t for v in b) / len(b)) for t in [*a, *b])


def test_forget_quality_is_that_of_the_definition_and_uniform_under_the_null():
    rng = np.random.default_rng(0)
    unlearned, retrained = rng.normal(size=(4, 30)), rng.normal(0.5, 1, size=(4, 30))
    mask = np.ones((4, 30), bool)
    mask[:, 25:] = False
    groups = {"split": np.array([0, 0, 1, 1]), "block": np.zeros(4, int)}
    ks, quality = truth_ratio.compared(unlearned, retrained, mask, **groups)
    by_hand = [distance(a[:25], b[:25]) for a, b in zip(unlearned, retrained, strict=True)]
    assert ks.value == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert ks.n == quality.n == 25
    assert 0 < quality.value < 1
    small = 0
    for _ in range(400):
        same = rng.normal(size=(2, 1, 40))
        small += (
            truth_ratio.compared(*same, np.ones((1, 40), bool), split=np.zeros(1), block=np.zeros(1))[1].value < 0.05
        )
    # Binomial with at most .05: four standard errors are .044; ties make the exact test a little careful.
    assert small / 400 < 0.05 + 0.044


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0.0, 0.02), (0.2, 0.22, 0.4)])
def test_forget_quality_takes_retrained_models_that_differ_for_unlearned_ones(spread, least, most):
    """As docs/metrics.md says: the published test knows of questions alone."""
    rng, audits, questions = np.random.default_rng(5), 300, 400
    small, groups = 0, {"split": np.zeros(1), "block": np.zeros(1)}
    for _ in range(audits):
        question, level = 1.5 * rng.normal(size=questions), spread * rng.normal(size=(2, 1, 1))
        both = question + level + rng.normal(size=(2, 1, questions))
        small += truth_ratio.compared(*both, np.ones((1, questions), bool), **groups)[1].value < 0.05
    assert least <= small / audits <= most


# ---------------------------------------------------------------- overlap of the data


def test_overlap_is_counted_as_in_a_loop():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, (12, 9)).astype(np.int32)
    x[1::3, :3] = ~x[1::3, :3]
    x[1, :3] = ~0  # looks like padding, and is none
    x[2::3, 6:] = -1
    retained = np.arange(12) < 5
    runs = [
        [tuple(int(v) if v >= 0 else ~int(v) for v in row[i : i + 3]) for i in range(4 if number % 3 == 2 else 7)]
        for number, row in enumerate(x)
    ]
    retained_runs = {run for row, keep in zip(runs, retained, strict=True) if keep for run in row}
    expected = [sum(run in retained_runs for run in row) / len(row) for row in runs]
    np.testing.assert_allclose(overlap.shared(overlap.numbered(x, 3), retained), expected, rtol=0, atol=1e-15)
    assert 0 < np.mean(expected[5:]) < 1
    assert expected[:5] == [1.0] * 5
    assert overlap.shared(overlap.numbered(x, 10), retained).tolist() == [0.0] * 12


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
    empty = overlap.scored(np.full((2, 3), -1))
    assert overlap.shared(overlap.whole(empty), np.array([False, True])).tolist() == [0, 0]
    one = overlap.scored(np.array([[3, 4], [-1, -1]]))
    assert overlap.shared(overlap.whole(one), np.array([False, True])).tolist() == [0, 0]


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


# ---------------------------------------------------------------- privleak


def simulate(rng, models, samples, shift, noise=0.6):
    """Scores that know forgotten samples by ``shift``: a part of each sample's is the same in all models."""
    forget = np.tile(np.arange(samples) < samples // 2, (models, 1))
    score = np.sqrt(1 - noise**2) * rng.normal(size=(1, samples)) + noise * rng.normal(size=(models, samples))
    return score + shift * forget, forget


def groups(models):
    return {"split": np.zeros(models, int), "block": np.zeros(models, int)}


def test_privleak_by_hand():
    forget = np.array([[True, True, False, False]])
    all_above, half = np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[4.0, 1.0, 2.0, 3.0]])
    assert privleak.leak(all_above, half, forget, ~forget, **groups(1)).value == pytest.approx(-100)
    assert privleak.leak(-all_above, half, forget, ~forget, **groups(1)).value == pytest.approx(100)
    with pytest.raises(ValueError, match="check the splits"):
        privleak.leak(half, all_above, forget, ~forget, **groups(1))


def test_privleak_ends_where_an_auc_is_one_or_nought():
    rng, forget = np.random.default_rng(6), np.arange(20)[None] < 10
    retrained = rng.normal(size=(1, 20))
    base = 1 - separation.auc(score=retrained, positive=forget * 1.0, negative=~forget * 1.0).value[0]
    for way, end in ((1, -100), (-1, 100 * (1 / base - 1))):
        estimate = privleak.leak(
            way * (2.0 * forget + rng.normal(size=(1, 20))), retrained, forget, ~forget, **groups(1)
        )
        assert end in (pytest.approx(estimate.low), pytest.approx(estimate.high))
        assert -100 <= estimate.low <= estimate.value <= estimate.high <= 100 * (1 / base - 1) + 1e-9


@pytest.mark.parametrize("d", [0.5, 0.0])
def test_intervals_of_privleak_cover(d):
    """d between the sides gives an AUC of Φ(d/√2), retrained models .5, so that another retrained population (d = 0)
    reads 0; 300 studies."""
    rng, inside, within, studies = np.random.default_rng(4), 0, 0, 300
    auc = stats.normal_probability(d / math.sqrt(2))
    truth = 100 * ((1 - auc) / 0.5 - 1)
    assert truth == pytest.approx(0) if d == 0 else truth < -20
    for _ in range(studies):
        both = [simulate(rng, 4, 80, shift) for shift in (d, 0.0)]
        forget = both[0][1]
        estimate = privleak.leak(both[0][0], both[1][0], forget, ~forget, **groups(4))
        inside += estimate.low <= truth <= estimate.high
        estimate = privleak.auc(both[0][0], forget, ~forget, **groups(4))
        within += estimate.low <= auc <= estimate.high
    # Binomial with .95: four standard errors are .05.
    assert inside / studies >= 0.95 - 0.05
    assert within / studies >= 0.95 - 0.05


# ---------------------------------------------------------------- worth


def test_the_worth_of_a_language_model_is_its_loss_on_what_it_keeps_and_on_the_test_part():
    rng = np.random.default_rng(3)
    logits = np.stack([rng.normal(size=(4, 30)), np.zeros((4, 30))], axis=-1)
    test, forget = np.arange(30) >= 20, np.zeros((4, 30), bool)
    forget[:2, :5], forget[2:, 5:10] = True, True
    split, none = np.array([0, 0, 1, 1]), np.zeros((4, 30), bool)
    member = Membership(
        train=np.tile(~test, (4, 1)), forget=forget, heldout=none, seed=np.arange(4), split=split,
        block=np.zeros(4, int), shadow=np.zeros(4, bool),
    )  # fmt: skip
    case = SimpleNamespace(
        unlearned=logits, target=np.ones(4, bool), membership=member, data=SimpleNamespace(part=test.astype(np.uint8))
    )
    parts = utilities(case, {"unit": np.zeros(4, int), "split": split})
    loss = nll(logits)
    for name, rows in (("nll_retain", member.retain), ("nll_test", np.tile(test, (4, 1)))):
        expected = [loss[m, rows[m]].mean() for m in range(4)]
        np.testing.assert_allclose(parts[name].value[0], expected)
        assert (parts[name].standard.direction, parts[name].standard.deciding) == (1, False)
        assert parts[name].influence[0].sum(axis=1) == pytest.approx(0, abs=1e-12)
    forgotten = utilities(case, {"unit": np.zeros(4, int), "split": split}, forgotten=True)
    assert sorted(forgotten) == ["nll_forget", *sorted(parts)]
    np.testing.assert_allclose(forgotten["nll_forget"].value[0], [loss[m, forget[m]].mean() for m in range(4)])
    assert (forgotten["nll_forget"].standard.direction, forgotten["nll_forget"].standard.deciding) == (-1, True)
    assert utilities(SimpleNamespace(unlearned=np.zeros((4, 30, 10)), target=case.target), {}) == {}
