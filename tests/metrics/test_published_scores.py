"""Scores and readings in the place of logits: their file, rows and effects by hand, coverage of intervals."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.effects import OF_ITSELF, OF_SAMPLES
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published as metric
from unlearning_audit.metrics import texts


def rows_of(of: Published, fpr=()):
    return metric.rows(SimpleNamespace(published=of), SimpleNamespace(fpr=fpr))


def effects_of(of: Published):
    return metric.effects(SimpleNamespace(published=of))


def published(forget, retain=None, **changes) -> Published:
    """Models that forgot samples, kept others (none) and never saw the rest; one attack and one reading, both 0."""
    forget = np.atleast_2d(np.asarray(forget, bool))
    retain = np.zeros_like(forget) if retain is None else np.atleast_2d(np.asarray(retain, bool))
    readings = changes.pop("readings", ["prob"])
    parts = {
        "forget": forget, "heldout": ~forget & ~retain, "retain": retain, "test": np.zeros(forget.shape[1], bool),
        "samples": np.arange(forget.shape[1]).astype("U"), "attacks": np.array(["loss"]),
        "scores": np.zeros((1, *forget.shape)), "readings": np.array(readings),
        "values": np.zeros((len(readings), *forget.shape)), "direction": np.ones(len(readings), int),
        "share": np.ones(len(readings), bool), "comparable": np.array(["loss", *readings]), "fair": False,
    }  # fmt: skip
    return Published(**parts | changes)


HALF = np.arange(200)[None] < 100


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize("models", [0, 2])
def test_a_model_that_forgot_nothing_is_refused(models):
    forget = np.zeros((models, 200), bool)
    forget[:1, :9] = True
    with pytest.raises(ValueError, match="no forgotten sample in some model; leave it out"):
        _ = published(forget).membership


# ---------------------------------------------------------------- scores and readings


def two_models(**changes):
    """The first model forgot samples 0 and 1 and has never seen 2 and 3, the second the other way; both kept 4 and 5,
    and 6 is of the test part. The first attack and some readings are unknown of some samples."""
    nan, forget = np.nan, np.array([[1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0]], bool)
    parts = {
        "heldout": forget[::-1], "test": np.arange(7) == 6, "attacks": np.array(["b", "a"]),
        "scores": np.array([
            [[0.9, 0.5, 0.6, 0.1, 0, 0, 0], [nan, nan, 0.2, 0.7, 0, 0, 0]],
            [[0.9, 0.5, 0.6, 0.1, 0, 0, 0], [0.3, 0.8, 0.2, 0.7, 0, 0, 0]],
        ]),
        "readings": ["r"], "comparable": np.array(["a", "r"]),
        "values": np.array([[[0.2, nan, 0.1, 0.3, 0.4, 0.6, 1.0], [nan, nan, 0.4, 0.8, 0.8, nan, 0.5]]]),
    }  # fmt: skip
    return published(forget, np.tile([0, 0, 0, 0, 1, 1, 0], (2, 1)), **parts | changes)


@pytest.mark.parametrize("share", [True, False])
def test_rows_of_two_models_by_hand(share):
    rows = rows_of(two_models(share=np.array([share])), (0.5, 0.4))
    # 3 of 4 pairs of the first model and 1 of 4 of the second; one held-out sample of two may lie above the threshold
    expected = {
        ("auc_b", "", None, 0): np.nan, ("auc_a", "", None, 4): (0.75 + 0.25) / 2,
        ("tpr_at_fpr_a", "", 0.5, 4): (1 + 0.5) / 2, ("tpr_at_fpr_a", "", 0.4, 2): np.nan,
        ("reading_r", "forget", None, 3): (0.2 + 0.6) / 2, ("reading_r", "retain", None, 2): (0.5 + 0.8) / 2,
        ("reading_r", "test", None, 1): (1 + 0.5) / 2,
    }  # fmt: skip
    assert [(row.metric, row.role, row.rate, row.n) for row in rows] == list(expected)
    np.testing.assert_allclose([row.value for row in rows], list(expected.values()))
    assert rows[0].note == "some model has no score on one of the two sides"
    assert rows[2].note == "no interval: the threshold is that of these held-out samples"
    assert rows[3].note == "2 held-out samples do not resolve a false positive rate of 0.4"
    reading = rows[4]
    if share:
        assert reading.ci_low < reading.value < reading.ci_high
    else:
        assert np.isnan([reading.ci_low, reading.ci_high]).all()
        assert reading.note == "no interval: values are not between 0 and 1"


def test_what_decides_of_two_models_by_hand():
    parts = metric.effects(SimpleNamespace(published=two_models()))
    values = {"auc": [0.75, 0.25], "memory": [0.2, 0.6], "kept": [0.5, 0.8], "elsewhere": [1.0, 0.5]}
    assert list(parts) == list(values)
    for name, value in values.items():
        np.testing.assert_allclose(parts[name].value, [value])
        assert parts[name].names == (("a",) if name == "auc" else ("r",))
        assert parts[name].rule.deciding == (name in ("auc", "memory"))
        assert parts[name].unit[0] != parts[name].unit[1]
        np.testing.assert_array_equal(parts[name].split, [0, 0])
        np.testing.assert_array_equal(parts[name].index, np.arange(7))
    falling = effects_of(two_models(direction=np.array([-1])))  # as more is remembered
    np.testing.assert_allclose(falling["memory"].value, [[0.8, 0.4]])
    for direction, share in ((0, True), (1, False)):
        assert list(effects_of(two_models(direction=np.array([direction]), share=np.array([share])))) == ["auc"]
    both = two_models(comparable=np.array(["a", "b", "r"]))  # of the first attack one model has no held-out scores
    assert list(effects_of(both)) == ["memory", "kept", "elsewhere"]
    for fair, expected in ((True, (0.5, OF_SAMPLES)), (False, (math.nan, OF_ITSELF))):  # theory needs a random draw
        rule = effects_of(published(HALF, fair=fair))["auc"].rule
        np.testing.assert_equal((rule.ideal, rule.chance), expected)


@pytest.mark.parametrize("wrong", [0, 5, 6])
def test_the_step_aggregates_and_printed_numbers_are_rows(wrong):
    numbers = [{"quantity": f"q{i}", "printed": 0.5, "recomputed": 0.25, "agrees": i >= wrong} for i in range(8)]
    numbers += [{"quantity": "unknown", "printed": 1.0, "recomputed": None, "agrees": None}]
    one = {"name": "privacy", "value": 0.5, "ci_low": 0.4, "ci_high": 0.7, "n": 9, "formula": "harmonic mean"}
    words = {"agreements": json.dumps(numbers), "aggregates": json.dumps([one])}
    rows = {row.metric: row for row in rows_of(published(HALF, step=0, **words))}
    assert rows["unlearning_step"].value == 0
    row = rows["aggregate_privacy"]
    assert (row.value, row.ci_low, row.ci_high, row.n, row.note) == (0.5, 0.4, 0.7, 9, "harmonic mean")
    row = rows["printed_numbers"]
    assert (row.value, row.n) == (1 - wrong / 8, 8)
    assert row.note.count("is 0.5, recomputed 0.25") == min(wrong, 5)
    assert row.note.endswith("; and 1 more") == (wrong > 5)
    assert {row.metric for row in rows_of(published(HALF))} == {"auc_loss", "reading_prob"}


# ---------------------------------------------------------------- readings of texts


def test_tokens_of_two_samples_are_read_by_hand():
    """The second sample has one token; the third row is a view, which has no reading of its own."""
    logp = np.log([[[0.5, 0.125], [0.2, np.nan], [0.9, 0.9]]])
    tokens = np.stack([logp, logp, logp, np.where(np.isnan(logp), np.nan, 0.0)], axis=-1)
    data = SimpleNamespace(part=np.array([0, 1, 2]), views=lambda kind: np.zeros((3, 0), int))
    readings = texts.text_readings(tokens, data, [])
    np.testing.assert_allclose(readings["probability"], [[0.25, 0.2]])
    np.testing.assert_allclose(readings[texts.LOSS], -np.log([[0.25, 0.2]]))
    np.testing.assert_allclose(readings[texts.MIN_K], np.log([[0.125, 0.2]]))


def test_wrong_answers_are_compared_by_hand():
    """The wrong answers of the first sample are rows 2 and 3, its paraphrase row 4; the second has one wrong answer."""
    mean = np.log([[0.5, 0.3, 0.2, 0.1, 0.4]])
    views = {"perturbed": np.array([[2, 3], [3, -1], *[[-1, -1]] * 3]), "paraphrase": np.array([[4], *[[-1]] * 4])}
    columns = texts.answer_readings(mean, SimpleNamespace(views=views.get))
    ratio = np.array([math.sqrt(0.02) / 0.4, 1 / 3])
    expected = {
        texts.RATIO: np.log(ratio), "truth_ratio": ratio, "truth_ratio_utility": 1 - ratio,
        "truth_ratio_probability": 1 / (1 + ratio), "choice_accuracy": [1, 1], "choice_probability": [0.5 / 0.8, 0.75],
    }  # fmt: skip
    assert columns.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(columns[name][0, :2], value)
        assert np.isnan(columns[name][0, 2:]).all()
    assert texts.answer_readings(mean, SimpleNamespace(views=lambda kind: np.zeros((5, 0), int))) == {}


def models(loss, forget=(1, 1, 0, 0), **changes) -> Published:
    """Models with a ``loss`` float [models, samples] that forgot the first two of four samples and kept the others."""
    loss = np.array(loss, np.float64)
    forget = np.broadcast_to(np.array(forget, bool), loss.shape)
    how = {"readings": [texts.LOSS], "values": loss[None]} | changes
    return published(forget, **{"retain": ~forget} | how)


def compared(audited, retrained=None):
    return {(line.metric, line.role): line for line in texts.published_rows(audited, retrained, audited.data)}


def test_loss_and_perplexity_are_those_of_each_side_and_no_less_than_nothing():
    table = compared(models([[1.0, 3.0, 5.0, 5.0], [2.0, 2.0, 7.0, 7.0]]))
    assert {place: line.value for place, line in table.items()} == pytest.approx({
        ("nll", "forget"): 2, ("perplexity", "forget"): math.exp(2),
        ("nll", "retain"): 6, ("perplexity", "retain"): math.exp(6),
    })  # fmt: skip
    table = compared(models([[0.01, 9.0, 0.01, 9.0]]))
    assert (table["nll", "forget"].ci_low, table["perplexity", "forget"].ci_low) == (0, 1)
    assert table["nll", "forget"].ci_high > 9


def test_retrained_models_are_partners_in_turn_of_those_that_forgot_the_same():
    """The first, the second and again the first; the third retrained model is one of other samples."""
    audited = models(np.tile([[10.0], [20.0], [30.0]], 4))
    sides = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], bool)
    for order in ([0, 1, 2], [2, 0, 1]):
        retrained = models(np.tile([[1.0], [3.0], [100.0]], 4)[order], sides[order])
        assert compared(audited, retrained)["nll_gap", "forget"].value == pytest.approx((9 + 17 + 29) / 3)
    assert texts._partners(*[models(np.ones((4, 4)), sides[[0, 2, 0, 2]])] * 2).tolist() == [0, 1, 2, 3]
    other, elsewhere = models([[1.0] * 4], (1, 0, 0, 1)), models([[1.0] * 4], samples=np.array(["a", "b", "c", "d"]))
    for retrained in (None, other, elsewhere):
        assert ("nll_gap", "forget") not in compared(audited, retrained)


def test_utility_is_the_harmonic_mean_of_its_terms():
    """Of two retained samples .5, .25 and .8; of two of the test part .4 of all choices, .25 and .8."""
    names, at = [texts.LOSS, *texts.RETAIN_TERMS, texts.TEST_TERMS[0]], np.arange(6)[None]
    values = np.array([1.0, 0.5, 0.25, 0.8, 0.4])[:, None, None] * np.ones(6)
    data, sides = SimpleNamespace(part=(at[0] > 3) * 1, group=None), (at < 2, (at > 1) & (at < 4))
    row, *_ = (
        line
        for terms in (4, 5)  # without one of them there is no mean
        for line in texts.published_rows(published(*sides, readings=names[:terms], values=values[:terms],
                                                   heldout=at > 9, test=at[0] > 3), None, data)
        if line.metric == "model_utility"
    )  # fmt: skip
    assert row.value == pytest.approx(6 / (1 / 0.5 + 1 / 0.25 + 1 / 0.8 + 1 / 0.4 + 1 / 0.25 + 1 / 0.8))
    assert row.n == 4


def test_models_and_retrained_ones_are_compared_where_both_have_values():
    """One of four pairs of forgotten and held-out samples is in order after retraining, three before; of truth ratios
    one of two forgotten samples lies beyond both of the retrained models."""

    def reading(least, ratio):
        values = np.array([[1.0] * 4, least, ratio])[:, None]
        return published([1, 1, 0, 0], readings=[texts.LOSS, texts.MIN_K, texts.RATIO], values=values)

    audited, retrained = reading([4.0, 2, 3, 1], [5.0, 2, 9, 9]), reading([3.0, 1, 2, 4], [1.0, 3, 9, 9])
    rows = compared(audited, retrained)
    assert rows["privleak", ""].value == pytest.approx(100 * (0.25 / 0.75 - 1))
    assert (rows["truth_ratio_ks", "forget"].value, rows["forget_quality", "forget"].value) == (0.5, 1)
    best = reading([3.0, 4, 1, 2], [1.0, 3, 9, 9])
    assert "check the splits" in compared(audited, best)["privleak", ""].note
    nothing = compared(reading([4.0, 2, 3, 1], [np.nan] * 4), retrained)
    assert {("truth_ratio_ks", "forget"), ("forget_quality", "forget")}.isdisjoint(nothing)
