"""What the files between stages hold, and that each broken promise is told by file and field."""

import re

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Logits, Membership
from unlearning_audit.store.files import write_arrays

DATA = {
    "x": np.arange(12, dtype=np.float32).reshape(4, 3),
    "y": np.array([0, 1, 2, 1]),
    "part": np.array([0, 0, 0, 1], np.uint8),
    "y_clean": np.array([0, 1, 1, 1]),
    "index": np.array([0, 2, 3, 5]),
    "classes": np.array(3),
    "public": np.arange(6, dtype=np.int32).reshape(2, 3),
    "compressed": np.array([9, 8, 7, 6]),
    "tokenizer": np.array([1, 2, 3, 4, 5], np.uint8),
    "group": np.array([0, 0, 0, 1], np.uint8),
}
MEMBERSHIP = {
    "train": np.array([[1, 1, 0, 0], [1, 0, 1, 0]], bool),
    "forget": np.array([[1, 0, 0, 0], [0, 0, 1, 0]], bool),
    "heldout": np.array([[0, 0, 1, 0], [0, 1, 0, 0]], bool),
    "seed": np.array([5, 6]),
    "split": np.array([0, 1]),
    "block": np.array([0, 0]),
    "shadow": np.array([False, True]),
    "weight": np.array([1.0, 0.5, 2.0, 0.0]),
    "labels": np.array([[0, 1, 2, 1], [0, 2, 2, 1]]),
    "replicate": np.array([0, 0]),
}
LOGITS = {
    "logits": np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 4, 3),
    "index": np.arange(4),
    "y": np.array([0, 1, 2, 1]),
}
ALL = {"data": (Data, DATA), "membership": (Membership, MEMBERSHIP), "logits": (Logits, LOGITS)}
KINDS = pytest.mark.parametrize("kind", ALL)


def artifact_of(kind):
    cls, arrays = ALL[kind]
    return cls(**arrays | ({"classes": 3} if kind == "data" else {}))


# ---------------------------------------------------------------- what is written is read


@KINDS
def test_round_trip(tmp_path, kind):
    artifact, cls = artifact_of(kind), ALL[kind][0]
    path = tmp_path / "node-0123456789" / f"{kind}.npz"
    artifact.write(path)
    read = cls.read(path)
    for name, value in ALL[kind][1].items():
        np.testing.assert_array_equal(getattr(read, name), value, strict=name != "classes")


@KINDS
def test_equal_content_is_equal_bytes(tmp_path, kind):
    paths = [tmp_path / str(i) / "node-0123456789" / f"{kind}.npz" for i in range(2)]
    for path in paths:
        artifact_of(kind).write(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


# ---------------------------------------------------------------- every promise


def but(arrays, **fields):
    """``arrays`` with other fields; a field that is None is left out."""
    return {name: value for name, value in {**arrays, **fields}.items() if value is not None}


NAN = np.array([[0, 1, 2], [3, np.nan, 5], [6, 7, 8], [9, np.inf, 11]], np.float32)
BROKEN = [
    ("data", {"x": None}, "x", "is missing"),
    ("data", {"x": DATA["x"].astype(complex)}, "x", "dtype complex128"),
    ("data", {"x": np.float32(1)}, "x", "one row for each sample"),
    ("data", {"x": np.zeros(4, np.float32)}, "x", "one row for each sample"),
    ("data", {"x": np.zeros((0, 3), np.float32)}, "x", "one row for each sample"),
    ("data", {"x": NAN}, "x", "2 values that are NaN or infinite"),
    ("data", {"y": None}, "y", "is missing"),
    ("data", {"y": DATA["y"][:3]}, "y", r"shape \(3,\)"),
    ("data", {"y": DATA["y"].astype(float)}, "y", "dtype float64"),
    ("data", {"y": np.array([0, 1, 3, 1])}, "y", "labels outside 0 … 2"),
    ("data", {"y": np.array([0, 1, -1, 1])}, "y", "labels outside 0 … 2"),
    ("data", {"y_clean": np.array([0, 1, 3, 1])}, "y_clean", "labels outside 0 … 2"),
    ("data", {"y_clean": DATA["y"][:, None]}, "y_clean", r"shape \(4, 1\)"),
    ("data", {"part": None}, "part", "is missing"),
    ("data", {"part": np.array([0, 0, 2, 1])}, "part", "other than 0 (train) and 1 (test)"),
    ("data", {"part": np.array([0, 0, -1, 1])}, "part", "other than 0 (train) and 1 (test)"),
    ("data", {"part": np.zeros(3, np.uint8)}, "part", r"shape \(3,\)"),
    ("data", {"index": np.array([0.0, 1, 2, 3])}, "index", "dtype float64"),
    ("data", {"index": np.array([0, 1, 1, 3])}, "index", "twice"),
    ("data", {"classes": np.array([3])}, "classes", r"shape \(1,\)"),
    ("data", {"public": np.zeros((2, 4), int)}, "public", r"shape \(2, 4\), expected \(any, 3\)"),
    *[("data", {name: np.zeros(3, int)}, name, r"shape \(3,\), expected \(4\)") for name in ("compressed", "group")],
    ("data", {"tokenizer": np.zeros((2, 2), int)}, "tokenizer", r"shape \(2, 2\), expected \(any\)"),
    *[("membership", {name: None}, name, "is missing") for name in
      ("train", "forget", "heldout", "seed", "split", "block", "shadow")],
    ("membership", {"train": MEMBERSHIP["train"].astype(int)}, "train", "dtype int64"),
    ("membership", {"train": MEMBERSHIP["train"][0]}, "train", r"shape \(4,\)"),
    ("membership", {"forget": MEMBERSHIP["forget"][:, :3]}, "forget", r"shape \(2, 3\)"),
    ("membership", {"forget": ~MEMBERSHIP["train"]}, "forget", "4 entries that are not in train"),
    ("membership", {"heldout": MEMBERSHIP["heldout"][:1]}, "heldout", r"shape \(1, 4\)"),
    ("membership", {"heldout": MEMBERSHIP["train"]}, "heldout", "4 entries that are in train"),
    ("membership", {"heldout": MEMBERSHIP["train"] & ~MEMBERSHIP["forget"]}, "heldout", "2 entries that are in train"),
    ("membership", {"seed": np.array([1])}, "seed", r"shape \(1,\)"),
    ("membership", {"split": np.array([0.0, 1.0])}, "split", "dtype float64"),
    ("membership", {"block": np.zeros((2, 1), int)}, "block", r"shape \(2, 1\)"),
    ("membership", {"shadow": np.array([0, 1])}, "shadow", "dtype int64"),
    ("membership", {"weight": np.ones(3)}, "weight", r"shape \(3,\)"),
    ("membership", {"weight": np.array([1, 1, -1, 1.0])}, "weight", "non-negative"),
    ("membership", {"weight": np.zeros(4)}, "weight", "not all zero"),
    ("membership", {"weight": np.array([1, 1, np.nan, 1.0])}, "weight", "1 values that are NaN"),
    ("membership", {"labels": np.zeros((2, 3), int)}, "labels", r"shape \(2, 3\)"),
    ("membership", {"replicate": np.zeros(3, int)}, "replicate", r"shape \(3,\)"),
    ("membership", {"seed": np.array([5, 5])}, "replicate", "trained on different samples"),
    ("membership", {name: value[:0] for name, value in MEMBERSHIP.items() if name != "weight"}, "train", "no model"),
    ("logits", {"logits": None}, "logits", "is missing"),
    ("logits", {"logits": LOGITS["logits"].astype(int)}, "logits", "dtype int64"),
    ("logits", {"logits": LOGITS["logits"][0]}, "logits", r"shape \(4, 3\)"),
    ("logits", {"logits": np.stack([NAN, NAN])}, "logits", "4 values that are NaN or infinite"),
    ("logits", {"index": None}, "index", "is missing"),
    ("logits", {"index": np.arange(3)}, "index", r"shape \(3,\)"),
    ("logits", {"index": np.array([0, 1, 1, 3])}, "index", "twice"),
    ("logits", {"y": None}, "y", "is missing"),
    ("logits", {"y": np.array([0, 1, 3, 1])}, "y", "labels outside 0 … 2"),
    ("logits", {"y": np.array([0, 1, -1, 1])}, "y", "labels outside 0 … 2"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "field", "problem"), BROKEN, ids=[f"{r[0]}.{r[2]}: {r[3]}" for r in BROKEN])
def test_a_broken_promise_is_told_by_file_and_field(tmp_path, kind, change, field, problem):
    cls, arrays = ALL[kind]
    path = tmp_path / f"{kind}.npz"
    write_arrays(path, **but(arrays, **change))
    problem = problem if "\\" in problem else re.escape(problem)
    with pytest.raises(ArtifactError, match=f"^{re.escape(str(path))}: field '{field}' .*{problem}") as error:
        cls.read(path)
    assert "\n" not in str(error.value)


def test_sizes_that_the_caller_knows_are_checked(tmp_path):
    artifact_of("membership").write(tmp_path / "m.npz")
    artifact_of("logits").write(tmp_path / "l.npz")
    Membership.read(tmp_path / "m.npz", samples=4)
    Logits.read(tmp_path / "l.npz", models=2)
    with pytest.raises(ArtifactError, match=r"m.npz: field 'train' has shape \(2, 4\), expected \(any, 5\)"):
        Membership.read(tmp_path / "m.npz", samples=5)
    with pytest.raises(ArtifactError, match=r"l.npz: field 'logits' has shape \(2, 4, 3\), expected \(3, any, any\)"):
        Logits.read(tmp_path / "l.npz", models=3)


def test_a_membership_that_breaks_its_promise_is_not_written(tmp_path):
    with pytest.raises(ArtifactError, match="field 'forget' has 4 entries that are not in train"):
        Membership(**{**MEMBERSHIP, "forget": ~MEMBERSHIP["train"]}).write(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- what memberships can tell


def test_retain_roles_and_labels():
    m = artifact_of("membership")
    part = np.array([0, 0, 0, 1])
    np.testing.assert_array_equal(m.retain, np.array([[0, 1, 0, 0], [1, 0, 0, 0]], bool))
    everything = sum(mask.astype(int) for mask in (m.retain, m.forget, m.heldout, np.tile(part == 1, (2, 1))))
    np.testing.assert_array_equal(everything, np.ones((2, 4)))
    y = np.array([0, 1, 2, 1])
    np.testing.assert_array_equal(m.trained_labels(y), MEMBERSHIP["labels"])
    plain = Membership(**{**MEMBERSHIP, "labels": None})
    assert plain.trained_labels(y) is y


def test_models_are_chosen_and_stacked_in_order():
    m = artifact_of("membership")
    first, second = m[np.array([True, False])], m[1:]
    again = Membership.concatenate([first, second])
    for name in MEMBERSHIP:
        np.testing.assert_array_equal(getattr(again, name), MEMBERSHIP[name])
    turned = Membership.concatenate([second, first])
    np.testing.assert_array_equal(turned.seed, [6, 5])
    np.testing.assert_array_equal(turned.weight, MEMBERSHIP["weight"])


def test_copies_of_one_original_are_trained_once_and_part_ways_afterwards():
    rows = np.array([[1, 1, 0, 0]] * 3 + [[0, 1, 1, 0]], bool)
    base = {name: np.zeros(4, int) for name in ("split", "block")} | {"shadow": np.zeros(4, bool)}
    m = Membership(
        train=rows, forget=np.zeros_like(rows), heldout=np.zeros_like(rows), seed=np.array([9, 9, 9, 4]),
        replicate=np.array([0, 1, 2, 0]), **base,
    )  # fmt: skip
    first, copies = m.originals()
    np.testing.assert_array_equal(m.seed[first][copies], m.seed)
    assert len(first) == 2
    assert len(set(m.unlearning_seeds())) == 4
    alone = Membership(**{f: getattr(m, f) for f in ("train", "forget", "heldout", "seed", *base)})
    assert alone.unlearning_seeds() == [9, 9, 9, 4]
    np.testing.assert_array_equal(alone.originals(), [[0, 1, 2, 3]] * 2)
