"""Logits that cannot be what their folders say are refused or doubted by name; sound ones are neither."""

import numpy as np
import pytest
from unlearning_audit.adversary import plausibility
from unlearning_audit.adversary.external_case import ExternalCase
from unlearning_audit.artifacts.rows import Failure, Row

from external_cases import CLASSES, planned, run, save, world


def logits(here, name):
    return np.load(here / "logits" / name / "logits.npy")


def put(here, name, **arrays):
    save(here / "logits" / name, **arrays)


def rows(here, method="mine"):
    return run(planned(), method)[method]


def refused(here, method="mine"):
    (failure,) = [row for row in rows(here, method) if isinstance(row, Failure)]
    assert failure.kind == "method"
    return failure.sentence


def doubted(here, method="mine"):
    return [row.note for row in rows(here, method) if isinstance(row, Row) and row.metric == "doubt"]


@pytest.mark.parametrize("seed", range(3))
def test_sound_logits_are_believed(here, seed):
    """Worlds in which the method leaves a trace, and in which it leaves none."""
    world(here / "logits", seed=seed, trace=(0.0 if seed % 2 else 1.5,))
    for method in ("mine", "none", "retrain", "retrain_control"):
        found = rows(here, method)
        assert not [row for row in found if isinstance(row, Failure) or row.metric == "doubt"], method


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:, [1, 2, 0, 3]], "the columns of the logits of model 2 of mine/target/ are in another order"),
        (lambda x: -x, "the logits of model 2 of mine/target/ have the wrong sign"),
    ],
)
def test_a_single_model_among_sound_ones_is_refused(here, change, words):
    world(here / "logits", samples=500, pairs=3)
    changed = logits(here, "mine/target").copy()
    changed[2] = change(changed[2])
    put(here, "mine/target", logits=changed)
    assert refused(here).startswith(words)


def test_a_single_model_at_chance_among_sound_ones_is_doubted(here):
    world(here / "logits", pairs=3)
    changed = logits(here, "mine/target").copy()
    changed[2] = changed[2, ::-1]
    put(here, "mine/target", logits=changed)
    (doubt,) = [note for note in doubted(here) if "as chance does" in note]
    assert doubt.startswith("mine/target/ holds models that answer their retained samples as chance does")
    assert "(model 2: " in doubt


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
    assert f"mine/target/logits.npy: logits holds probabilities that sum to {scale}; save what" in refused(here)


def test_models_that_hardly_differ_are_doubted(here):
    made = world(here / "logits")
    twice = made["mine/target"][0].copy()
    twice[3] = twice[1] + 1e-6 * np.random.default_rng(0).normal(size=twice[1].shape)
    put(here, "mine/target", logits=twice)
    assert doubted(here)[0].startswith("mine/target/ holds models that hardly differ (model 3 is nearly model 1")


@pytest.mark.parametrize("change", ["constant", "noise"])
def test_a_population_that_is_nearly_another_one_is_doubted(here, change):
    made = world(here / "logits")
    target = made["mine/target"][0]
    noise = np.random.default_rng(0).normal(size=target.shape) if change == "noise" else 1.0
    put(here, "retrain", logits=target + np.float32(1e-3) * noise)
    assert any("8 models of retrain/ are nearly models of mine/target/ (model 0 is nearly model 0" in d
               for d in doubted(here))  # fmt: skip


def test_samples_in_the_reverse_order_are_doubted(here):
    world(here / "logits")
    put(here, "mine/target", logits=logits(here, "mine/target")[:, ::-1])
    assert "samples in another order than labels.npy" in doubted(here)[0]


def test_labels_that_begin_at_another_number_are_refused(here):
    made = world(here / "logits", methods=("mine",))
    save(here / "logits", labels=(made["labels"] + 1) % CLASSES)
    assert "are in another order than labels.npy: class 0 by column 3, 1 by column 0" in refused(here)


def test_labels_shifted_by_one_sample_are_doubted(here):
    made = world(here / "logits")
    save(here / "logits", labels=np.roll(made["labels"], 1))
    assert any("which is chance" in d for d in doubted(here))


def test_the_wrong_sign_is_refused(here):
    world(here / "logits")
    put(here, "mine/target", logits=-logits(here, "mine/target"))
    assert refused(here).startswith("the logits of mine/target/ have the wrong sign")


def test_forgotten_and_held_out_the_other_way_round_are_doubted(here):
    made = world(here / "logits", trace=(1.0,))
    for name in ("mine/target", "original"):
        _, train, forget = made[name]
        seen = train & ~forget
        unseen = ~train & train.any(0)
        put(here, name, forget=unseen, heldout=forget, train=seen | unseen)
    found = doubted(here)
    assert any(d.startswith("original/ is surer of the samples in heldout.npy") for d in found), found


def test_models_that_a_method_mixed_are_refused(here):
    world(here / "logits")
    mixed = logits(here, "mine/target")
    mixed[:] = logits(here, "original")[:1] + 0.01 * mixed[:1]
    put(here, "mine/target", logits=mixed)
    assert "after unlearning, and did not before; a method must change every model by itself" in refused(here)


def test_a_weight_that_overflows_is_refused(here):
    world(here / "logits")
    weight = np.ones(200)
    weight[3] = 1e308
    save(here / "logits", weight=weight)
    assert "weight.npy: weight has values above 1e+100, whose sums overflow" in refused(here)


def test_large_constants_in_double_precision_lose_no_digit(here):
    world(here / "logits")
    before = rows(here)
    put(here, "mine/target", logits=logits(here, "mine/target").astype(np.float64) + 1e7)
    after = rows(here)
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert (one.metric, one.attack) == (other.metric, other.attack)
        np.testing.assert_allclose(one.value, other.value, atol=1e-3)


def test_a_bad_folder_of_retrained_models_costs_what_is_compared_with_it(here):
    world(here / "logits")
    put(here, "retrain", logits=np.exp(logits(here, "retrain")) * np.nan)
    found = rows(here)
    assert any("retrain/logits.npy" in d and "nothing is compared with it" in d for d in doubted(here))
    assert any(isinstance(row, Row) and row.metric == "auc" and np.isfinite(row.value) for row in found)
    assert "NaN or infinite" in refused(here, "retrain")
