"""Interclass confusion: hand-made confusions whose score is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import confusion
from unlearning_audit.stats import crossed, paired

import metric_calls as call
from held_answers import Held

Y = np.arange(60) % 3


def evaluation(models=3, seed=0):
    """Classes 0 and 1 swapped on half of their samples, differently in each model; class 2 is left alone. A shadow
    model comes first. The labels of the clean data are wrong everywhere, which is no part of the test."""
    rng, count = np.random.default_rng(seed), np.arange(models + 1)
    forget = np.stack([rng.permutation(60) < 30 for _ in count]) & (Y < 2)
    trained, nobody = np.where(forget, 1 - Y, Y), forget & False
    member = Membership(~nobody, forget, nobody, count, split=0 * count, block=count, shadow=count == 0)
    return SimpleNamespace(
        membership=member, target=~member.shadow, trained=trained, unlearned_files=["own"],
        labels_of=lambda models: trained[models], data=SimpleNamespace(y=Y, y_clean=np.roll(Y, 1)),
    )  # fmt: skip


def score(example, guess):
    """The row "ic_score" of models that predict ``guess`` [models and the shadow model, samples]."""
    logits = np.eye(4, dtype=np.float32)[guess]
    logits[guess < 0] = np.nan
    example.outputs = lambda files: Held(logits)
    error, score = call.rows(confusion, example, {})
    assert (error.metric, score.metric) == ("ic_error", "ic_score")
    assert [score.value, score.ci_low, score.ci_high] == pytest.approx(
        [1 - error.value, 1 - error.ci_high, 1 - error.ci_low], abs=1e-15
    )
    assert 0 <= score.ci_low <= score.value <= score.ci_high <= 1
    assert score.n == example.membership.forget[1:].any(axis=0).sum()
    part = call.parts(confusion, example, {})["ic_score"]
    fields = ("value", "influence", "imagined", "unit", "split")
    mean = paired.distances(**{name: getattr(part, name) for name in fields})
    assert mean.value == pytest.approx([score.value])
    assert np.array_equal(part.index, np.flatnonzero(example.membership.forget[1:].any(axis=0)))
    return score


def test_the_score_is_the_mean_over_models_of_the_share_of_confusions_that_are_gone():
    example = evaluation()
    forget, trained = example.membership.forget, example.trained
    remembers, forgot = score(example, trained), score(example, np.tile(Y, (4, 1)))
    assert (remembers.value, forgot.value) == (0, 1)
    assert remembers.ci_high > 0, "some doubt remains where all samples agree"
    assert forgot.ci_low < 1
    guess, counts = np.tile(Y, (4, 1)), (5, 3, 0, 7)
    for model, count in enumerate(counts):
        rows = np.flatnonzero(forget[model])[:count]
        guess[model, rows] = trained[model, rows]
    assert score(example, guess).value == pytest.approx(1 - np.mean(counts[1:] / forget[1:].sum(axis=1)))


def test_a_diverged_model_remembers_nothing_and_one_model_has_a_note():
    row = score(evaluation(models=1), np.full((2, 60), -1))
    assert (row.value, row.note) == (1, crossed.ONE_MODEL)


def test_samples_trained_with_their_true_label_are_no_confusion():
    example = evaluation()
    example.labels_of = lambda models: Y
    with pytest.raises(ValueError, match="forget holds samples trained with their true label"):
        score(example, example.trained)
