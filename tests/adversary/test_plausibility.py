"""Logits that cannot be what their folders say are refused or doubted by name; sound ones are neither."""

import numpy as np
import pytest
from scipy.stats import binom
from unlearning_audit.adversary import plausibility
from unlearning_audit.adversary.external_case import ExternalCase
from unlearning_audit.artifacts.rows import Failure, Row

from external_cases import CLASSES, planned, run, save, world


def logits(folder, name):
    return np.load(folder / "logits" / name / "logits.npy")


def in_memory(unlearned, labels, *, train, forget):
    """Models whose memberships are the same, in a case without files; ``unlearned`` [models, samples, classes]."""
    case = ExternalCase("", [], [], [])
    train, forget = (np.broadcast_to(mask, unlearned.shape[:2]) for mask in (train, forget))
    case.membership = type("M", (), {"retain": train & ~forget, "forget": forget, "heldout": ~train})
    case.labels, case.unlearned = labels, unlearned
    return case


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
    assert sentence.startswith(f"{copy} holds models of {of}: the logits of 8 are identical (model 0 is model 0")
    assert words in sentence


def test_one_shared_model_is_enough(workdir):
    world(workdir / "logits")
    mixed = logits(workdir, "mine/shadow")
    mixed[5] = logits(workdir, "mine/target")[2]
    store(workdir, "mine/shadow", logits=mixed)
    assert "the logits of 1 are identical (model 5 is model 2 of the latter)" in refused(workdir)


def test_columns_in_another_order_are_refused_with_the_order(workdir):
    world(workdir / "logits")
    order = [1, 2, 0, 3]
    for name in ("mine/target", "original"):
        store(workdir, name, logits=logits(workdir, name)[..., order])
    sentence = refused(workdir)
    assert "the columns of the logits of mine/target are in another order than labels" in sentence
    assert "class 0 by column 2, 1 by column 0, 2 by column 1;" in sentence
    assert "3 by" not in sentence


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:, [1, 2, 0, 3]], "the columns of the logits of model 2 of mine/target are in another order"),
        (lambda x: -x, "the logits of model 2 of mine/target have the wrong sign"),
    ],
)
def test_a_single_model_among_sound_ones_is_refused(workdir, change, words):
    world(workdir / "logits", samples=500, pairs=3)
    changed = logits(workdir, "mine/target").copy()
    changed[2] = change(changed[2])
    store(workdir, "mine/target", logits=changed)
    assert refused(workdir).startswith(words)


def test_a_single_model_at_chance_among_sound_ones_is_doubted(workdir):
    world(workdir / "logits", pairs=3)
    changed = logits(workdir, "mine/target").copy()
    changed[2] = changed[2, ::-1]
    store(workdir, "mine/target", logits=changed)
    (doubt,) = [note for note in doubted(workdir) if "as chance does" in note]
    assert doubt.startswith("mine/target holds models that answer their retained samples as chance does")
    assert "(model 2: " in doubt


def test_samples_in_another_order_are_doubted(workdir):
    world(workdir / "logits")
    shuffled = np.random.default_rng(0).permutation(200)
    store(workdir, "mine/target", logits=logits(workdir, "mine/target")[:, shuffled])
    (doubt,) = doubted(workdir)
    assert doubt.startswith("mine/target answers ")
    assert "of its retained samples rightly, which is chance" in doubt
    assert "samples in another order than labels" in doubt


def test_retained_and_forgotten_the_other_way_round_are_doubted(workdir):
    arrays = world(workdir / "logits", trace=(1.0,))
    _, train, forget = arrays["mine/target"]
    retained = train & ~forget
    # Half of what was kept is called forgotten, and what was forgotten kept.
    half = retained & (np.arange(200) % 2 == 0)
    store(workdir, "mine/target", forget=half, train=half | forget)
    notes = doubted(workdir)
    assert any(d.startswith("mine/target answers") and " in forget" in d and "other way round" in d for d in notes)


@pytest.mark.parametrize("forgotten", [1, 10, 20, 200])
def test_few_forgotten_samples_that_are_all_answered_rightly_are_no_reason_for_doubt(forgotten):
    """20 of 20 are right by chance where 93 % of all are, 200 of 200 are not; a side does not tell how it varies."""
    number = np.arange(1000)
    labels = number % CLASSES
    answers = np.eye(CLASSES)[None, np.where((number >= forgotten) & (number % 14 == 0), (labels + 1) % 4, labels)]
    case = in_memory(answers, labels, train=number < 900, forget=number < forgotten)
    notes = list(plausibility._of_accuracies("mine", case, knows_forgotten=False))
    assert len([note for note in notes if " in forget" in note]) == (forgotten == 200)


@pytest.mark.parametrize("accuracy", [0.6, 0.7, 0.9, 0.97])
@pytest.mark.parametrize("forgotten", [1, 3, 9, 12, 20, 100])
def test_forgotten_samples_that_are_as_easy_as_retained_ones_are_doubted_once_in_fifty_at_most(forgotten, accuracy):
    """Exactly, over how many of the forgotten ones are answered rightly by chance."""
    number = np.arange(2000)
    retained = number >= forgotten
    wrong = retained & (np.cumsum(retained) % 100 >= round(100 * accuracy))
    labels, doubted_counts = number % CLASSES, []
    for right in range(forgotten + 1):
        answers = np.where(wrong | (~retained & (number >= right)), (labels + 1) % CLASSES, labels)
        case = in_memory(np.eye(CLASSES)[None, answers], labels, train=number >= 0, forget=~retained)
        notes = list(plausibility._of_accuracies("mine", case, knows_forgotten=False))
        doubted_counts += [right] * any(" in forget" in note for note in notes)
    assert binom(forgotten, accuracy).pmf(doubted_counts).sum() <= 0.02


@pytest.mark.parametrize("heldout", [1, 10, 100])
def test_few_samples_that_are_hard_by_chance_are_no_reason_for_doubt(heldout):
    """Of a side of one sample the spread is 0, and so it was for whoever took the spread from the side."""
    number = np.arange(400)
    answers = np.zeros((1, 400, CLASSES))
    answers[0, :, 0] = np.where(number < 200 - heldout, number % 10, 9)
    case = in_memory(answers, np.zeros(400, int), train=number < 200 - heldout, forget=number < 200 - heldout)
    case.membership.heldout = ((number >= 200 - heldout) & (number < 200))[None]
    assert len(list(plausibility._exchanged("original", case))) == (heldout == 100)


def test_copies_of_a_model_are_doubted(workdir):
    world(workdir / "logits")
    twice = logits(workdir, "mine/target")
    twice[3] = twice[1]
    store(workdir, "mine/target", logits=twice)
    assert doubted(workdir)[0].startswith("mine/target holds 1 models twice (model 3 is model 1)")


def test_models_that_say_the_same_of_everything_are_doubted(workdir):
    world(workdir / "logits")
    same = logits(workdir, "retrain")
    same[2] = same[2, :1]
    store(workdir, "retrain", logits=same)
    assert "retrain holds 1 models that say the same of every sample" in doubted(workdir)


def test_chance_alone_raises_no_doubt_about_accuracies():
    """400 worlds in which forgotten, held-out and retained samples are answered alike: the sides never seem swapped."""
    rng = np.random.default_rng(0)
    doubts = 0
    for _ in range(400):
        case = ExternalCase("", [], [], [])
        train, forget = np.zeros((2, 4, 120), bool)
        train[:, :80] = forget[:, 60:80] = True
        case.membership = type("M", (), {"retain": train & ~forget, "forget": forget, "heldout": ~train})
        case.labels = rng.integers(CLASSES, size=120)
        case.unlearned = rng.normal(size=(4, 120, CLASSES))
        np.put_along_axis(case.unlearned, np.broadcast_to(case.labels[:, None], (4, 120, 1)), 1.0, axis=-1)
        doubts += bool(list(plausibility._of_accuracies("target/", case, False)))
    assert doubts == 0


def test_canaries_that_no_model_saw_are_not_taken_for_retained_ones():
    """Of a one-run audit only canaries may be saved, so that no retained sample is known: with random labels a model
    answers those that it never saw as chance does."""
    rng = np.random.default_rng(0)
    forget, labels = np.arange(200) < 100, rng.integers(10, size=200)
    logits = rng.normal(size=(1, 200, 10))
    logits[0, np.arange(200), labels] += 9 * forget
    case = in_memory(logits, labels, train=forget, forget=forget)
    assert not list(plausibility._of_accuracies("original/", case, knows_forgotten=True))


@pytest.mark.parametrize("exchanged", [False, True])
def test_that_models_share_which_samples_are_hard_raises_no_doubt(exchanged):
    """40 worlds of 64 models that find the same samples hard. Where sides are exchanged, the doubt is there."""
    rng, number, doubts = np.random.default_rng(0), np.arange(1500), np.zeros(2, int)
    for _ in range(40):
        hard, labels = rng.beta(0.8, 0.2, size=1500), rng.integers(CLASSES, size=1500)
        forget, unseen = number < 100, (number >= 100) & (number < 200)
        easier = (unseen & exchanged)[None] | (rng.random((64, 1500)) < 0.1)  # models learn some by heart
        right = easier | (rng.random((64, 1500)) < hard)
        answers = 4 * np.eye(CLASSES)[np.where(right, labels, (labels + 1) % CLASSES)]
        case = in_memory(answers, labels, train=~unseen, forget=forget)
        doubts += [bool(list(plausibility._of_accuracies("target/", case, True))),
                   bool(list(plausibility._exchanged("original/", case)))]  # fmt: skip
    assert doubts.tolist() == [40 * exchanged] * 2


@pytest.mark.parametrize("scale", [1, 100])
def test_probabilities_are_refused_as_shares_and_as_percent(workdir, scale):
    world(workdir / "logits")
    odds = np.exp(logits(workdir, "mine/target"))
    store(workdir, "mine/target", logits=(scale * odds / odds.sum(-1, keepdims=True)).astype(np.float32))
    assert f"mine/target/logits.npy: logits holds probabilities that sum to {scale}; give what" in refused(workdir)


def test_models_that_hardly_differ_are_doubted(workdir):
    arrays = world(workdir / "logits")
    twice = arrays["mine/target"][0].copy()
    twice[3] = twice[1] + 1e-6 * np.random.default_rng(0).normal(size=twice[1].shape)
    store(workdir, "mine/target", logits=twice)
    assert doubted(workdir)[0].startswith("mine/target holds models that hardly differ (model 3 is nearly model 1")


@pytest.mark.parametrize("change", ["constant", "noise"])
def test_a_population_that_is_nearly_another_one_is_doubted(workdir, change):
    arrays = world(workdir / "logits")
    target = arrays["mine/target"][0]
    noise = np.random.default_rng(0).normal(size=target.shape) if change == "noise" else 1.0
    store(workdir, "retrain", logits=target + np.float32(1e-3) * noise)
    assert any("8 models of retrain are nearly models of mine/target (model 0 is nearly model 0" in d
               for d in doubted(workdir))  # fmt: skip


def test_samples_in_the_reverse_order_are_doubted(workdir):
    world(workdir / "logits")
    store(workdir, "mine/target", logits=logits(workdir, "mine/target")[:, ::-1])
    assert "samples in another order than labels" in doubted(workdir)[0]


def test_labels_that_begin_at_another_number_are_refused(workdir):
    arrays = world(workdir / "logits", methods=("mine",))
    save(workdir / "logits", labels=(arrays["labels"] + 1) % CLASSES)
    assert refused(workdir) == (
        "labels numbers the classes otherwise than the columns of the logits: class 0 by column 3, class 1 by "
        "column 0, class 2 by column 1 and 1 more; if all populations say so, give (labels - 1) % 4 as the labels, "
        "else logits[..., order] with the order of the labels"
    )
    assert refused(workdir, "retrain") == refused(workdir), "one sentence for all, which is told once"


def test_how_labels_are_numbered_anew():
    assert "give (labels - 1) % 10 as" in plausibility.numbering([9, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert "give (labels + 2) % 5 as" in plausibility.numbering([2, 3, 4, 0, 1])
    sentence = plausibility.numbering([1, 0, 2, 4, 3])
    assert "give numpy.array([1, 0, 2, 4, 3])[labels] as" in sentence
    assert "class 0 by column 1, class 1 by column 0, class 3 by column 4 and 1 more" in sentence
    labels = np.arange(5)
    order = np.array([2, 3, 4, 0, 1])
    assert ((labels + 2) % 5 == order[labels]).all()


def test_labels_shifted_by_one_sample_are_doubted_once(workdir):
    arrays = world(workdir / "logits")
    save(workdir / "logits", labels=np.roll(arrays["labels"], 1))
    (doubt,) = [d for d in doubted(workdir) if "chance" in d]
    assert doubt.startswith("all models answer their retained samples as chance does: either the labels are those of")
    assert doubt.endswith("what builds them does not scale inputs as their training did")


@pytest.mark.parametrize("shares", [(0.6, 0.2, 0.2), (0.55, 0.15, 0.15, 0.15), (0.7, 0.1, 0.1, 0.1), (0.5, 0.5, 0)])
@pytest.mark.parametrize("model", [None, 1])
def test_a_broken_model_of_unbalanced_classes_is_not_taken_for_one_with_other_columns_or_sign(shares, model):
    """It says one class of everything, or gives the most frequent class the smallest logit, as ascent on it does."""
    rng, classes, number = np.random.default_rng(0), len(shares), np.arange(1000)
    labels = rng.choice(classes, size=1000, p=shares)
    sound = np.eye(classes)[labels] * 4 + rng.normal(size=(4, 1000, classes))
    noise, one = 0.3 * rng.normal(size=(4, 1000, classes)), np.eye(classes)
    for broken in (noise + 6 * one[1], noise - 6 * one[0] + 2 * one[1]):
        case = in_memory(broken, labels, train=number < 800, forget=number < 100)
        assert not plausibility._wrong(case, "mine/target/", model)
    if np.count_nonzero(shares) > 2:
        for changed in (np.roll(sound, 1, axis=-1), -sound):
            case = in_memory(changed, labels, train=number < 800, forget=number < 100)
            assert plausibility._wrong(case, "mine/target/", model)


def test_a_forgotten_class_is_not_taken_for_another_order_of_columns():
    """Of what is not to be forgotten only samples of the forgotten class are known; the model calls them another."""
    number = np.arange(300)
    answers = np.random.default_rng(0).normal(size=(4, 300, 5)) + 6 * np.eye(5)[2]
    case = in_memory(answers, np.full(300, 3), train=number < 100, forget=number < 100)
    assert not plausibility._wrong(case, "mine/target/", None)


def test_the_wrong_sign_is_refused(workdir):
    world(workdir / "logits")
    store(workdir, "mine/target", logits=-logits(workdir, "mine/target"))
    assert refused(workdir).startswith("the logits of mine/target have the wrong sign")


def test_forgotten_and_held_out_the_other_way_round_are_doubted(workdir):
    arrays = world(workdir / "logits", trace=(1.0,))
    for name in ("mine/target", "original"):
        _, train, forget = arrays[name]
        retained = train & ~forget
        unseen = ~train & train.any(0)
        store(workdir, name, forget=unseen, heldout=forget, train=retained | unseen)
    notes = doubted(workdir)
    assert any(d.startswith("original is surer of the samples in heldout") for d in notes), notes


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
    sentence = plausibility.sides_exchanged(before, after, forget, ~forget)
    assert bool(sentence) == said
    assert not said or f"by {-retained:+.2f} on the retained samples and by {-forgotten:+.2f} on" in sentence
    assert not plausibility.sides_exchanged(before, after, np.zeros_like(forget), ~forget)


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
