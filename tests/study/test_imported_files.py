"""The arrays of a user's folder, one by one: what they may be, what becomes of them, and how they are refused."""

import numpy as np
import pytest
from unlearning_audit.evaluation import external

from external_cases import GOOD, read, save

RNG = np.random.default_rng(3)


def refused(folder, population="target", **changes) -> str:
    """What is said of the files of GOOD with some changed (None: left out), without the folder."""
    with pytest.raises(ValueError, match=r"\.npy: ") as error:
        read(folder, population, **changes)
    return str(error.value).replace(f"{folder}/", "")


# ---------------------------------------------------------------- logits and labels


@pytest.mark.parametrize(("rows", "total"), [([0.5, 0.5, 0], 1), ([50, 50.6, 0], 101), ([50, 49.4, 0], 99)])
def test_probabilities_and_percentages_are_no_logits(tmp_path, rows, total):
    message = refused(tmp_path, logits=np.tile(np.array(rows), (4, 12, 1)))
    assert message.startswith(
        f"logits.npy: logits holds probabilities that sum to {total}; give what goes into softmax"
    )


@pytest.mark.parametrize("row", [[0.5, 0.9, 0.1], [0.3, 0.3, 0.3], [-0.5, 0.5, 1.0], [-50.0, 50, 100], [50, 51.5, 0]])
def test_logits_that_sum_to_nearly_the_same_are_logits(tmp_path, row):
    _, _, logits = read(tmp_path, logits=np.tile(np.array(row), (4, 12, 1)))
    np.testing.assert_allclose(logits.logits[3, 11], row, rtol=1e-6)


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


def test_weights_may_be_0_for_some(tmp_path):
    _, member, _ = read(tmp_path, weight=(np.arange(12) == 5).astype(np.float16))
    assert member.weight.tolist() == [0.0] * 5 + [1.0] + [0.0] * 6
    assert member.weight.dtype == np.float64


@pytest.mark.parametrize("model", [0, 3])
def test_a_retrained_model_has_seen_all_or_nothing_of_the_forget_set(tmp_path, model):
    """Two of the three samples of one model's forget set are said to be seen; elsewhere it is all or none."""
    train = GOOD["train"] & ~GOOD["forget"]
    train[1] = GOOD["train"][1]
    train[model, np.flatnonzero(GOOD["forget"][model])[:2]] = True
    for population in ("retrain", "retrain_control"):
        assert refused(tmp_path, population, train=train) == (
            f"forget.npy: forget lies partly in train.npy for model {model}; a retrained model has seen none of it"
        )


@pytest.mark.parametrize(("borrower", "lender"), [("retrain", "target"), ("a", "b")])
def test_one_membership_may_be_lent_to_another_number_of_models(tmp_path, borrower, lender):
    save(tmp_path / borrower, logits=GOOD["logits"][:3], labels=GOOD["labels"])

    def lent(**arrays):
        save(tmp_path / lender, **arrays)
        files = {name: tmp_path / lender / f"{name}.npy" for name in arrays}
        return external.read(
            {"logits": tmp_path / borrower / "logits.npy", "labels": tmp_path / borrower / "labels.npy"} | files,
            borrower,
        )

    train, forget = GOOD["train"][0], GOOD["forget"][0]
    for models in (1, 2, 3, 5):
        _, member, _ = lent(train=np.tile(train, (models, 1)), forget=np.tile(forget, (models, 1)))
        np.testing.assert_array_equal(member.train, np.tile(train, (3, 1)))
    masks = {"train": np.tile(train, (2, 1)), "forget": np.tile(forget, (2, 1))}
    for wrong, words in (
        (np.zeros((0, 12), bool), r"shape \[0, 12\]"),
        (masks["forget"].astype(np.uint8), "dtype uint8"),
        (masks["forget"][:, :11], r"shape \[2, 11\]"),
        (np.stack([forget, train]), r"shape \[2, 12\]"),
        (masks["forget"][None], r"shape \[1, 2, 12\]"),
    ):
        with pytest.raises(ValueError, match=f"forget.npy: forget has {words}"):
            lent(**{**masks, "forget": wrong})


# ---------------------------------------------------------------- pairs


def test_splits_without_blocks_are_of_one_block(tmp_path):
    _, member, _ = read(tmp_path, split=np.array([0, 0, 1, 1]))
    assert (member.split.tolist(), member.block.tolist()) == ([0, 0, 1, 1], [0, 0, 0, 0])
    assert refused(tmp_path, block=np.zeros(4, int)) == (
        "block.npy: block says nothing without split; give split or leave block out"
    )
    assert refused(tmp_path, split=np.zeros((4, 12), int)).startswith(
        "split.npy: split has shape [4, 12], but must be [4];"
    )


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
