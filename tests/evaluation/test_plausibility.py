"""Logits that cannot be what their folders say are refused or doubted by name; sound ones are neither."""

import numpy as np
import pytest
from unlearning_audit.evaluation import mistakes, plausibility
from unlearning_audit.evaluation.cohort import Cohort, Group
from unlearning_audit.evaluation.rows import Failure, Row

from external_cases import CLASSES, planned, run, save, world
from held_answers import Held


def logits(folder, name):
    return np.load(folder / "logits" / name / "logits.npy")


def in_memory(unlearned, labels, *, train, forget):
    """Models whose memberships are the same, in a case without files; ``unlearned`` [models, samples, classes]."""
    cohort = Cohort("", [])
    train, forget = (np.broadcast_to(mask, unlearned.shape[:2]) for mask in (train, forget))
    cohort.membership = type("M", (), {"retain": train & ~forget, "forget": forget, "heldout": ~train})
    cohort.labels, cohort.answers = labels, lambda files: Held(unlearned)
    return Group(cohort, [])


def store(folder, name, **arrays):
    save(folder / "logits" / name, **arrays)


def rows(folder, method="mine"):
    return run(planned(), method)[method]


def refused(folder, method="mine"):
    (failure,) = [row for row in rows(folder, method) if isinstance(row, Failure)]
    assert failure.kind == "method"
    return failure.sentence


def doubted(folder, method="mine"):
    return [row.note for row in rows(folder, method) if isinstance(row, Row) and row.metric == "doubt"]


@pytest.mark.parametrize("seed", range(3))
def test_sound_logits_are_believed(workdir, seed):
    """Worlds in which the method leaves a trace, and in which it leaves none."""
    world(workdir / "logits", seed=seed, trace=(0.0 if seed % 2 else 1.5,))
    for method in ("mine", "none", "retrain", "retrain_control"):
        table = rows(workdir, method)
        assert not [row for row in table if isinstance(row, Failure) or row.metric == "doubt"], method


@pytest.mark.parametrize(
    ("copy", "of", "words"),
    [
        ("mine/shadow", "mine/target", "shadow models are others"),
        ("retrain", "mine/target", "retrained models are others, which never saw the forget set"),
        ("retrain_control", "retrain", "the control is retrained independently"),
        ("shadow_original", "original", "shadow models are others"),
        ("retrain", "original", "retrained models are others"),
    ],
)
def test_models_that_play_two_parts_are_refused(workdir, copy, of, words):
    world(workdir / "logits")
    store(workdir, copy, logits=logits(workdir, of))
    sentence = refused(workdir)
    assert sentence.startswith(f"{copy} holds 8 models that are models of {of} (model 0 is model 0 of the latter)")
    assert words in sentence


def test_one_shared_model_is_enough(workdir):
    world(workdir / "logits")
    mixed = logits(workdir, "mine/shadow")
    mixed[5] = logits(workdir, "mine/target")[2]
    store(workdir, "mine/shadow", logits=mixed)
    assert "holds 1 models that are models of mine/target (model 5 is model 2 of the latter)" in refused(workdir)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([1, 2, 0, 3], "class 0 by column 2, class 1 by column 0, class 2 by column 1; give logits[..., [2, 0, 1, 3]]"),
        ([1, 2, 3, 0], "class 2 by column 1 and 1 more; give logits[..., [3, 0, 1, 2]]"),
    ],
)
def test_columns_in_another_order_are_refused_with_the_order(workdir, order, words):
    world(workdir / "logits")
    for name in ("mine/target", "original"):
        store(workdir, name, logits=logits(workdir, name)[..., order])
    sentence = refused(workdir)
    assert "labels numbers the classes otherwise than the columns of the logits of mine/target" in sentence
    assert words in sentence


@pytest.mark.parametrize("change", [lambda x: x[:, np.random.default_rng(0).permutation(200)], lambda x: x[:, ::-1]])
def test_samples_in_another_order_are_doubted(workdir, change):
    world(workdir / "logits")
    store(workdir, "mine/target", logits=change(logits(workdir, "mine/target")))
    (doubt,) = doubted(workdir)
    assert doubt.startswith(
        "mine/target answers its retained samples as chance does: either they are in another order than"
    )


def test_copies_of_a_model_are_doubted(workdir):
    world(workdir / "logits")
    twice = logits(workdir, "mine/target")
    twice[3] = twice[1]
    store(workdir, "mine/target", logits=twice)
    assert doubted(workdir)[0].startswith("mine/target holds models twice (model 3 is model 1, or nearly; 1 such pairs")


def test_models_that_know_little_are_not_at_chance_and_chance_is():
    """400 worlds of four models on 80 samples of ten classes: right by chance, and by so much more often."""
    rng, found = np.random.default_rng(0), []
    for more in (0.0, 0.3):
        hits = 0
        for _ in range(400):
            labels = rng.integers(10, size=100)
            right = rng.random((4, 100)) < more
            answers = np.eye(10)[np.where(right, labels, rng.integers(10, size=(4, 100)))]
            case = in_memory(answers, labels, train=np.arange(100) < 90, forget=np.arange(100) < 10)
            hits += bool(plausibility._at_chance(case).all())
        found.append(hits / 400)
    assert found[0] > 0.99
    assert found[1] < 0.01


@pytest.mark.parametrize("scale", [1, 100])
def test_probabilities_are_refused_as_shares_and_as_percent(workdir, scale):
    world(workdir / "logits")
    odds = np.exp(logits(workdir, "mine/target"))
    store(workdir, "mine/target", logits=(scale * odds / odds.sum(-1, keepdims=True)).astype(np.float32))
    assert f"mine/target/logits.npy: logits holds probabilities that sum to {scale}; give what" in refused(workdir)


@pytest.mark.parametrize("change", ["constant", "noise"])
def test_a_population_that_is_nearly_another_one_is_doubted(workdir, change):
    arrays = world(workdir / "logits")
    target = arrays["mine/target"][0]
    noise = np.random.default_rng(0).normal(size=target.shape) if change == "noise" else 1.0
    store(workdir, "retrain", logits=target + np.float32(1e-3) * noise)
    assert any("retrain holds 8 models that are nearly models of mine/target (model " in d
               for d in doubted(workdir))  # fmt: skip


def test_labels_that_begin_at_another_number_are_refused(workdir):
    arrays = world(workdir / "logits", methods=("mine",))
    shifted = (arrays["labels"] + 1) % CLASSES
    save(workdir / "logits", labels=shifted)
    sentence = refused(workdir)
    assert "class 0 by column 3, class 1 by column 0, class 2 by column 1 and 1 more" in sentence
    order = np.array([3, 0, 1, 2])
    assert f"give numpy.array({order.tolist()})[labels] as the labels, if all populations say so" in sentence
    assert (order[shifted] == arrays["labels"]).all()


def wrong(case):
    order = plausibility._order(case)
    return (order and not plausibility._fits_worse(case, order)) or plausibility._negated(case)


def test_the_wrong_sign_is_refused(workdir):
    world(workdir / "logits")
    store(workdir, "mine/target", logits=-logits(workdir, "mine/target"))
    assert refused(workdir).startswith("the logits of mine/target have the wrong sign")


def test_models_that_a_method_mixed_are_refused(workdir):
    world(workdir / "logits")
    mixed = logits(workdir, "mine/target")
    mixed[:] = logits(workdir, "original")[:1] + 0.01 * mixed[:1]
    store(workdir, "mine/target", logits=mixed)
    assert "after unlearning, and did not before; a method must change every model by itself" in refused(workdir)


def test_a_weight_that_overflows_is_refused(workdir):
    world(workdir / "logits")
    weight = np.ones(200)
    weight[3] = 1e308
    save(workdir / "logits", weight=weight)
    assert "weight.npy: weight has values above 1e+100, whose sums overflow" in refused(workdir)


def test_large_constants_in_double_precision_lose_no_digit(workdir):
    world(workdir / "logits")
    before = rows(workdir)
    store(workdir, "mine/target", logits=logits(workdir, "mine/target").astype(np.float64) + 1e7)
    after = rows(workdir)
    assert len(before) == len(after)
    for first, second in zip(before, after, strict=True):
        assert (first.metric, first.attack) == (second.metric, second.attack)
        np.testing.assert_allclose(first.value, second.value, atol=1e-3)


def test_a_bad_folder_of_retrained_models_costs_what_is_compared_with_it(workdir):
    world(workdir / "logits")
    store(workdir, "retrain", logits=np.exp(logits(workdir, "retrain")) * np.nan)
    table = rows(workdir)
    assert any("retrain/logits.npy" in d and "nothing is compared with it" in d for d in doubted(workdir))
    assert any(isinstance(row, Row) and row.metric == "auc" and np.isfinite(row.value) for row in table)
    (failure,) = [row for row in rows(workdir, "retrain") if isinstance(row, Failure)]
    assert failure.kind == "diverged"
    assert "NaN or infinite" in failure.sentence


@pytest.mark.parametrize(
    ("retained", "forgotten", "said"),
    [(0.5, 0.0, True), (0.5, -0.3, True), (0.5, 0.04, True), (0.5, 0.06, False), (0.5, 0.6, False), (0.09, 0.0, False),
     (0.25, 0.0, False), (0.04, -0.5, False), (0.05, -0.2, False), (0.0, 0.6, False), (-0.05, 0.1, False)],
)  # fmt: skip
def test_methods_that_lost_what_they_were_to_keep_are_doubted(retained, forgotten, said):
    """Losses of probability on both sides, of two models that forget different samples."""
    forget = np.arange(40) % 4 == np.arange(2)[:, None]
    before = np.full(forget.shape, 0.9)
    before[forget] = 0.6
    after = before - np.where(forget, forgotten, retained)
    sentence = mistakes.sides_exchanged(before, after, forget, ~forget)
    assert bool(sentence) == said
    assert not said or f"by {-retained:+.2f} on the retained samples and by {-forgotten:+.2f} on" in sentence
    assert not mistakes.sides_exchanged(before, after, np.zeros_like(forget), ~forget)


@pytest.mark.parametrize(("turned", "said"), [(False, False), (True, True)])
def test_imported_models_that_lost_what_they_were_to_keep_are_doubted(workdir, turned, said):
    world(workdir / "logits", trace=(1.5,))
    forget, train = (np.load(workdir / "logits" / "mine/target" / f"{name}.npy") for name in ("forget", "train"))
    original = 4 * np.eye(CLASSES)[np.load(workdir / "logits" / "labels.npy")]
    lost = train & ~forget if turned else forget
    for name, spoilt in (("original", np.zeros_like(lost)), ("mine/target", lost)):
        values = np.broadcast_to(original, (*lost.shape, CLASSES)).copy()
        values += np.random.default_rng(1).normal(size=values.shape) * 0.1
        values[spoilt] = values[spoilt] / 8
        np.save(workdir / "logits" / name / "logits.npy", values.astype(np.float32))
    assert any("were forget and retain exchanged?" in sentence for sentence in doubted(workdir)) == said
