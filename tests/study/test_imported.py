"""What the files of a user's folder may hold and where they may lie, what is inferred, and what is refused how."""

import os
import shutil
from dataclasses import fields

import numpy as np
import pytest
from unlearning_audit.evaluation import external
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.protocols import external as protocol
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from external_cases import GOOD, config, memberships, read, save

# ---------------------------------------------------------------- what a file may hold


def with_value(name, at, value):
    changed = GOOD[name].copy()
    changed[at] = value
    return changed


BAD = [
    ("logits", GOOD["logits"].astype(np.int64), "float16, float32 or float64"),
    ("logits", GOOD["logits"][0], r"logits\[None\]"),
    ("logits", GOOD["logits"][:, :, :1], "two classes"),
    ("logits", GOOD["logits"][:0], "needs a model"),
    ("logits", with_value("logits", (1, 0, 0), np.nan), r"NaN or infinite for 1 samples \(0\); leave these out"),
    ("logits", with_value("logits", (3, 0, 0), np.inf), r"NaN or infinite for 1 samples \(0\)"),
    ("logits", np.full((4, 12, 3), 1e300), "model damaged: 4 of 4 models diverged"),
    ("logits", np.full((4, 12, 4), 0.25), "probabilities"),
    ("labels", GOOD["labels"].astype(np.float64), "must be whole numbers"),
    ("labels", GOOD["labels"][:11], r"shape \[11\], but must be \[12\] or \[4, 12\]"),
    ("labels", GOOD["labels"] + 1, "from 1 to 3, but must be 0 to 2"),
    ("labels", GOOD["labels"] - 1, "from -1 to 1"),
    ("train", GOOD["train"].astype(np.uint8), "mask of bool"),
    ("train", GOOD["train"].T, r"shape \[12, 4\], but must be \[4, 12\] or \[12\]"),
    (
        "train",
        with_value("train", (2, slice(0, 3)), False) & ~GOOD["forget"],
        "forget.npy: forget has 12 entries outside",
    ),
    ("train", np.zeros((4, 12), bool), "forget.npy: forget has 12 entries outside"),
    ("forget", np.arange(3), "mask of bool.*indices"),
    ("forget", GOOD["forget"][:2], r"shape \[2, 12\]"),
    ("forget", with_value("forget", (0, 11), True), "1 entries outside.*train.npy"),
    ("forget", with_value("forget", 3, False), "empty for model 3"),
    ("heldout", GOOD["train"], "18 entries in|24 entries in"),
    ("heldout", np.ones(5, bool), r"shape \[5\]"),
    ("heldout", (~GOOD["train"]).astype(float), "mask of bool"),
    ("test", np.ones(11, bool), r"shape \[11\]"),
    ("test", np.arange(12) < 1, "train.npy: train has 4 entries in .*test.npy"),
    ("weight", np.full(12, -1.0), "at least 0"),
    ("weight", np.full(12, np.nan), "finite"),
    ("weight", np.zeros(12), "not all 0"),
    ("weight", np.ones(12, int), "floating-point"),
    ("split", np.zeros(3, int), r"shape \[3\], but must be \[4\]"),
    ("split", np.zeros(4), "whole numbers"),
    ("block", np.zeros(4, int), "without split"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD, ids=[f"{i}-{row[0]}" for i, row in enumerate(BAD)])
def test_a_bad_file_is_named_with_its_field(tmp_path, name, value, words):
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path, **{name: value})
    message = str(caught.value)
    assert ".npy: " in message
    field = message.split(".npy: ")[0].rsplit("/", 1)[1]
    assert message.split(".npy: ", 1)[1].startswith((f"{field} ", f"{field}: "))
    assert "\n" not in message


class _Attack:
    """Makes a folder when somebody reads it as numpy once did."""

    def __init__(self, folder) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_code_in_a_file_is_refused_and_not_run(tmp_path):
    read(tmp_path)
    files, ran = {name: tmp_path / f"{name}.npy" for name in GOOD}, tmp_path / "ran"
    # Only writing may: it stands for somebody who means harm.
    np.save(files["labels"], np.array([_Attack(ran)], object))
    with pytest.raises(ValueError, match=r"labels\.npy: labels cannot be read") as error:
        external.read(files, "target")
    assert "unsafe" not in str(error.value)
    assert not ran.exists()


def test_retrained_models_may_say_what_they_saw_or_what_the_originals_saw(tmp_path):
    retained = GOOD["train"] & ~GOOD["forget"]
    for train in (retained, GOOD["train"]):
        _, member, _ = read(tmp_path, "retrain", train=train)
        assert np.array_equal(member.train, GOOD["train"])
        assert np.array_equal(member.retain, retained)
    with pytest.raises(ValueError, match=r"forget\.npy: forget lies partly in .*train\.npy for model 2"):
        read(tmp_path, "retrain", train=with_value("train", (2, 3), False))


# ---------------------------------------------------------------- what is inferred


def test_what_is_given_is_handed_on_as_it_is(tmp_path):
    weight, heldout = np.arange(12.0), ~GOOD["train"] & (np.arange(12) != 11)
    split, block = np.array([0, 1, 0, 1]), np.array([3, 3, 5, 5])
    data, member, logits = read(
        tmp_path, logits=GOOD["logits"].astype(np.float16), labels=GOOD["labels"].astype(np.uint8), weight=weight,
        heldout=heldout, split=split, block=block, test=np.arange(12) == 11,
    )  # fmt: skip
    expected = {"train": GOOD["train"], "forget": GOOD["forget"], "heldout": heldout, "weight": weight, "split": split,
                "block": block, "seed": np.arange(4), "shadow": np.zeros(4, bool)}  # fmt: skip
    for field in fields(Membership):
        actual = getattr(member, field.name)
        if field.name in expected:
            np.testing.assert_array_equal(actual, expected[field.name], err_msg=field.name)
        else:
            assert actual is None
    assert logits.logits.dtype == np.float32
    np.testing.assert_array_equal(logits.logits, GOOD["logits"].astype(np.float16))
    assert data.x.shape == (12, 0)
    assert (data.classes, data.part.tolist()) == (3, [0] * 11 + [1])
    for name, artifact, kind in (("data", data, Data), ("logits", logits, Logits), ("membership", member, Membership)):
        artifact.write(tmp_path / "node" / f"{name}.npz")
        kind.read(tmp_path / "node" / f"{name}.npz")


def test_heldout_is_what_another_model_saw_else_all_that_was_not_seen(tmp_path):
    _, member, _ = read(tmp_path)
    assert np.array_equal(member.heldout, GOOD["train"][[1, 0, 3, 2]] & ~GOOD["train"])
    _, member, _ = read(tmp_path, train=GOOD["train"][0], forget=GOOD["forget"][0])
    assert np.array_equal(member.heldout, np.tile(~GOOD["train"][0], (4, 1)))
    _, member, _ = read(tmp_path, train=None, heldout=~GOOD["train"])
    assert np.array_equal(member.train, GOOD["forget"])
    assert not member.retain.any()


def test_swapped_pairs_are_found_by_their_memberships(tmp_path):
    _, member, _ = read(tmp_path)
    assert member.split.tolist() == [0, 1, 0, 1]
    assert member.block.tolist() == [0, 0, 0, 0]
    rng = np.random.default_rng(4)
    train, forget = memberships(rng, samples=40, pairs=3, models=2, k=5)
    order = rng.permutation(12)
    heldout = forget.reshape(3, 2, 2, 40)[:, ::-1].reshape(12, 40)
    masks = {"train": train[order], "forget": forget[order], "heldout": heldout[order]}
    _, member, _ = read(tmp_path, logits=rng.normal(size=(12, 40, 2)), labels=np.zeros(40, int), **masks)
    pair, side = order // 4, order // 2 % 2
    for first in range(12):
        for second in range(12):
            assert (member.block[first] == member.block[second]) == (pair[first] == pair[second])
            if pair[first] == pair[second]:
                assert (member.split[first] == member.split[second]) == (side[first] == side[second])
    assert set(member.split) == {0, 1}
    _, member, _ = read(tmp_path, logits=GOOD["logits"], labels=GOOD["labels"],
                        train=np.ones((4, 12), bool), forget=np.eye(4, 12, dtype=bool), heldout=None)  # fmt: skip
    assert member.split.tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- where files lie


def parts(path, method="mine", names=("mine",)):
    options = protocol.Options(path=str(path))
    return protocol.populations(options, method, protocol.methods(options, list(names)))


def test_one_method_may_lie_in_the_folder_itself_and_several_in_folders_of_their_own(tmp_path):
    save(tmp_path, labels=GOOD["labels"])
    save(tmp_path / "target", logits=GOOD["logits"], train=GOOD["train"], forget=GOOD["forget"])
    populations = parts(tmp_path)
    assert list(populations) == ["target"]
    assert populations["target"].files["labels"] == tmp_path / "labels.npy"
    for name in ("one", "two"):
        save(tmp_path / name / "target", logits=GOOD["logits"])
    save(tmp_path, train=GOOD["train"], forget=GOOD["forget"])
    save(tmp_path / "two", forget=GOOD["forget"])
    both = {name: parts(tmp_path, name, ("one", "two"))["target"].files for name in ("one", "two")}
    assert both["one"]["forget"] == tmp_path / "forget.npy"
    assert both["two"]["forget"] == tmp_path / "two/forget.npy"
    assert both["two"]["logits"] == tmp_path / "two/target/logits.npy"


def test_populations_lend_memberships_to_those_with_the_same_models(tmp_path):
    save(tmp_path / "target", **GOOD)
    save(tmp_path / "shadow", **GOOD)
    for name in ("original", "retrain", "shadow_original"):
        save(tmp_path / name, logits=GOOD["logits"], labels=GOOD["labels"])
    populations = parts(tmp_path)
    lent = {name: populations[name].files["train"].parent.name for name in populations}
    assert lent == {"target": "target", "shadow": "shadow", "original": "target", "retrain": "target",
                    "shadow_original": "shadow"}  # fmt: skip
    assert parts(tmp_path, "none")["target"] == populations["original"]
    assert parts(tmp_path, "retrain")["target"] == populations["retrain"]
    assert "shadow" not in parts(tmp_path, "retrain")


@pytest.mark.parametrize(
    ("edit", "methods", "words"),
    [
        (lambda root: shutil.rmtree(root), ["mine"], "there is no such folder"),
        (lambda root: shutil.rmtree(root / "target"), ["mine"], "target: there is no such folder"),
        (lambda root: (root / "target/logits.npy").unlink(), ["mine"], r"target/logits\.npy: this file is missing"),
        (lambda root: (root / "target/labels.npy").unlink(), ["mine"], r"target/labels\.npy: this file is missing"),
        (lambda root: (root / "target/forget.npy").unlink(), ["mine"], r"target/forget\.npy: this file is missing"),
        (
            lambda root: (root / "target/train.npy").unlink(),
            ["mine"],
            r"train\.npy: this file is missing, and so is held",
        ),
        (lambda root: save(root / "target", lables=GOOD["labels"]), ["mine"], r"lables\.npy: .*did you mean 'labels'"),
        (lambda root: None, ["mine", "yours"], "mine/target: there is no such folder"),
        (lambda root: None, ["mine", "retrain"], r"retrain: there are neither logits\.npy nor models"),
        (lambda root: None, ["shadow"], "shadow is a population, not a method"),
    ],
)
def test_a_folder_that_lacks_something_is_refused_before_anything_runs(workdir, edit, methods, words):
    save("logits/target", **GOOD)
    edit(workdir / "logits")
    with pytest.raises(StudyError, match=r"own\.yaml: scenarios\.audit\.protocol\.path.*" + words):
        reading.read(config(methods), "own.yaml")
