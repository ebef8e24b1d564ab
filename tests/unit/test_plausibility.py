"""Logits that cannot be what their folders say are refused or doubted by name; sound ones are neither."""

import numpy as np
import pytest

from external_cases import CLASSES, planned, reason, run, save, world
from unlearning.adversary import plausibility
from unlearning.adversary.external_case import ExternalCase


def logits(here, name):
    return np.load(here / "logits" / name / "logits.npy")


def put(here, name, **arrays):
    save(here / "logits" / name, **arrays)


def rows(here, method="mine"):
    return run(planned(), method)[method]


def refused(here, method="mine"):
    return reason(rows(here, method), "failed", "", "raised=method")


def doubted(here, method="mine"):
    return [row["note"] for row in rows(here, method) if row["metric"] == "doubt"]


@pytest.mark.parametrize("seed", range(3))
def test_sound_logits_are_believed(here, seed):
    """Worlds in which the method leaves a trace, and in which it leaves none."""
    world(here / "logits", seed=seed, trace=(0.0 if seed % 2 else 1.5,))
    for method in ("mine", "none", "retrain", "retrain_control"):
        found = rows(here, method)
        assert not [row for row in found if row["metric"] in ("doubt", "failed")], method


@pytest.mark.parametrize(
    ("copy", "of", "meant"),
    [
        ("mine/shadow", "mine/target", "shadow models are others"),
        ("retrain", "mine/target", "retrained models are others, which never saw the forget set"),
        ("retrain_control", "retrain", "the control is retrained independently"),
        ("shadow_original", "original", "shadow models are others"),
        ("retrain", "original", "retrained models are others"),
    ],
)
def test_models_that_play_two_parts_are_refused(here, copy, of, meant):
    world(here / "logits")
    put(here, copy, logits=logits(here, of))
    sentence = refused(here)
    assert sentence.startswith(f"{copy}/ holds models of {of}/: the logits of 8 are identical (model 0 is model 0")
    assert meant in sentence


def test_one_shared_model_is_enough(here):
    world(here / "logits")
    mixed = logits(here, "mine/shadow")
    mixed[5] = logits(here, "mine/target")[2]
    put(here, "mine/shadow", logits=mixed)
    assert "the logits of 1 are identical (model 5 is model 2 of the latter)" in refused(here)


def test_columns_in_another_order_are_refused_with_the_order(here):
    world(here / "logits")
    order = [1, 2, 0, 3]
    for name in ("mine/target", "original"):
        put(here, name, logits=logits(here, name)[..., order])
    sentence = refused(here)
    assert "the columns of the logits of mine/target/ are in another order than labels.npy" in sentence
    assert "class 0 by column 2, 1 by column 0, 2 by column 1;" in sentence
    assert "3 by" not in sentence


def test_samples_in_another_order_are_doubted(here):
    world(here / "logits")
    shuffled = np.random.default_rng(0).permutation(200)
    put(here, "mine/target", logits=logits(here, "mine/target")[:, shuffled])
    (doubt,) = doubted(here)
    assert doubt.startswith("mine/target/ answers ")
    assert "of its retained samples rightly, which is chance" in doubt
    assert "samples in another order than labels.npy" in doubt


def test_retained_and_forgotten_the_other_way_round_are_doubted(here):
    made = world(here / "logits", trace=(1.0,))
    _, train, forget = made["mine/target"]
    others = train & ~forget
    # Half of what was kept is called forgotten, and what was forgotten kept.
    some = others & (np.arange(200) % 2 == 0)
    put(here, "mine/target", forget=some, train=some | forget)
    found = doubted(here)
    assert any(d.startswith("mine/target/ answers") and "forget.npy" in d and "other way round" in d for d in found)


def test_copies_of_a_model_are_doubted(here):
    world(here / "logits")
    twice = logits(here, "mine/target")
    twice[3] = twice[1]
    put(here, "mine/target", logits=twice)
    assert doubted(here)[0].startswith("mine/target/ holds 1 models twice (model 3 is model 1)")


def test_models_that_say_the_same_of_everything_are_doubted(here):
    world(here / "logits")
    same = logits(here, "retrain")
    same[2] = same[2, :1]
    put(here, "retrain", logits=same)
    assert "retrain/ holds 1 models that say the same of every sample" in doubted(here)


def test_chance_alone_raises_no_doubt_about_accuracies():
    """400 worlds in which forgotten, held-out and retained samples are answered alike: the sides never seem swapped."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(400):
        case = ExternalCase("", [], [], [])
        train, forget = np.zeros((2, 4, 120), bool)
        train[:, :80] = forget[:, 60:80] = True
        case.membership = type("M", (), {"retain": train & ~forget, "forget": forget, "heldout": ~train})
        case.labels = rng.integers(CLASSES, size=120)
        case.unlearned = rng.normal(size=(4, 120, CLASSES))
        np.put_along_axis(case.unlearned, np.broadcast_to(case.labels[:, None], (4, 120, 1)), 1.0, axis=-1)
        found += bool(list(plausibility._of_accuracies("target/", case, False)))
    assert found == 0


@pytest.mark.parametrize("scale", [1, 100])
def test_probabilities_are_refused_as_shares_and_as_percent(here, scale):
    world(here / "logits")
    odds = np.exp(logits(here, "mine/target"))
    put(here, "mine/target", logits=(scale * odds / odds.sum(-1, keepdims=True)).astype(np.float32))
    with pytest.raises(ValueError, match=f"logits holds probabilities that sum to {scale}; save what"):
        rows(here)
