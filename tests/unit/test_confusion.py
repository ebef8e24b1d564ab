"""Interclass confusion: hand-made confusions whose score is known."""

import numpy as np
import pytest
from unlearning_audit.adversary.case import Case
from unlearning_audit.artifacts.arrays import Data, Logits, Membership
from unlearning_audit.metrics import confusion
from unlearning_audit.stats import crossed, paired

import metric_calls as call


def confused(models=3, samples=60):
    """Classes 0 and 1 swapped on half of their samples, differently in each block; class 2 is left alone."""
    rng = np.random.default_rng(0)
    y = np.arange(samples) % 3
    forget = np.stack([rng.permutation(samples) < samples // 2 for _ in range(models)]) & (y < 2)
    return {
        "forget": forget,
        "trained": np.where(forget, 1 - y, y),
        "y": y,
        "split": np.zeros(models, int),
        "block": np.arange(models),
    }


def logits_of(guess):
    return np.eye(4, dtype=np.float32)[guess]


def score(guess, **given):
    rows = confusion.evaluate(logits=logits_of(guess), **given)
    assert [row.metric for row in rows] == ["ic_error", "ic_score"]
    error, score = rows
    assert score.value == pytest.approx(1 - error.value, abs=1e-15)
    assert (score.ci_low, score.ci_high) == pytest.approx((1 - error.ci_high, 1 - error.ci_low))
    assert 0 <= score.ci_low <= score.value <= score.ci_high <= 1
    assert score.n == given["forget"].any(axis=0).sum()
    return score


def test_a_predictor_of_the_confused_label_scores_zero_and_of_the_true_label_one():
    given = confused()
    remembers, forgot = score(given["trained"], **given), score(np.tile(given["y"], (3, 1)), **given)
    assert remembers.value == 0
    assert remembers.ci_high > 0, "some doubt remains where all samples agree"
    assert forgot.value == 1
    assert forgot.ci_low < 1


def test_third_classes_are_mistakes_but_no_memory_of_the_confusion():
    given = confused()
    assert score(np.full(given["forget"].shape, 2), **given).value == 1
    assert score(np.full(given["forget"].shape, 3), **given).value == 1


def test_samples_outside_the_confused_set_do_not_count():
    given = confused()
    guess = np.where(given["forget"], given["y"], 1 - given["y"])
    assert score(guess, **given).value == 1


def test_score_is_the_mean_over_models_of_the_rate():
    given = confused()
    guess = np.tile(given["y"], (3, 1))
    for m, kept in enumerate((3, 0, 7)):
        rows = np.flatnonzero(given["forget"][m])[:kept]
        guess[m, rows] = given["trained"][m, rows]
    sizes = given["forget"].sum(axis=1)
    assert score(guess, **given).value == pytest.approx(1 - np.mean(np.array([3, 0, 7]) / sizes))


def test_always_one_class_gives_half():
    y = np.arange(40) % 2
    given = {"forget": np.ones((2, 40), bool), "trained": np.tile(1 - y, (2, 1)), "y": y}
    found = score(np.zeros((2, 40), int), **given, split=np.zeros(2, int), block=np.zeros(2, int))
    assert found.value == 0.5


def test_a_diverged_model_remembers_nothing_and_one_model_has_a_note():
    given = confused(models=1)
    rows = confusion.evaluate(logits=np.full((1, 60, 4), np.nan, np.float32), **given)
    assert rows[0].value == 0
    assert rows[0].note == crossed.ONE_MODEL


def test_labels_may_be_shared_by_all_models():
    given = confused(models=1)
    forget = np.tile(given["forget"], (3, 1))
    guess = np.tile(given["trained"], (3, 1))
    guess[2] = given["y"]
    shared = {"forget": forget, "trained": given["trained"][0], "y": given["y"]}
    found = score(guess, **shared, split=np.zeros(3, int), block=np.zeros(3, int))
    assert found.value == pytest.approx(1 / 3)


def test_interval_covers_the_truth():
    """Each sample keeps its confusion with a probability of its own, in all models that confused it."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        given = confused(models=6, samples=120)
        given["block"] = np.zeros(6, int)
        given["forget"] = np.tile(given["forget"][:1], (6, 1))
        given["trained"] = np.tile(given["trained"][:1], (6, 1))
        keeps = rng.random((6, 120)) < rng.beta(1, 3, 120)  # mean 1/4
        found = score(np.where(keeps, given["trained"], given["y"]), **given)
        inside += found.ci_low <= 0.75 <= found.ci_high
    assert inside / 300 >= 0.93


def test_wrong_inputs_are_named():
    given = confused()
    logits = logits_of(given["trained"])
    with pytest.raises(ValueError, match="forget must be"):
        confusion.evaluate(logits=logits, **{**given, "forget": given["forget"][:, :-1]})
    with pytest.raises(ValueError, match="trained must be"):
        confusion.evaluate(logits=logits, **{**given, "trained": given["trained"][:, :-1]})
    with pytest.raises(ValueError, match="true label"):
        confusion.evaluate(logits=logits, **{**given, "trained": np.tile(given["y"], (3, 1))})


def test_rows_compare_what_was_taught_with_the_labels_of_the_data(tmp_path):
    """Two target models and a shadow model; labels of the data are wrong in places, which is no part of the test."""
    given = confused(models=3)
    y, forget, shadow = given["y"], given["forget"], np.array([False, True, False])
    nobody, part = np.zeros(forget.shape, bool), np.zeros(60, np.uint8)
    paths = {name: str(tmp_path / f"{name}.npz") for name in ("data", "splits", "unlearned")}
    Data(np.zeros((60, 1), np.float32), y, part, np.roll(y, 1), np.arange(60), 4).write(paths["data"])
    Membership(
        train=~nobody, forget=forget, heldout=nobody, seed=np.arange(3), split=given["split"], block=given["block"],
        shadow=shadow, labels=given["trained"],
    ).write(paths["splits"])  # fmt: skip
    guess = np.where(np.arange(60) < 30, given["trained"], y)  # the confusion survives in the first half
    Logits(logits_of(guess), np.arange(60), y).write(paths["unlearned"])
    case = Case(paths["data"], [paths["splits"]], [], [paths["unlearned"]])
    error, score = call.rows(confusion, case, {})
    rates = [forget[m, :30].sum() / forget[m].sum() for m in (0, 2)]
    assert error.value == pytest.approx(np.mean(rates))
    part = call.parts(confusion, case, {})["ic_score"]
    np.testing.assert_allclose(part.value, 1 - np.array([rates]))
    assert np.array_equal(part.index, np.flatnonzero(forget[[0, 2]].any(axis=0)))
    mean = paired.distances(
        **{name: getattr(part, name) for name in ("value", "influence", "imagined", "unit", "split")}
    )
    assert mean.value == pytest.approx([score.value])
