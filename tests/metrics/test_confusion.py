"""Interclass confusion: hand-made confusions whose score is known."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
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


def score(guess, **arguments):
    rows = confusion.evaluate(logits=logits_of(guess), **arguments)
    assert [row.metric for row in rows] == ["ic_error", "ic_score"]
    error, score = rows
    assert score.value == pytest.approx(1 - error.value, abs=1e-15)
    assert (score.ci_low, score.ci_high) == pytest.approx((1 - error.ci_high, 1 - error.ci_low))
    assert 0 <= score.ci_low <= score.value <= score.ci_high <= 1
    assert score.n == arguments["forget"].any(axis=0).sum()
    return score


def test_a_predictor_of_the_confused_label_scores_zero_and_of_the_true_label_one():
    arguments = confused()
    remembers, forgot = score(arguments["trained"], **arguments), score(np.tile(arguments["y"], (3, 1)), **arguments)
    assert remembers.value == 0
    assert remembers.ci_high > 0, "some doubt remains where all samples agree"
    assert forgot.value == 1
    assert forgot.ci_low < 1


def test_score_is_the_mean_over_models_of_the_rate():
    arguments = confused()
    guess = np.tile(arguments["y"], (3, 1))
    for m, count in enumerate((3, 0, 7)):
        rows = np.flatnonzero(arguments["forget"][m])[:count]
        guess[m, rows] = arguments["trained"][m, rows]
    sizes = arguments["forget"].sum(axis=1)
    assert score(guess, **arguments).value == pytest.approx(1 - np.mean(np.array([3, 0, 7]) / sizes))


def test_a_diverged_model_remembers_nothing_and_one_model_has_a_note():
    arguments = confused(models=1)
    rows = confusion.evaluate(logits=np.full((1, 60, 4), np.nan, np.float32), **arguments)
    assert rows[0].value == 0
    assert rows[0].note == crossed.ONE_MODEL


def test_interval_covers_the_truth():
    """Each sample keeps its confusion with a probability of its own, in all models that confused it."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        arguments = confused(models=6, samples=120)
        arguments["block"] = np.zeros(6, int)
        arguments["forget"] = np.tile(arguments["forget"][:1], (6, 1))
        arguments["trained"] = np.tile(arguments["trained"][:1], (6, 1))
        keeps = rng.random((6, 120)) < rng.beta(1, 3, 120)  # mean 1/4
        row = score(np.where(keeps, arguments["trained"], arguments["y"]), **arguments)
        inside += row.ci_low <= 0.75 <= row.ci_high
    assert inside / 300 >= 0.93


def test_wrong_inputs_are_named():
    arguments = confused()
    logits = logits_of(arguments["trained"])
    with pytest.raises(ValueError, match="forget must be"):
        confusion.evaluate(logits=logits, **{**arguments, "forget": arguments["forget"][:, :-1]})
    with pytest.raises(ValueError, match="trained must be"):
        confusion.evaluate(logits=logits, **{**arguments, "trained": arguments["trained"][:, :-1]})
    with pytest.raises(ValueError, match="true label"):
        confusion.evaluate(logits=logits, **{**arguments, "trained": np.tile(arguments["y"], (3, 1))})


def test_rows_compare_what_was_taught_with_the_labels_of_the_data(tmp_path):
    """Two target models and a shadow model; labels of the data are wrong in places, which is no part of the test."""
    arguments = confused(models=3)
    y, forget, shadow = arguments["y"], arguments["forget"], np.array([False, True, False])
    nobody, part = np.zeros(forget.shape, bool), np.zeros(60, np.uint8)
    paths = {name: str(tmp_path / f"{name}.npz") for name in ("data", "splits", "unlearned")}
    Data(np.zeros((60, 1), np.float32), y, part, np.roll(y, 1), np.arange(60), 4).write(paths["data"])
    Membership(
        train=~nobody, forget=forget, heldout=nobody, seed=np.arange(3), split=arguments["split"],
        block=arguments["block"], shadow=shadow, labels=arguments["trained"],
    ).write(paths["splits"])  # fmt: skip
    guess = np.where(np.arange(60) < 30, arguments["trained"], y)  # the confusion survives in the first half
    Logits(logits_of(guess), np.arange(60), y).write(paths["unlearned"])
    case = Evaluation(paths["data"], [paths["splits"]], [], [paths["unlearned"]])
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
