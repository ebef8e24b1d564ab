"""What readings of texts tell together, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published, texts

SAMPLES = 4


def models(loss, forget=None, **changes) -> Published:
    """Models with a ``loss`` float [models, samples] that forgot the first two samples and kept the others."""
    loss = np.array(loss, np.float64)
    forget = np.tile(np.arange(SAMPLES) < 2, (len(loss), 1)) if forget is None else np.array(forget)
    parts = {
        "forget": forget, "heldout": np.zeros_like(forget), "retain": ~forget, "test": np.zeros(SAMPLES, bool),
        "samples": np.arange(SAMPLES).astype("U"), "attacks": np.array([], "U"),
        "scores": np.zeros((0, *loss.shape)), "readings": np.array([texts.LOSS]), "values": loss[None],
        "direction": np.zeros(1, int), "share": np.zeros(1, bool), "comparable": np.array([], "U"),
    }  # fmt: skip
    return Published(**parts | changes)


@pytest.mark.parametrize(("fair", "ideal"), [(True, 0.5), (False, math.nan)])
def test_an_attack_tells_nothing_at_one_half_where_chance_chose_the_samples(fair, ideal):
    sides = {"heldout": np.array([[False, False, True, True]]), "retain": np.zeros((1, SAMPLES), bool)}
    attack = {"attacks": np.array(["loss"]), "scores": np.array([[[4.0, 2.0, 3.0, 1.0]]])}
    part = published.parts(models([[0.0] * SAMPLES], fair=fair, **sides, **attack, comparable=np.array(["loss"])))[
        "auc"
    ]
    assert part.value.tolist() == [[0.75]]
    np.testing.assert_equal(part.standard.ideal, ideal)


def test_tokens_of_two_samples_are_read_by_hand():
    """The second sample has one token; the third row is a view, which has no reading of its own."""
    logp = np.log([[[0.5, 0.125], [0.2, np.nan], [0.9, 0.9]]])
    tokens = np.stack([logp, logp, logp, np.where(np.isnan(logp), np.nan, 0.0)], axis=-1)
    data = SimpleNamespace(part=np.array([0, 1, 2]), views=lambda kind: np.zeros((3, 0), int))
    readings = texts.text_readings(tokens, data, [])
    np.testing.assert_allclose(readings["probability"], [[0.25, 0.2]])
    np.testing.assert_allclose(readings[texts.LOSS], -np.log([[0.25, 0.2]]))
    np.testing.assert_allclose(readings[texts.LEAST], np.log([[0.125, 0.2]]))


def test_a_rate_is_resolved_by_one_held_out_sample_in_so_many():
    score, forget = np.array([[5.0, 2.0, 4.0, 3.0, 1.0, 0.0]]), np.array([[True, True, False, False, False, False]])
    found, coarse = (published._tpr(score, forget, ~forget, rate) for rate in (0.25, 0.24))
    assert (found.value, found.n) == (0.5, 2)
    assert np.isnan(coarse.value)


def values(audited, retrained=None):
    lines = texts.of(audited, retrained, audited.table()[0])
    return {(line.metric, line.role): line.value for line in lines}


def test_loss_and_perplexity_are_those_of_each_side():
    table = values(models([[1.0, 3.0, 5.0, 5.0], [2.0, 2.0, 7.0, 7.0]]))
    assert table == pytest.approx({
        ("nll", "forget"): 2, ("perplexity", "forget"): math.exp(2),
        ("nll", "retain"): 6, ("perplexity", "retain"): math.exp(6),
    })  # fmt: skip


def test_the_interval_of_a_loss_of_few_samples_ends_at_0():
    audited = models([[0.01, 9.0, 0.01, 9.0]])
    lines = {(line.metric, line.role): line for line in texts.of(audited, None, audited.table()[0])}
    assert (lines["nll", "forget"].ci_low, lines["perplexity", "forget"].ci_low) == (0, 1)
    assert lines["nll", "forget"].ci_high > 9


def test_retrained_models_are_partners_in_turn_of_those_that_forgot_the_same():
    """The first, the second and again the first; the third retrained model is one of other samples."""
    audited = models(np.tile([[10.0], [20.0], [30.0]], SAMPLES))
    sides = np.array([[True, True, False, False]] * 2 + [[False, True, True, False]])
    retrained = models(np.tile([[1.0], [3.0], [100.0]], SAMPLES), sides)
    assert values(audited, retrained)["nll_gap", "forget"] == pytest.approx((9 + 17 + 29) / 3)
    swapped = models(retrained.values[0][[2, 0, 1]], sides[[2, 0, 1]])
    assert values(audited, swapped)["nll_gap", "forget"] == pytest.approx((9 + 17 + 29) / 3)


def test_without_a_retrained_model_of_the_same_samples_there_is_no_gap():
    audited = models([[1.0] * SAMPLES, [2.0] * SAMPLES])
    other = models([[1.0] * SAMPLES], [[True, False, False, True]])
    elsewhere = models([[1.0] * SAMPLES], samples=np.array(["a", "b", "c", "d"]))
    for retrained in (None, other, elsewhere):
        assert ("nll_gap", "forget") not in values(audited, retrained)
    assert ("nll_gap", "retain") in values(audited, models([[1.0] * SAMPLES]))


def test_wrong_answers_are_compared_by_hand():
    """The wrong answers of the first sample are rows 2 and 3, its paraphrase row 4; the second has one wrong answer."""
    mean = np.log([[0.5, 0.3, 0.2, 0.1, 0.4]])
    views = {"perturbed": np.array([[2, 3], [3, -1], *[[-1, -1]] * 3]), "paraphrase": np.array([[4], *[[-1]] * 4])}
    columns = texts.of_views(mean, SimpleNamespace(views=views.get))
    ratio = np.array([math.sqrt(0.02) / 0.4, 1 / 3])
    expected = {
        texts.RATIO: np.log(ratio), "truth_ratio": ratio, "truth_ratio_utility": 1 - ratio,
        "truth_ratio_probability": 1 / (1 + ratio), "choice_accuracy": [1, 1], "choice_probability": [0.5 / 0.8, 0.75],
    }  # fmt: skip
    assert columns.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(columns[name][0, :2], value)
        assert np.isnan(columns[name][0, 2:]).all()
    assert texts.of_views(mean, SimpleNamespace(views=lambda kind: np.zeros((5, 0), int))) == {}


def test_utility_is_the_harmonic_mean_of_its_terms():
    """Of two retained samples .5, .25 and .8; of two of the test part .4 of all choices, .25 and .8."""
    names, at = (texts.LOSS, *texts.RETAIN_TERMS, texts.TEST_TERMS[0]), np.arange(6)
    parts = {
        "forget": at[None] < 2, "heldout": at[None] > 9, "retain": (at[None] > 1) & (at < 4), "test": at > 3,
        "samples": at.astype("U"), "scores": np.zeros((0, 1, 6)),
        "readings": np.array(names), "direction": np.zeros(5, int), "share": np.zeros(5, bool),
        "values": np.array([1.0, 0.5, 0.25, 0.8, 0.4])[:, None, None] * np.ones(6),
    }  # fmt: skip
    data = SimpleNamespace(part=(at > 3) * 1, group=None)
    (row,) = [line for line in texts.of(models([[1.0] * 6], **parts), None, data) if line.metric == "model_utility"]
    assert row.value == pytest.approx(6 / (1 / 0.5 + 1 / 0.25 + 1 / 0.8 + 1 / 0.4 + 1 / 0.25 + 1 / 0.8))
    assert row.n == 4
    parts |= {name: parts[name][:4] for name in ("readings", "values", "direction", "share")}
    assert "model_utility" not in [line.metric for line in texts.of(models([[1.0] * 6], **parts), None, data)]


def test_models_and_retrained_ones_are_compared_where_both_have_values():
    """One of four pairs of forgotten and held-out samples is in order after retraining, three before; of truth ratios
    one of two forgotten samples lies beyond both of the retrained models."""
    sides = {"heldout": np.array([[False, False, True, True]]), "retain": np.zeros((1, SAMPLES), bool)}
    names = {"readings": np.array([texts.LOSS, texts.LEAST, texts.RATIO]), "direction": np.zeros(3, int)}
    names["share"] = np.zeros(3, bool)
    least, ratio = np.array([[4.0, 2, 3, 1], [3.0, 1, 2, 4]]), np.array([[5.0, 2, 9, 9], [1.0, 3, 9, 9]])
    audited, retrained = (
        models([[1.0] * 4], values=np.stack([np.ones((1, 4)), least[i : i + 1], ratio[i : i + 1]]), **sides, **names)
        for i in (0, 1)
    )
    rows = values(audited, retrained)
    assert rows["privleak", ""] == pytest.approx(100 * (0.25 / 0.75 - 1))
    assert rows["truth_ratio_ks", "forget"] == 0.5
    assert rows["forget_quality", "forget"] == 1
    best = models(
        [[1.0] * 4], values=np.stack([np.ones((1, 4)), np.array([[3.0, 4, 1, 2]]), ratio[1:]]), **sides, **names
    )
    (line,) = [line for line in texts.of(audited, best, audited.table()[0]) if line.metric == "privleak"]
    assert "check the splits" in line.note
    nothing = models(
        [[1.0] * 4], values=np.stack([np.ones((1, 4)), least[:1], np.full((1, 4), np.nan)]), **sides, **names
    )
    assert {"truth_ratio_ks", "forget_quality"}.isdisjoint(name for name, _ in values(nothing, retrained))
