"""Logits that cannot be what their folders say are refused or doubted by name; sound ones are neither."""

import numpy as np
import pytest
from scipy.special import softmax
from unlearning_audit.evaluation import mistakes, plausibility
from unlearning_audit.evaluation.cohort import Cohort, Group
from unlearning_audit.evaluation.rows import Failure, Row

from external_cases import CLASSES, only, planned, run, save, world
from held_answers import Held

TARGET, RNG = "mine/target", np.random.default_rng
#: The column of each class, after labels began at 1.
SHIFTED = np.array([3, 0, 1, 2])


def judged(changes, method="mine", metrics=("accuracy",), **of_world):
    """(refusals, doubts, rows) of a world some of whose files are changed; ``changes``: file → arrays of the world →
    what it holds; ``metrics``: those that are computed, () for all."""
    arrays = world("logits", **of_world)
    for path, change in changes.items():
        folder, name = f"logits/{path}".rsplit("/", 1)
        save(folder, **{name: change(arrays)})
    whole = planned(bootstrap=100)
    rows = run(only(whole, *metrics) if metrics else whole, method)[method]
    doubts = [row.note for row in rows if isinstance(row, Row) and row.metric == "doubt"]
    return [row for row in rows if isinstance(row, Failure)], doubts, rows


def with_model(number, of, other):
    """The logits of a population whose model ``number`` is model ``other`` of the audited ones."""

    def change(arrays):
        logits = arrays[of][0].copy()
        logits[number] = arrays[TARGET][0][other]
        return logits

    return change


@pytest.mark.parametrize(("method", "seed"), [("mine", 0), ("mine", 1), ("none", 0), ("retrain", 1)])
def test_sound_logits_are_believed(workdir, method, seed):
    """Worlds in which the method leaves a trace, and in which it leaves none."""
    assert judged({}, method, seed=seed, trace=(0.0 if seed % 2 else 1.5,))[:2] == ([], [])


@pytest.mark.parametrize(
    ("copy", "of", "advice"),
    [
        ("mine/shadow", TARGET, "shadow models are others, which the adversary trained and unlearned"),
        ("retrain", TARGET, "retrained models are others, which never saw the forget set"),
        ("retrain_control", "retrain", "the control is retrained independently"),
        ("shadow_original", "original", "shadow models are others, which the adversary trained itself"),
    ],
)
def test_models_that_play_two_parts_are_refused(workdir, copy, of, advice):
    (failure,), _, _ = judged({f"{copy}/logits": lambda arrays: arrays[of][0]})
    assert failure.kind == "method"
    told = f"{copy} holds 8 models that are models of {of} (model 0 is model 0 of the latter); {advice}"
    assert failure.sentence.startswith(told)


def of_target(change):
    return {f"{TARGET}/logits": lambda arrays: change(arrays[TARGET][0])}


def in_order(order):
    return {f"{name}/logits": lambda arrays, name=name: arrays[name][0][..., order] for name in (TARGET, "original")}


OTHERWISE = "labels numbers the classes otherwise than the columns of the logits"
PROBABILITIES = "mine/target/logits.npy: logits holds probabilities that sum to"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mine/shadow/logits": with_model(5, "mine/shadow", 2)},
         "holds 1 models that are models of mine/target (model 5 is model 2 of the latter)"),
        (in_order([1, 2, 0, 3]), f"{OTHERWISE} of mine/target, original: class 0 by column 2, class 1 by column 0, "
         "class 2 by column 1; give logits[..., [2, 0, 1, 3]]"),
        ({"labels": lambda arrays: (arrays["labels"] + 1) % CLASSES},
         f"{OTHERWISE} of mine/target, mine/shadow, original, retrain, retrain_control, shadow_original: class 0 by "
         f"column 3, class 1 by column 0, class 2 by column 1 and 1 more; give logits[..., {SHIFTED.tolist()}]"),
        (of_target(lambda x: softmax(x, -1)), f"{PROBABILITIES} 1; give what"),
        (of_target(np.negative), "the logits of mine/target have the wrong sign"),
        ({f"{TARGET}/logits": lambda a: np.repeat(a["original"][0][:1] + 0.01 * a[TARGET][0][:1], 8, axis=0)},
         "after unlearning, and did not before; a method must change every model by itself"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(workdir, changes, words):
    (failure,), _, _ = judged(changes)
    assert words in failure.sentence


def nearly(noise):
    """Retrained models that are the audited ones, up to a constant or some noise."""
    change = RNG(0).normal(size=(8, 200, CLASSES)) if noise else 1.0
    return {"retrain/logits": lambda arrays: arrays[TARGET][0] + np.float32(1e-3) * change}


def exchanged(arrays):
    """Sure answers before unlearning; afterwards what was to be kept is lost."""
    _, train, forget = arrays[TARGET]
    values = 4 * np.eye(CLASSES)[np.broadcast_to(arrays["labels"], train.shape)]
    return [values / np.where(lost, 8, 1)[..., None] + 0.1 * RNG(seed).normal(size=values.shape)
            for seed, lost in enumerate((np.zeros_like(forget), train & ~forget))]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (of_target(lambda x: x[:, ::-1]), "mine/target answers its retained samples as chance does: either they are "
         "in another order than"),
        ({f"{TARGET}/logits": with_model(3, TARGET, 1)},
         "mine/target holds models twice (model 3 is model 1, or nearly; 1 such pairs"),
        *[(nearly(noise), "retrain holds 8 models that are nearly models of mine/target (model ")
          for noise in (True, False)],
        ({"original/logits": lambda a: exchanged(a)[0], f"{TARGET}/logits": lambda a: exchanged(a)[1]},
         "were forget and retain exchanged?"),
    ],
)  # fmt: skip
def test_what_is_hard_to_believe_is_doubted(workdir, changes, words):
    assert any(words in doubt for doubt in judged(changes)[1])


def test_models_that_know_little_are_not_at_chance_and_chance_is():
    """400 worlds of four models on 80 samples of ten classes: right by chance, and by so much more often."""
    rng, found = RNG(0), []
    train, forget = (np.tile(np.arange(100) < most, (4, 1)) for most in (90, 10))
    cohort = Cohort("", [])
    cohort.membership = type("M", (), {"retain": train & ~forget, "forget": forget, "heldout": ~train})
    for more in (0.0, 0.3):
        hits = 0
        for _ in range(400):
            cohort.labels = rng.integers(10, size=100)
            right = rng.random((4, 100)) < more
            answers = np.eye(10)[np.where(right, cohort.labels, rng.integers(10, size=(4, 100)))]
            cohort.outputs = lambda files, answers=answers: Held(answers)
            hits += bool(plausibility._at_chance(Group(cohort, [])))
        found.append(hits / 400)
    assert found[0] > 0.99
    assert found[1] < 0.01


def test_large_constants_in_double_precision_lose_no_digit(workdir):
    before, after = (judged(of_target(lambda x, c=c: x.astype(np.float64) + c), metrics=())[2] for c in (0, 1e7))
    assert [(row.metric, row.attack) for row in before] == [(row.metric, row.attack) for row in after]
    np.testing.assert_allclose([row.value for row in before], [row.value for row in after], atol=1e-3)


def test_a_bad_folder_of_retrained_models_costs_what_is_compared_with_it(workdir):
    changes = {"retrain/logits": lambda arrays: arrays["retrain"][0] * np.nan}
    _, doubts, rows = judged(changes, metrics=())
    assert any("retrain/logits.npy" in doubt and "nothing is compared with it" in doubt for doubt in doubts)
    assert any(isinstance(row, Row) and row.metric == "auc" and np.isfinite(row.value) for row in rows)
    (failure,), _, _ = judged(changes, "retrain", metrics=())
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
    before = np.where(forget, 0.6, 0.9)
    after = before - np.where(forget, forgotten, retained)
    sentence = mistakes.sides_exchanged(before, after, forget, ~forget)
    assert bool(sentence) == said
    assert not said or f"by {-retained:+.2f} on the retained samples and by {-forgotten:+.2f} on" in sentence
    assert not mistakes.sides_exchanged(before, after, np.zeros_like(forget), ~forget)
