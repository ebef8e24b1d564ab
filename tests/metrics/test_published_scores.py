"""Scores and readings in the place of logits: their file, rows and contributions by hand, coverage of intervals."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from unlearning_audit.evaluation.contributions import OF_ITSELF, OF_SAMPLES
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import published as metric
from unlearning_audit.stats import paired
from unlearning_audit.store.files import ArtifactError


def population(rng, models=1, samples=200, shift=1.0, fair=False, **changes):
    """Half of the samples forgotten, the other half held out; one attack and one reading."""
    forget = np.tile(np.arange(samples) < samples // 2, (models, 1))
    score = rng.normal(size=(1, models, samples)) + shift * forget
    reading = np.where(forget, rng.uniform(size=(1, models, samples)), np.nan)
    parts = {
        "forget": forget, "heldout": ~forget, "retain": np.zeros_like(forget), "test": np.zeros(samples, bool),
        "samples": np.arange(samples).astype("U"), "attacks": np.array(["loss"]), "scores": score,
        "readings": np.array(["prob"]), "values": reading, "direction": np.array([1]), "share": np.array([True]),
        "comparable": np.array(["loss", "prob"]), "fair": fair,
    }  # fmt: skip
    return Published(**parts | changes)


@pytest.mark.parametrize("models", [0, 2])
def test_a_model_that_forgot_nothing_is_refused(models):
    forget = np.zeros((models, 200), bool)
    forget[:1, :9] = True
    with pytest.raises(ValueError, match="no forgotten sample in some model; leave it out"):
        population(np.random.default_rng(0), models, forget=forget).table()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"heldout": np.ones((1, 200), bool)}, "'forget' shares samples"),
        ({"retain": np.arange(200)[None] == 3}, "'forget' shares samples"),
        ({"retain": np.arange(200)[None] == 150}, "'forget' shares samples"),
        ({"direction": np.array([2])}, "'direction' must be 1, -1, or 0 where neither is so"),
        ({"scores": np.full((1, 1, 200), np.inf)}, "'scores' has infinite values"),
        ({"agreements": "{"}, "'agreements' is not JSON"),
        ({"values": np.zeros((2, 1, 200))}, "'values' has shape"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, change, problem):
    population(np.random.default_rng(0), **change).write(tmp_path / "published.npz")
    with pytest.raises(ArtifactError, match=problem):
        Published.read(tmp_path / "published.npz")


def test_auc_and_means_are_those_of_numpy_and_sklearn():
    whole = population(np.random.default_rng(1))
    rows = {(row.metric, row.role): row for row in metric.of(whole, (0.01,))}
    forget = whole.forget[0]
    assert rows["auc_loss", ""].n == 200
    assert rows["auc_loss", ""].value == pytest.approx(roc_auc_score(forget, whole.scores[0, 0]), abs=1e-12)
    assert rows["reading_prob", "forget"].value == pytest.approx(whole.values[0, 0, forget].mean(), abs=1e-12)
    cut = np.sort(whole.scores[0, 0, ~forget])[-2]  # one of a hundred held-out samples may lie above
    assert rows["tpr_at_fpr_loss", ""].value == pytest.approx((whole.scores[0, 0, forget] > cut).mean(), abs=1e-12)
    assert "one model" in rows["auc_loss", ""].note


def two_models(**changes):
    """The first model forgot samples 0 and 1 and has never seen 2 and 3, the second the other way; both kept 4 and 5,
    and 6 is of the test part. The first attack and some readings are unknown of some samples."""
    nan, sides = np.nan, np.arange(7) < np.array([[2], [4]])
    forget = np.stack([sides[0], sides[1] & ~sides[0]])
    parts = {
        "forget": forget, "heldout": forget[::-1], "retain": np.tile((np.arange(7) > 3) & (np.arange(7) < 6), (2, 1)),
        "test": np.arange(7) == 6, "attacks": np.array(["b", "a"]),
        "scores": np.array([
            [[0.9, 0.5, 0.6, 0.1, 0, 0, 0], [nan, nan, 0.2, 0.7, 0, 0, 0]],
            [[0.9, 0.5, 0.6, 0.1, 0, 0, 0], [0.3, 0.8, 0.2, 0.7, 0, 0, 0]],
        ]),
        "readings": np.array(["r"]), "comparable": np.array(["a", "r"]),
        "values": np.array([[[0.2, nan, 0.1, 0.3, 0.4, 0.6, 1.0], [nan, nan, 0.4, 0.8, 0.8, nan, 0.5]]]),
    }  # fmt: skip
    return population(np.random.default_rng(0), 2, 7, **parts | changes)


@pytest.mark.parametrize("share", [True, False])
def test_rows_of_two_models_by_hand(share):
    rows = metric.of(two_models(share=np.array([share])), (0.5, 0.4))
    assert [(row.metric, row.role, row.rate, row.n) for row in rows] == [
        ("auc_b", "", None, 0), ("auc_a", "", None, 4), ("tpr_at_fpr_a", "", 0.5, 4), ("tpr_at_fpr_a", "", 0.4, 2),
        ("reading_r", "forget", None, 3), ("reading_r", "retain", None, 2), ("reading_r", "test", None, 1),
    ]  # fmt: skip
    # 3 of 4 pairs of the first model and 1 of 4 of the second; one held-out sample of two may lie above the threshold
    expected = [np.nan, (0.75 + 0.25) / 2, (1 + 0.5) / 2, np.nan, (0.2 + 0.6) / 2, (0.5 + 0.8) / 2, (1 + 0.5) / 2]
    np.testing.assert_allclose([row.value for row in rows], expected)
    assert rows[0].note == "some model has no score on one of the two sides"
    assert rows[2].note == "no interval: the threshold is that of these held-out samples"
    assert rows[3].note == "2 held-out samples do not resolve a false positive rate of 0.4"


def test_what_decides_of_two_models_by_hand():
    parts = metric.parts(two_models())
    values = {"auc": [0.75, 0.25], "memory": [0.2, 0.6], "kept": [0.5, 0.8], "elsewhere": [1.0, 0.5]}
    assert list(parts) == list(values)
    for name, value in values.items():
        np.testing.assert_allclose(parts[name].value, [value])
        assert parts[name].names == (("a",) if name == "auc" else ("r",))
        assert parts[name].standard.deciding == (name in ("auc", "memory"))
        assert parts[name].unit[0] != parts[name].unit[1]
        np.testing.assert_array_equal(parts[name].split, [0, 0])
        np.testing.assert_array_equal(parts[name].index, np.arange(7))
    falling = metric.parts(two_models(direction=np.array([-1])))  # as more is remembered
    np.testing.assert_allclose(falling["memory"].value, [[0.8, 0.4]])
    for direction, share in ((0, True), (1, False)):
        assert list(metric.parts(two_models(direction=np.array([direction]), share=np.array([share])))) == ["auc"]
    both = two_models(comparable=np.array(["a", "b", "r"]))  # of the first attack one model has no held-out scores
    assert list(metric.parts(both)) == ["memory", "kept", "elsewhere"]


def test_a_mean_has_an_interval_where_values_are_shares():
    rows = {}
    for share in (True, False):
        whole = population(np.random.default_rng(8), share=np.array([share]))
        (rows[share],) = (row for row in metric.of(whole, ()) if row.metric == "reading_prob")
    assert rows[True].ci_low < rows[True].value < rows[True].ci_high
    assert rows[True].value == pytest.approx(rows[False].value, abs=1e-12)
    assert np.isnan([rows[False].ci_low, rows[False].ci_high]).all()
    assert rows[False].note == "no interval: values are not between 0 and 1"


def test_intervals_of_one_model_cover_the_true_auc():
    """AUC .76 in the population of samples; 600 draws of them."""
    from scipy.stats import norm

    rng, true = np.random.default_rng(2), norm.cdf(1 / np.sqrt(2))
    inside = []
    for _ in range(600):
        row = metric.of(population(rng, samples=120), ())[0]
        inside.append(row.ci_low <= true <= row.ci_high)
    assert np.mean(inside) >= 0.93


def test_two_retrained_models_of_the_same_difficulty_differ_by_chance_only():
    """The paired interval of a difference covers 0, though both read far from .5: the difficulty is shared."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(300):
        base = rng.normal(size=(1, 1, 120))
        both = []
        for _ in range(2):
            retrained = population(rng, samples=120, shift=0)
            score = base - 0.7 * retrained.forget + 0.5 * rng.normal(size=base.shape)
            both.append(metric.parts(population(rng, samples=120, scores=score))["auc"])
        stacked = {
            name: np.concatenate([getattr(part, name) for part in both]) for name in ("value", "influence", "imagined")
        }
        numbers = paired.distances(**stacked, unit=both[0].unit, split=both[0].split).of(np.array([[1.0, -1.0]]))
        inside.append(abs(numbers.value[0]) <= numbers.half_widths()[0])
    assert np.mean(inside) >= 0.93


def test_theory_holds_only_where_coins_chose():
    rng = np.random.default_rng(5)
    by_fate, by_coin = (metric.parts(population(rng, fair=fair))["auc"].standard for fair in (False, True))
    assert np.isnan(by_fate.ideal)
    assert by_coin.ideal == 0.5
    assert (by_fate.chance, by_coin.chance) == (OF_ITSELF, OF_SAMPLES)


@pytest.mark.parametrize("wrong", [0, 5, 6])
def test_the_step_aggregates_and_printed_numbers_are_rows(wrong):
    numbers = [{"quantity": f"q{i}", "printed": 0.5, "recomputed": 0.25, "agrees": i >= wrong} for i in range(8)]
    numbers += [{"quantity": "unknown", "printed": 1.0, "recomputed": None, "agrees": None}]
    one = {"name": "privacy", "value": 0.5, "ci_low": 0.4, "ci_high": 0.7, "n": 9, "formula": "harmonic mean"}
    words = {"agreements": json.dumps(numbers), "aggregates": json.dumps([one])}
    rows = {row.metric: row for row in metric.of(population(np.random.default_rng(0), step=0, **words), ())}
    assert rows["unlearning_step"].value == 0
    row = rows["aggregate_privacy"]
    assert (row.value, row.ci_low, row.ci_high, row.n, row.note) == (0.5, 0.4, 0.7, 9, "harmonic mean")
    row = rows["printed_numbers"]
    assert (row.value, row.n) == (1 - wrong / 8, 8)
    assert row.note.count("is 0.5, recomputed 0.25") == min(wrong, 5)
    assert row.note.endswith("; and 1 more") == (wrong > 5)
    assert {"unlearning_step", "printed_numbers"}.isdisjoint(
        row.metric for row in metric.of(population(np.random.default_rng(0)), ())
    )
