"""The arrays of a user's folder, one by one: what they may be, what becomes of them, and how they are refused."""

import numpy as np
import pytest

from external_cases import GOOD, read

RNG = np.random.default_rng(3)


def refused(folder, population="target", **changes) -> str:
    """What is said of the files of GOOD with some changed (None: left out), without the folder."""
    with pytest.raises(ValueError, match=r"\.npy: ") as error:
        read(folder, population, **changes)
    return str(error.value).replace(f"{folder}/", "")


# ---------------------------------------------------------------- logits and labels


def test_two_classes_and_a_single_model_are_enough(tmp_path):
    only = {name: value[:1] for name, value in GOOD.items() if name != "labels"}
    data, member, _ = read(tmp_path, **{**only, "logits": GOOD["logits"][:1, :, :2]}, labels=np.zeros(12, int))
    assert data.classes == 2
    assert data.y.tolist() == [0] * 12
    assert member.labels is None
    np.testing.assert_array_equal(member.heldout, ~GOOD["train"][:1], strict=True)


def test_labels_of_models_stand_for_the_data_by_majority_and_the_smallest_of_equals(tmp_path):
    labels = np.array([[2] * 12, [1] * 12, [2] * 11 + [1], [1] * 11 + [0]])
    data, member, logits = read(tmp_path, labels=labels)
    assert data.y.tolist() == [1] * 12
    assert logits.y.tolist() == [1] * 12
    np.testing.assert_array_equal(member.labels, labels, strict=True)
    assert refused(tmp_path, labels=np.where(labels == 0, 3, labels)) == (
        "labels.npy: labels has values from 1 to 3, but must be 0 to 2, the classes of the logits"
    )


# ---------------------------------------------------------------- memberships


def test_files_for_all_models_are_those_of_each(tmp_path):
    train, forget, heldout = np.arange(12) < 6, np.arange(12) < 2, np.arange(12) > 8
    _, member, _ = read(tmp_path, train=train, forget=forget, heldout=heldout)
    for name, mask in (("train", train), ("forget", forget), ("heldout", heldout)):
        np.testing.assert_array_equal(getattr(member, name), np.tile(mask, (4, 1)))


def test_nothing_need_be_forgotten(tmp_path):
    _, member, _ = read(tmp_path, forget=None)
    assert not member.forget.any()
    np.testing.assert_array_equal(member.train, GOOD["train"])
    np.testing.assert_array_equal(member.heldout, ~GOOD["train"] & GOOD["train"].any(axis=0), strict=True)
    assert (member.split.tolist(), member.block.tolist()) == ([0, 1, 0, 1], [0] * 4)
    _, member, _ = read(tmp_path / "all", forget=None, train=np.ones(12, bool))
    assert not member.heldout.any()
    assert (member.split.tolist(), member.block.tolist()) == ([0] * 4, [0] * 4)
    nobody = np.where(np.arange(4)[:, None] == 2, False, GOOD["train"])
    assert refused(tmp_path, forget=None, train=nobody) == (
        "train.npy: train is empty for model 2; leave it out of all arrays"
    )


# ---------------------------------------------------------------- pairs


def masks(*sides):
    """forget and heldout of models that forgot what the first names and never saw what the second names."""
    forget, heldout = (np.array([[sample in side[i] for sample in range(12)] for side in sides]) for i in (0, 1))
    return {"train": ~heldout, "forget": forget, "heldout": heldout}


@pytest.mark.parametrize(
    ("sides", "split", "block"),
    [
        (("ab", "cd", "ba", "dc", "ab"), [0, 0, 1, 1, 0], [0, 1, 0, 1, 0]),
        (("ba", "ab", "dc", "cd", "cd"), [0, 1, 0, 1, 1], [0, 0, 1, 1, 1]),
        (("ab", "cd", "ba", "ab", "ef"), [0, 1, 2, 0, 3], [0] * 5),
        (("ab", "bc", "ca", "ab", "ca"), [0, 1, 2, 0, 2], [0] * 5),
        (("ab", "ac", "ba", "ca", "ad"), [0, 1, 2, 3, 4], [0] * 5),
    ],
)
def test_pairs_are_numbered_as_they_come(tmp_path, sides, split, block):
    """Every letter is a set of two samples: "ab" forgot a and never saw b."""
    arrays = masks(*[[{2 * ord(letter) - 194, 2 * ord(letter) - 193} for letter in side] for side in sides])
    logits = RNG.normal(size=(5, 12, 3))
    _, member, _ = read(tmp_path, logits=logits, **arrays)
    assert (member.split.tolist(), member.block.tolist()) == (split, block)
    assert member.split.dtype == member.block.dtype == np.int64


def test_canaries_of_retrained_models_are_theirs_only_if_their_coins_are(tmp_path):
    pair = np.array([-1] * 3 + [0, 1, 2, 0, 1, 2] + [-1] * 3)
    for population in ("target", "retrain"):
        _, member, _ = read(tmp_path, population, pair=pair)
        np.testing.assert_array_equal(member.pair, pair, strict=True)
    second = np.roll(pair, 1)
    assert read(tmp_path, "retrain", pair=second)[1].pair is None
    assert refused(tmp_path, pair=second).startswith("pair.npy: pair has pair ")
