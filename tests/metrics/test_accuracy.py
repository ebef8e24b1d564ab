"""Accuracy by role: hand-made predictions, and intervals against simulated models."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.metrics import accuracy
from unlearning_audit.stats import rates

from held_answers import Held
from slow_cases import slow
from stat_cases import at_least

#: Two models that forget what the other never saw; 6 and 7 are the test part. Their predictions, and those of models
#: that were retrained.
RETAIN = np.array([[1, 1, 0, 0, 0, 0, 0, 0]] * 2, bool)
FORGET = np.array([[0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]], bool)
GUESS = np.array([[0, 1, 2, 0, 1, 1, 2, 3], [0, 0, 0, 0, 0, 1, 2, 0]])
RETRAINED = np.array([[0, 1, 0, 0, 0, 1, 2, 3], [0, 1, 0, 0, 1, 1, 2, 3]])
Y = np.array([0, 1, 2, 3, 0, 1, 2, 3])


def values(guess=GUESS, retrained=None, y=Y, retain=RETAIN, forget=FORGET, heldout=FORGET[::-1], clean=Y, test=6):
    """Metric → role → row of models that all are targets."""
    nothing, count = np.zeros(len(guess), int), np.arange(len(guess))
    member = Membership(retain | forget, forget, heldout, count, split=count, block=nothing, shadow=nothing > 0)
    answers = {"own": guess, "retrained": retrained}
    evaluation = SimpleNamespace(
        membership=member, target=~member.shadow, labels=y, labels_of=lambda models: y, imported=False,
        data=SimpleNamespace(part=(np.arange(len(clean)) >= test) * 1, y_clean=clean), unlearned_files=["own"],
        compared_files=None if retrained is None else ["retrained"],
        outputs=lambda files: Held(np.eye(4, dtype=np.float32)[answers[files[0]]]),
    )  # fmt: skip
    table = {}
    for row in accuracy.rows(evaluation):
        assert -1 <= row.ci_low <= row.value <= row.ci_high <= 1
        table.setdefault(row.metric, {})[row.role] = row
    return table


def numbers(table, metric="accuracy", field="value"):
    return {role: getattr(row, field) for role, row in table[metric].items()}


def test_accuracy_of_each_role_and_the_gap_to_retrained_models_by_hand():
    table = values()
    # of two: 2 and 1 by the models, 1 and 2, 1 and 0, 2 and 1
    assert numbers(table) == {"retain": 0.75, "forget": 0.75, "heldout": 0.25, "test": 0.75}
    assert numbers(table, field="n") == {"retain": 2, "forget": 4, "heldout": 4, "test": 2}
    assert "accuracy_gap" not in table
    # retrained models have 2 and 2, 0 and 1, 2 and 0, 2 and 2
    gaps = {"retain": 0.25, "forget": -0.5, "heldout": 0.25, "test": 0.25}
    assert numbers(values(retrained=RETRAINED), "accuracy_gap") == gaps


def test_labels_that_models_were_trained_with_count_but_test_labels_are_true():
    y = np.tile(Y, (2, 1))
    y[0, 3] = y[:, 6:] = 0  # the first model was taught another label for a sample that it then forgot
    found = numbers(values(y=y))
    assert (found["forget"], found["test"]) == (1.0, 0.75)
    assert numbers(values(y=y, clean=y[0]))["test"] == 0.25


def test_models_count_the_same_whatever_the_size_of_their_sets_and_roles_that_nobody_has_are_left_out():
    retain, nothing = np.array([[1] * 6, [1] + [0] * 5], bool), np.zeros((2, 6), bool)
    y = np.array([1, 0, 0, 0, 0, 0])
    table = values(nothing * 1, retain=retain, forget=nothing, heldout=nothing, y=y, clean=y)
    assert numbers(table) == {"retain": pytest.approx((5 / 6 + 0) / 2)}
    forget = FORGET * [[0], [1]] > 0
    row = values(forget=forget)["accuracy"]["forget"]
    assert (row.value, row.note) == (1.0, "1 of 2 models have no samples in this role; one model: the interval covers "
                                     "samples only")  # fmt: skip


def test_the_commonest_label_is_counted_among_what_each_model_keeps():
    y = np.array([[0] * 8, [0, 1] + [0] * 6])
    assert numbers(values(y=y), "majority_share") == {"retain": 0.75}  # all of two, one of two
    assert "majority_share" not in values(retain=RETAIN & False)


def test_a_lead_counts_in_its_standard_deviations_and_one_label_is_no_accuracy():
    logits, rows = np.array([[[0.1, 0.0], [0.0, 0.3], [9.0, 0.0]]]), np.array([[True, True, False]])
    assert accuracy._latent(logits, {"retain": (rows, np.array([[0, 1, 1]]))})["retain"] == pytest.approx([2.0])
    assert values(y=np.full((2, 8), 7)) == {}


def covered(truth, draw, games=150):
    """The share of simulated intervals that hold the truth, and their mean width over that of the spread of values."""
    value, low, high = np.array([(e.value, e.low, e.high) for e in (draw() for _ in range(games))]).T
    return np.mean((low <= truth) & (truth <= high)), np.mean(high - low) / (2 * 1.96 * np.std(value))


@pytest.mark.parametrize("of_sample", [0.0, 1.0])
@pytest.mark.parametrize("of_model", [0.3, *slow(0.0)])
@pytest.mark.parametrize("shared", [True, False], ids=["same_samples", "own_samples"])
def test_interval_covers_the_truth(of_sample, of_model, shared):
    """Models that are right when sample + model + noise > −1; each meets the same samples or draws its own."""
    rng, models, samples = np.random.default_rng(0), 8, 150
    groups = np.zeros(models, int) if shared else np.arange(models)

    def draw():
        z = of_sample * rng.normal(size=samples) + of_model * rng.normal(size=(models, 1))
        hit = z + rng.normal(size=(models, samples)) > -1
        rows = np.ones_like(hit) if shared else rng.random(hit.shape) < 0.4
        return rates.rate(hit=hit, rows=rows, split=groups, block=np.zeros(models, int))

    inside, width = covered(ndtr(1 / np.sqrt(of_sample**2 + of_model**2 + 1)), draw)
    assert inside >= at_least(0.95, 150)
    assert width < 1.45


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_the_interval_of_a_gap_covers_the_truth(shift):
    """Two populations that meet the same hard and easy samples; the second is better by ``shift``."""
    rng, models, samples = np.random.default_rng(1), 6, 200
    groups = {"split": np.zeros(models, int), "block": np.zeros(models, int)}

    def draw():
        z = 0.5 + rng.normal(size=samples)
        of, to = (z + more + rng.normal(size=(models, samples)) > 0 for more in (shift, 0.0))
        return rates.rate(hit=of, less=to, rows=np.ones((models, samples), bool), **groups)

    inside, width = covered(ndtr((0.5 + shift) / np.sqrt(2)) - ndtr(0.5 / np.sqrt(2)), draw)
    assert inside >= at_least(0.95, 150)
    assert width < 1.6
