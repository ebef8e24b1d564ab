"""The arrays of a user's folder, one by one: what they may hold, what is inferred, and how they are refused."""

from dataclasses import fields

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Data, Logits, Membership

from external_cases import GOOD, read

SAMPLES = np.arange(12)


def with_value(name, *values):
    """An array of GOOD with other values: (place, value) of each."""
    changed = GOOD[name].copy()
    for place, value in values:
        changed[place] = value
    return changed


BAD = [
    ("logits", GOOD["logits"].astype(np.int64), "float16, float32 or float64"),
    ("logits", GOOD["logits"][0], r"logits\[None\]"),
    ("logits", GOOD["logits"][:, :, :1], "two classes"),
    ("logits", with_value("logits", ((1, 0, 0), np.nan), ((3, 2, 0), np.inf)), r"for 2 samples \(0, 2\); leave"),
    ("logits", np.full((4, 12, 3), 1e300), "model damaged: 4 of 4 models diverged"),
    ("logits", np.full((4, 12, 4), 0.25), "probabilities"),
    ("labels", GOOD["labels"][:11], r"shape \[11\], but must be \[12\] or \[4, 12\]"),
    ("labels", GOOD["labels"] + 1, "from 1 to 3, but must be 0 to 2, the classes of the logits"),
    ("train", GOOD["train"].T, r"shape \[12, 4\], but must be \[4, 12\] or \[12\]"),
    ("train", np.zeros((4, 12), bool), "forget.npy: forget has 12 entries outside"),
    ("forget", np.arange(3), "mask of bool.*indices"),
    ("forget", with_value("forget", ((0, 11), True)), "1 entries outside.*train.npy"),
    ("forget", with_value("forget", (3, False)), "empty for model 3"),
    ("heldout", GOOD["train"], "18 entries in|24 entries in"),
    ("test", SAMPLES < 1, "train.npy: train has 4 entries in .*test.npy"),
    ("weight", np.full(12, -1.0), "at least 0"),
    ("weight", np.zeros(12), "not all 0"),
    ("split", np.zeros(3, int), r"shape \[3\], but must be \[4\]"),
    ("block", np.zeros(4, int), "without split"),
    ("pair", np.roll([-1] * 3 + [0, 1, 2, 0, 1, 2] + [-1] * 3, 1), "pair has pair "),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD, ids=[f"{i}-{row[0]}" for i, row in enumerate(BAD)])
def test_a_bad_file_is_named_with_its_field(tmp_path, name, value, words):
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path, **{name: value})
    path, told = str(caught.value).split(".npy: ", 1)
    field = path.rsplit("/", 1)[1]
    assert told.startswith((f"{field} ", f"{field}: "))
    assert "\n" not in told


def test_what_is_given_is_handed_on_as_it_is(tmp_path):
    given = {"weight": np.arange(12.0), "heldout": ~GOOD["train"] & (SAMPLES != 11), "split": np.array([0, 1, 0, 1]),
             "block": np.array([3, 3, 5, 5])}  # fmt: skip
    half = {"logits": GOOD["logits"].astype(np.float16), "labels": GOOD["labels"].astype(np.uint8)}
    data, member, logits = read(tmp_path, **half, **given, test=SAMPLES == 11)
    masks = {"train": GOOD["train"], "forget": GOOD["forget"]}
    expected = given | masks | {"seed": np.arange(4), "shadow": np.zeros(4, bool)}
    for field in fields(Membership):
        np.testing.assert_array_equal(getattr(member, field.name), expected.get(field.name), err_msg=field.name)
    np.testing.assert_array_equal(logits.logits, half["logits"].astype(np.float32), strict=True)
    assert (data.x.shape, data.classes, data.part.tolist()) == ((12, 0), 3, [0] * 11 + [1])
    for name, artifact, kind in (("data", data, Data), ("logits", logits, Logits), ("membership", member, Membership)):
        artifact.write(tmp_path / "node" / f"{name}.npz")
        kind.read(tmp_path / "node" / f"{name}.npz")


def test_two_classes_and_a_single_model_are_enough(tmp_path):
    only = {name: value[:1] for name, value in GOOD.items() if name != "labels"}
    data, member, _ = read(tmp_path, **{**only, "logits": GOOD["logits"][:1, :, :2]}, labels=np.zeros(12, int))
    assert (data.classes, data.y.tolist(), member.labels) == (2, [0] * 12, None)
    np.testing.assert_array_equal(member.heldout, ~GOOD["train"][:1], strict=True)


def test_labels_of_models_stand_for_the_data_by_majority_and_the_smallest_of_equals(tmp_path):
    labels = np.array([[2] * 12, [1] * 12, [2] * 11 + [1], [1] * 11 + [0]])
    data, member, logits = read(tmp_path, labels=labels)
    assert data.y.tolist() == logits.y.tolist() == [1] * 12
    np.testing.assert_array_equal(member.labels, labels, strict=True)


@pytest.mark.parametrize(
    ("changes", "train", "heldout"),
    [
        ({}, GOOD["train"], GOOD["train"][[1, 0, 3, 2]] & ~GOOD["train"]),  # what another model saw
        ({"train": GOOD["train"][0], "forget": GOOD["forget"][0]}, np.tile(GOOD["train"][0], (4, 1)),
         np.tile(~GOOD["train"][0], (4, 1))),  # all that was not seen
        ({"train": None, "heldout": ~GOOD["train"]}, GOOD["forget"], ~GOOD["train"]),
        ({"forget": None}, GOOD["train"], ~GOOD["train"] & GOOD["train"].any(axis=0)),
        ({"forget": None, "train": np.ones(12, bool)}, np.ones((4, 12), bool), np.zeros((4, 12), bool)),
    ],
    ids=["whole", "of all", "unseen", "nothing forgotten", "all seen"],
)  # fmt: skip
def test_what_is_not_given_is_inferred(tmp_path, changes, train, heldout):
    _, member, _ = read(tmp_path, **changes)
    forget = np.zeros((4, 12), bool) if changes.get("forget", True) is None else changes.get("forget", GOOD["forget"])
    np.testing.assert_array_equal(member.train, train, strict=True)
    np.testing.assert_array_equal(member.heldout, heldout, strict=True)
    np.testing.assert_array_equal(member.forget, np.broadcast_to(forget, (4, 12)))
    np.testing.assert_array_equal(member.retain, train & ~member.forget)
    alike = (member.heldout == member.heldout[0]).all()
    assert (member.split.tolist(), member.block.tolist()) == ([0] * 4 if alike else [0, 1, 0, 1], [0] * 4)


def test_where_nothing_is_forgotten_every_model_saw_something(tmp_path):
    nobody = np.where(np.arange(4)[:, None] == 2, False, GOOD["train"])
    with pytest.raises(ValueError, match=r"train\.npy: train is empty for model 2; leave it out of all arrays"):
        read(tmp_path, forget=None, train=nobody)


def test_retrained_models_may_say_what_they_saw_or_what_the_originals_saw(tmp_path):
    retained = GOOD["train"] & ~GOOD["forget"]
    for train in (retained, GOOD["train"]):
        _, member, _ = read(tmp_path, "retrain", train=train)
        np.testing.assert_array_equal(member.train, GOOD["train"])
        np.testing.assert_array_equal(member.retain, retained)
    with pytest.raises(ValueError, match=r"forget\.npy: forget lies partly in .*train\.npy for model 2"):
        read(tmp_path, "retrain", train=with_value("train", ((2, 3), False)))


@pytest.mark.parametrize(
    ("sides", "split", "block"),
    [
        (("ab", "cd", "ba", "dc", "ab"), [0, 0, 1, 1, 0], [0, 1, 0, 1, 0]),
        (("ab", "cd", "ba", "ab", "ef"), [0, 1, 2, 0, 3], [0] * 5),
        (("ab", "bc", "ca", "ab", "ca"), [0, 1, 2, 0, 2], [0] * 5),
    ],
)
def test_pairs_are_numbered_as_they_come(tmp_path, sides, split, block):
    """Every letter is a set of two samples: "ab" forgot a and never saw b."""
    forget, heldout = (
        np.array([np.repeat([side[i] == letter for letter in "abcdef"], 2) for side in sides]) for i in (0, 1)
    )
    logits = np.random.default_rng(3).normal(size=(5, 12, 3))
    _, member, _ = read(tmp_path, logits=logits, train=~heldout, forget=forget, heldout=heldout)
    assert (member.split.tolist(), member.block.tolist()) == (split, block)
    assert member.split.dtype == member.block.dtype == np.int64


def test_canaries_of_retrained_models_are_theirs_only_if_their_coins_are(tmp_path):
    pair = np.array([-1] * 3 + [0, 1, 2, 0, 1, 2] + [-1] * 3)
    for population in ("target", "retrain"):
        np.testing.assert_array_equal(read(tmp_path, population, pair=pair)[1].pair, pair, strict=True)
    assert read(tmp_path, "retrain", pair=np.roll(pair, 1))[1].pair is None
