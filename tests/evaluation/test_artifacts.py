"""What the files between stages hold, and that each broken promise is told by file and field."""

import re
from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.evaluation import effects as added
from unlearning_audit.evaluation import signal_files
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Logits, Membership, Selection, pairs_problem
from unlearning_audit.evaluation.effects import DecisionRule, Effect
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.signal_files import BySample, Features, Generations, Gradients, Relearned
from unlearning_audit.store.files import FailedError, write_arrays, write_failure

DATA = {
    "x": np.arange(12, dtype=np.float32).reshape(4, 3), "y": np.array([0, 1, 2, 1]), "classes": 3,
    "part": np.array([0, 0, 0, 1], np.uint8), "y_clean": np.array([0, 1, 1, 1]), "index": np.array([0, 2, 3, 5]),
    "public": np.arange(6, dtype=np.int32).reshape(2, 3), "compressed": np.array([9, 8, 7, 6]),
    "tokenizer": np.array([1, 2, 3, 4, 5], np.uint8), "group": np.array([0, 0, 0, 1], np.uint8),
}  # fmt: skip
#: Two models that forgot one half of samples 0 to 3 each, in two requests; the last sample is in no request.
FORGET = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]], bool)
HELDOUT = np.array([[0, 1, 0, 1, 0], [1, 0, 1, 0, 0]], bool)
MEMBERSHIP = {
    "train": ~HELDOUT, "forget": FORGET, "heldout": HELDOUT, "seed": np.array([7, 8]), "split": np.array([0, 1]),
    "block": np.zeros(2, int), "shadow": np.array([False, True]), "weight": np.array([1.0, 0.5, 2.0, 0.0, 1.0]),
    "labels": np.array([[0, 1, 2, 1, 0], [0, 2, 2, 1, 0]]), "replicate": np.array([0, 0]),
    "pair": np.array([0, 0, 1, 1, -1]), "request": np.array([[1, 1, 2, 2, 0]] * 2), "memorised": np.linspace(-1, 3, 5),
}  # fmt: skip
LOGITS = {"logits": np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 4, 3), "index": np.arange(4), "y": DATA["y"]}
SELECTION = {"vulnerable": np.array([True, False, False]), "protected": np.array([False, False, True]),
             "ratio": np.array([1.5, 0.0, -2.0])}  # fmt: skip
RELEARNED = {"steps": np.array([0, 1, 4]), "phi": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
             "right": np.arange(12).reshape(2, 3, 2) % 2 == 0, "taught": np.array([[True, False], [False, True]]),
             "index": np.array([7, 5]), "bits": np.array([4, 8, 2, 3]), "phi_rounded": np.ones((2, 4, 2), np.float32),
             "right_rounded": np.ones((2, 4, 2), bool)}  # fmt: skip
GENERATIONS = {"tokens": np.array([[[3, 4], [5, -1]], [[1, -1], [-1, -1]]], np.int32),
               "index": np.array([[0, 9], [0, -1]])}  # fmt: skip
BY_SAMPLE = {"signal": np.array("tokens"), "index": np.array([2, 0, 3]),
             "values": np.where(np.arange(120) % 7, np.arange(120.0), np.nan).reshape(2, 3, 5, 4)}  # fmt: skip


#: Of one model and four samples, the last of the test part.
PUBLISHED = {
    "forget": np.array([[True, False, False, False]]), "heldout": np.array([[False, True, False, False]]),
    "retain": np.array([[False, False, True, False]]), "test": np.array([False, False, False, True]),
    "samples": np.array(["a", "b", "c", "d"]), "attacks": np.array(["loss"]), "scores": np.full((1, 1, 4), np.nan),
    "readings": np.array(["nll", "rouge"]), "values": np.ones((2, 1, 4)), "direction": np.array([-1, 1]),
    "share": np.array([False, True]), "comparable": np.array(["loss", "nll", "rouge"]), "fair": True, "step": 7,
    "agreements": "[1]", "remarks": "[2]", "aggregates": "[3]",
}  # fmt: skip


#: Kind → its class, its fields, and those that a file may lack.
KINDS = {
    "data": (Data, DATA, [*DATA][6:]),
    "membership": (Membership, MEMBERSHIP, [*MEMBERSHIP][7:]),
    "logits": (Logits, LOGITS, ()),
    "features": (Features, {"features": LOGITS["logits"], "index": np.array([[0, 2, 3, -1], [1, 2, 3, 0]])}, ()),
    "selection": (Selection, SELECTION, ()),
    "relearned": (Relearned, RELEARNED, ("bits", "phi_rounded", "right_rounded")),
    "generations": (Generations, GENERATIONS, ()),
    "gradients": (Gradients, {"squared_norms": np.ones((2, 3)), "mean_squared_norm": np.ones(2)}, ()),
    "by_sample": (BySample, BY_SAMPLE, ()),
    "published": (Published, PUBLISHED, ("fair", "step", "agreements", "remarks", "aggregates")),
}


@pytest.fixture
def told(tmp_path):
    """What is said of a file of a kind with some fields changed (None: left out)."""

    def of(kind, **changes):
        cls, whole, _ = KINDS[kind]
        arrays = {name: value for name, value in (whole | changes).items() if value is not None}
        write_arrays(tmp_path / "a.npz", **arrays)
        with pytest.raises(ArtifactError, match=f"^{re.escape(str(tmp_path))}/a.npz: field [^\n]*$") as error:
            cls.read(tmp_path / "a.npz")
        return str(error.value)

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read_and_every_field_has_its_kind_and_axes(tmp_path, told, kind):
    cls, arrays, optional = KINDS[kind]
    cls(**arrays).write(tmp_path / "b.npz")
    if kind in ("gradients", "by_sample"):
        assert type(signal_files.read(tmp_path / "b.npz", 2)) is cls
    for name, value in arrays.items():
        read = getattr(cls.read(tmp_path / "b.npz"), name)
        np.testing.assert_array_equal(read, value, strict=np.ndim(value) > 0)
        assert f"'{name}' has dtype complex128" in told(kind, **{name: np.zeros(np.shape(value), complex)})
        assert name in optional or "is missing" in told(kind, **{name: None})
        if (kind, name) not in (("data", "x"), ("by_sample", "values")):  # these may have further axes
            assert f"'{name}' has shape " in told(kind, **{name: np.asarray(value)[None]})


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("data", {"x": np.full((4, 3), np.nan, np.float32)}, "'x' has 12 values that are NaN or infinite"),
        ("data", {"index": np.arange(3)}, "'index' has shape (3,), expected (4)"),
        ("features", {"index": np.zeros((2, 3), int)}, "'index' has shape (2, 3), expected (2, 4)"),
        ("by_sample", {"index": np.arange(2)}, "'index' has shape (2,), expected (3)"),
        *[
            ("published", {name: PUBLISHED["forget"]}, "'forget' shares samples with heldout or retain")
            for name in ("heldout", "retain")
        ],
        ("logits", {"logits": np.full((2, 4, 3), np.inf)}, "'logits' has 24 values that are NaN or infinite; what"),
        ("logits", {"index": np.array([0, 1, 1, 3])}, "'index' names some samples twice"),
        ("logits", {"y": np.array([0, 1, 3, 1])}, "'y' has labels outside 0 … 2, the classes of the logits"),
    ],
)
def test_a_broken_promise_is_told_by_file_and_field(told, kind, change, problem):
    assert problem in told(kind, **change)


def test_sizes_that_the_caller_knows_are_checked(tmp_path):
    Membership(**MEMBERSHIP).write(tmp_path / "m.npz")
    Logits(**LOGITS).write(tmp_path / "l.npz")
    with pytest.raises(ArtifactError, match=r"m.npz: field 'train' has shape \(2, 5\), expected \(any, 4\)"):
        Membership.read(tmp_path / "m.npz", samples=4)
    with pytest.raises(ArtifactError, match=r"l.npz: field 'logits' has shape \(2, 4, 3\), expected \(3, any, any\)"):
        Logits.read(tmp_path / "l.npz", models=3)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"forget": HELDOUT}, "'forget' has 4 entries that are not in train"),
        ({"heldout": ~HELDOUT}, "'heldout' has 6 entries that are in train"),
        *[({"weight": np.array(weight)}, "'weight' must be non-negative and not all zero")
          for weight in ([1, 1, -1, 1.0, 1], [0.0] * 5)],
        ({"seed": np.array([7, 7])}, "'replicate' calls models copies that were trained on different"),
        ({"request": np.array([[1, 1, 0, 0, 0]] * 2)}, "'forget' has 2 entries that are part of no request"),
        ({"pair": np.array([0, 0, 0, 1, -1])}, "'pair' gives the number 0 to 3 samples; a pair is two"),
        ({name: value[:0] for name, value in MEMBERSHIP.items() if name not in Membership.SHARED},
         "'train' holds no model"),
    ],
)  # fmt: skip
def test_a_membership_that_breaks_its_promise_is_not_written(tmp_path, change, problem):
    with pytest.raises(ArtifactError, match=f"field {problem}"):
        Membership(**MEMBERSHIP | change).write(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_models_that_were_never_made_are_a_result(tmp_path):
    write_failure(tmp_path / "a.npz", "method", "it diverged")
    with pytest.raises(FailedError, match=r"^it diverged$") as error:
        Relearned.read(tmp_path / "a.npz")
    assert error.value.part == "method"


# ---------------------------------------------------------------- what memberships can tell


def test_models_are_chosen_and_stacked_in_order():
    member = Membership(**MEMBERSHIP)
    turned = Membership.concatenate([member[1:], member[np.array([True, False])]])
    for name, value in MEMBERSHIP.items():
        np.testing.assert_array_equal(getattr(turned, name), value if name in Membership.SHARED else value[::-1])


def test_copies_of_one_original_are_trained_once_and_part_ways_afterwards(tmp_path):
    """Models 0, 2 and 3 are copies of one original, model 1 is another: in the file the originals are in no order."""
    member = replace(Membership(**MEMBERSHIP)[np.array([1, 0, 1, 1])], request=None)
    replace(member, replicate=np.array([0, 0, 1, 2])).write(tmp_path / "m.npz")
    copies = Membership.read(tmp_path / "m.npz")
    first, of = copies.originals()
    assert (first.tolist(), of.tolist()) == ([1, 0], [1, 0, 1, 1])
    assert len(set(copies.unlearning_seeds())) == 4
    alone = replace(member, replicate=None)
    assert alone.unlearning_seeds() == [8, 7, 8, 8]
    np.testing.assert_array_equal(alone.originals(), [[0, 1, 2, 3]] * 2)


def test_after_the_first_request_the_second_is_still_to_come():
    """The first is unlearned as a single one, later ones by other seeds."""
    whole = replace(Membership(**MEMBERSHIP), replicate=None)
    first = whole.until(1)
    assert first.request_count == 1
    assert first.forget.tolist() == [[True] + [False] * 4, [False, True] + [False] * 3]
    assert first.heldout.tolist() == [[False, True] + [False] * 3, [True] + [False] * 4]
    assert first.pair.tolist() == [0, 0, -1, -1, -1]
    assert first.queries.tolist() == [[True] * 4 + [False]] * 2
    assert replace(whole, pair=None).until(1).pair is None
    assert first.unlearning_seeds() == replace(whole, request=None).unlearning_seeds() == [7, 8]
    assert not set(whole.unlearning_seeds()) & {7, 8}


#: Three pairs among eight samples, and two models that each forgot one sample of every pair.
PAIR = np.array([0, 2, -1, 1, 2, 0, -1, 1])
ONE = np.array([[1, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0]], bool)
OTHER = (PAIR >= 0) & ~ONE


def turned(mask, *places):
    """The mask turned over at (model, sample)."""
    changed = mask.copy()
    for place in places:
        changed[place] ^= True
    return changed


@pytest.mark.parametrize(
    ("pair", "forget", "heldout", "problem"),
    [
        (PAIR, ONE, OTHER, ""),
        (np.full(8, -1), ONE, OTHER, "names no pair; give both samples of a pair the same number"),
        (np.where(np.arange(8) == 7, -1, PAIR), ONE, OTHER, "gives the number 1 to 1 samples; a pair is two"),
        (PAIR, turned(ONE, (0, 4), (1, 7)), OTHER, "has pair 2, of which model 0 forgot 2 samples in place of one"),
        (PAIR, turned(ONE, (1, 3)), OTHER, "has pair 1, of which model 1 forgot 0 samples in place of one"),
        (PAIR, ONE, turned(OTHER, (1, 5)), "has pair 0, of which model 1 held out 2 samples in place of one"),
    ],
)
def test_each_model_forgot_one_of_two_canaries_and_never_saw_the_other(pair, forget, heldout, problem):
    message = pairs_problem(pair, forget, heldout)
    assert message.startswith(problem) if problem else message == ""


# ---------------------------------------------------------------- effects

STANDARD = DecisionRule(-1, "auc", ideal=0.5, scale="ratio", deciding=False, two_sided=False, units="forks",
                        narrows=False, chance=added.OF_RETRAINED)  # fmt: skip
PART = Effect(
    ("a", "b"), np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(2, 3, 2),
    np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([4, 2, 9, 7]), STANDARD, np.array([0.25, 1.0]),
)  # fmt: skip


def test_every_field_of_an_effect_is_read_as_it_was_written(tmp_path):
    standards = STANDARD, DecisionRule(1, "accuracy", ideal=0.0), DecisionRule(1, "x", ideal=-3.0, lowest=-4.0)
    parts = {f"part {i}": replace(PART, rule=rule) for i, rule in enumerate(standards)}
    parts["without p"] = replace(PART, p=None)
    added.write(tmp_path / "a.npz", parts)
    stored = added.read(tmp_path / "a.npz")
    assert list(stored) == list(parts)
    for name, part in stored.items():
        np.testing.assert_equal(vars(part), vars(parts[name]))


def test_a_single_number_has_no_samples_splits_or_imaginary_samples_unless_given():
    part = added.single(value=np.arange(3.0), unit=[1, 1, 2], rule=STANDARD)
    assert (part.names, part.value.tolist()) == (("",), [[0.0, 1.0, 2.0]])
    assert (part.influence.shape, part.imagined.shape) == ((1, 3, 0), (1, 3, 0))
    assert (part.unit.tolist(), part.split.tolist(), part.index.tolist()) == ([1, 1, 2], [0, 0, 0], [])
    given = {"influence": np.arange(6.0).reshape(3, 2), "imagined": np.arange(12.0).reshape(3, 4)}
    part = added.single(value=np.arange(3.0), unit=[1, 1, 2], rule=STANDARD, split=[0, 1, 0], **given)
    np.testing.assert_array_equal(part.influence, given["influence"][None])
    np.testing.assert_array_equal(part.imagined, given["imagined"][None])
    assert (part.split.tolist(), part.index.tolist()) == ([0, 1, 0], [0, 1])
    numbered = added.single(value=np.arange(3.0), unit=[1, 1, 2], rule=STANDARD, index=[8, 5], **given)
    assert numbered.index.tolist() == [8, 5]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"value": PART.value[:, :2]}, r"'influence' has shape \(2, 3, 4\), expected \(2, 2, any\)"),
        ({name: getattr(PART, name)[:0] for name in ("names", "value", "influence", "imagined", "p")},
         r"'value' has shape \(0, 3\), but needs a number and a model at least"),
        ({"p": np.array([0.5])}, r"'p' has shape \(1,\), expected \(2\)"),
        ({"latent": np.ones(2)}, r"'latent' has shape \(2,\), expected \(3\)"),
    ],
)  # fmt: skip
def test_an_effect_that_breaks_its_promise_is_told(tmp_path, change, problem):
    added.write(tmp_path / "a.npz", {"x": replace(PART, **change)})
    with pytest.raises(ArtifactError, match=f"a.npz: x: field {problem}"):
        added.read(tmp_path / "a.npz")
