"""Accuracy by role: hand-made predictions, and intervals against simulated models."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.metrics import accuracy
from unlearning_audit.stats import rates

from row_places import about


def logits_of(guess, classes=4):
    """Logits whose largest entry is ``guess``."""
    return np.eye(classes, dtype=np.float32)[guess]


def evaluate(*, logits, compared=None, **arguments):
    """`accuracy.accuracies` from logits."""
    guess, retrained = (None if side is None else rates.predicted(side) for side in (logits, compared))
    return accuracy.accuracies(guess=guess, compared=retrained, **arguments)


def by_role(rows, metric="accuracy"):
    return {about(row).removeprefix("role="): row for row in rows if row.metric == metric}


def example():
    train = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 1, 1, 0, 0]], bool)
    forget = np.array([[0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]], bool)
    heldout = np.array([[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0]], bool)
    test = np.arange(8) >= 6
    y = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    guess = np.array([[0, 1, 2, 0, 1, 1, 2, 3], [0, 0, 0, 0, 0, 1, 2, 0]])
    groups = {"split": np.array([0, 1]), "block": np.zeros(2, int)}
    return {"logits": logits_of(guess), "y": y, "train": train, "forget": forget, "heldout": heldout, **groups}, test


def test_accuracy_of_each_role_by_hand():
    arguments, test = example()
    rows = by_role(evaluate(**arguments, test=test))
    assert list(rows) == ["retain", "forget", "heldout", "test"]
    assert {name: row.value for name, row in rows.items()} == {
        "retain": 0.75,  # 2 of 2, 1 of 2
        "forget": 0.75,  # 1 of 2, 2 of 2
        "heldout": 0.25,  # 1 of 2, 0 of 2
        "test": 0.75,  # 2 of 2, 1 of 2
    }
    assert {name: row.n for name, row in rows.items()} == {"retain": 2, "forget": 4, "heldout": 4, "test": 2}
    for row in rows.values():
        assert 0 <= row.ci_low <= row.value <= row.ci_high <= 1


def test_labels_that_models_were_trained_with_count_but_test_labels_are_true():
    arguments, test = example()
    y = np.tile(arguments["y"], (2, 1))
    y[0, 3] = 0  # the first model was taught another label for a sample that it then forgot
    y[:, 6:] = 0
    rows = by_role(evaluate(**{**arguments, "y": y}, test=test, test_y=arguments["y"]))
    assert rows["forget"].value == 1.0
    assert rows["test"].value == 0.75
    assert by_role(evaluate(**{**arguments, "y": y}, test=test))["test"].value == 0.25


def test_models_count_the_same_whatever_the_size_of_their_sets():
    train = np.array([[1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]], bool)
    nothing = np.zeros_like(train)
    rows = evaluate(
        logits=logits_of(np.zeros((2, 6), int)), y=np.array([1, 0, 0, 0, 0, 0]), train=train, forget=nothing,
        heldout=nothing, split=np.array([0, 1]), block=np.zeros(2, int),
    )  # fmt: skip
    assert by_role(rows)["retain"].value == pytest.approx((5 / 6 + 0) / 2)


def test_roles_that_nobody_has_are_empty_with_a_reason():
    arguments, _ = example()
    arguments["heldout"] = np.zeros_like(arguments["heldout"])
    rows = by_role(evaluate(**arguments))
    assert "test" not in rows
    assert np.isnan([getattr(rows["heldout"], key) for key in ("value", "ci_low", "ci_high")]).all()
    assert (rows["heldout"].n, rows["heldout"].note) == (0, "no model has samples in this role")
    arguments["forget"][0] = False
    rows = by_role(evaluate(**arguments))
    assert rows["forget"].value == 1.0
    assert rows["forget"].note.startswith("1 of 2 models have no samples")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": np.zeros((2, 7), bool)}, "train must"),
        ({"y": np.zeros(7, int)}, "y must"),
        ({"heldout": np.zeros((3, 8), bool)}, "heldout must"),
        ({"test": np.zeros(7, bool)}, "test must"),
        ({"test": np.zeros(8, bool), "test_y": np.zeros(3, int)}, "test_y must"),
    ],
)
def test_shapes_that_do_not_fit_are_named(change, message):
    arguments, _ = example()
    with pytest.raises(ValueError, match=message):
        evaluate(**{**arguments, **change})


@pytest.mark.parametrize("of_sample", [0.0, 1.0])
@pytest.mark.parametrize("of_model", [0.0, 0.3])
@pytest.mark.parametrize("shared", [True, False], ids=["same_samples", "own_samples"])
def test_interval_covers_the_truth(of_sample, of_model, shared):
    """Models that are right when sample + model + noise > −1; each meets the same samples or draws its own."""
    rng = np.random.default_rng(0)
    models, samples, games = 8, 150, 400
    truth = ndtr(1 / np.sqrt(of_sample**2 + of_model**2 + 1))
    inside, values, halves = 0, [], []
    for _ in range(games):
        z = of_sample * rng.normal(size=samples) + of_model * rng.normal(size=(models, 1))
        hit = z + rng.normal(size=(models, samples)) > -1
        rows = np.ones_like(hit) if shared else rng.random(hit.shape) < 0.4
        groups = np.zeros(models, int) if shared else np.arange(models)
        rate = rates.rate(hit=hit, rows=rows, split=groups, block=np.zeros(models, int))
        inside += rate.low <= truth <= rate.high
        values.append(rate.value)
        halves.append((rate.high - rate.low) / 2)
    assert inside / games >= 0.93
    assert np.mean(halves) < 1.45 * 1.96 * np.std(values)


def test_the_gap_to_retrained_models_is_theirs_minus_ours_on_the_same_samples():
    arguments, test = example()
    guess = np.array([[0, 1, 0, 0, 0, 1, 2, 3], [0, 1, 0, 0, 1, 1, 2, 3]])
    rows = evaluate(**arguments, test=test, compared=logits_of(guess))
    gap = by_role(rows, "accuracy_gap")
    assert {name: row.value for name, row in gap.items()} == {
        "retain": 0.25,  # 2 of 2 against 2 of 2, 2 of 2 against 1 of 2
        "forget": -0.5,  # 0 of 2 against 1 of 2, 1 of 2 against 2 of 2
        "heldout": 0.25,  # 2 of 2 against 1 of 2, 0 of 2 against 0 of 2
        "test": 0.25,
    }
    for row in gap.values():
        assert -1 <= row.ci_low <= row.value <= row.ci_high <= 1
    same = by_role(evaluate(**arguments, test=test, compared=arguments["logits"]), "accuracy_gap")
    assert {row.value for row in same.values()} == {0.0}
    assert not by_role(evaluate(**arguments, test=test), "accuracy_gap")
    with pytest.raises(ValueError, match="compared must hold predictions"):
        evaluate(**arguments, compared=logits_of(guess[:1]))


def test_the_commonest_label_is_counted_among_what_each_model_keeps():
    arguments, _ = example()
    y = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]])
    share = by_role(evaluate(**{**arguments, "y": y}), "majority_share")["retain"]
    assert share.value == 0.75  # all of two, one of two
    arguments["forget"] = arguments["train"]
    assert np.isnan(by_role(evaluate(**arguments), "majority_share")["retain"].value)


def test_a_lead_counts_in_its_standard_deviations_and_one_label_is_no_accuracy():
    logits, rows = np.array([[[0.1, 0.0], [0.0, 0.3], [9.0, 0.0]]]), np.array([[True, True, False]])
    assert accuracy._latent(logits, {"retain": (rows, np.array([0, 1, 1]))})["retain"] == pytest.approx([2.0])
    assert accuracy.of_models(SimpleNamespace(labels=np.full((2, 3), 7)), np.ones(2, bool)) == []


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_the_interval_of_a_gap_covers_the_truth(shift):
    """Two populations that meet the same hard and easy samples; the second is better by ``shift``."""
    rng = np.random.default_rng(1)
    models, samples, games = 6, 200, 400
    truth = ndtr((0.5 + shift) / np.sqrt(2)) - ndtr(0.5 / np.sqrt(2))
    groups = {"split": np.zeros(models, int), "block": np.zeros(models, int)}
    inside, wide, apart = 0, [], []
    for _ in range(games):
        z = 0.5 + rng.normal(size=samples)
        of, to = (z + more + rng.normal(size=(models, samples)) > 0 for more in (shift, 0.0))
        gap = rates.gap(of=of, to=to, rows=np.ones((models, samples), bool), **groups)
        inside += gap.low <= truth <= gap.high
        wide.append(gap.high - gap.low)
        apart.append(gap.value)
    assert inside / games >= 0.93
    assert np.mean(wide) < 1.6 * 2 * 1.96 * np.std(apart)
