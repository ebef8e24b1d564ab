"""The layout of sources, and the choices that reduce, split and relabel them."""

import re
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import data
from unlearning_audit.data import Source, arrays, breast_cancer, digits

SCRIPTS = Path(data.__file__).parents[2]


# ---------------------------------------------------------------- layout


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"x": np.zeros((6, 2))}, "x is float64"),
        ({"x": np.zeros((6, 4, 4), np.uint8)}, "x is uint8"),
        ({"x": np.full((6, 2), np.nan, np.float32)}, "x has values"),
        ({"y": np.array([0, 1, 0, 1, 0])}, "y is int64 \\(5,\\)"),
        ({"y": np.array([0, 1, 0, 1, 0, 1], np.int32)}, "y is int32"),
        ({"y": np.array([0, 1, 0, 1, 0, 2])}, "y has labels 0 … 2"),
        ({"y": np.array([0, 1, 0, 1, 0, -1])}, "y has labels -1"),
        ({"part": np.array([0, 0, 0, 0, 1, 2], np.uint8)}, "part must be"),
        ({"part": np.zeros(6, bool)}, "part must be"),
        ({"part": np.ones(6, np.uint8)}, "no training sample"),
        ({"classes": 1}, "at least 2"),
    ],
)
def test_a_source_says_which_field_is_wrong(change, field):
    good = {
        "x": np.zeros((6, 2), np.float32),
        "y": np.array([0, 1, 0, 1, 0, 1]),
        "part": np.array([0, 0, 0, 0, 1, 1], np.uint8),
        "classes": 2,
    }
    Source(**good)
    with pytest.raises(ValueError, match=field):
        Source(**good | change)


# ---------------------------------------------------------------- digits and arrays


def test_breast_cancer_is_the_table_of_scikit_learn_standardised():
    from sklearn.datasets import load_breast_cancer

    source, table = breast_cancer.load(breast_cancer.Options(), Path()), load_breast_cancer()
    assert (source.x.dtype, source.classes, source.part.any()) == (np.float32, 2, False)
    assert (source.y == table.target).all()
    assert np.abs(source.x * table.data.std(0) + table.data.mean(0) - table.data).max() < 1e-3
    assert np.abs(source.x.mean(0)).max() < 1e-6
    assert np.abs(source.x.std(0) - 1).max() < 1e-5


def test_digits_are_the_optical_digits_of_scikit_learn():
    flat = digits.load(digits.Options(), Path())
    assert flat.x.shape == (1797, 64)
    assert flat.x.dtype == np.float32
    assert np.array_equal(np.unique(flat.x * 16), np.arange(17))
    assert np.bincount(flat.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert not flat.part.any()
    assert data.duplicates(flat.x) == []
    images = digits.load(digits.Options(images=True), Path())
    assert np.array_equal(images.x.reshape(1797, 64), flat.x)
    # The first digit is a 0: dark in the middle of the picture, ink around it.
    assert flat.y[0] == 0
    assert images.x[0, 0, 3:5, 3].max() < images.x[0, 0, 3:5, 2].min()


def test_tokens_whose_labels_are_all_0_are_texts_of_two_classes(tmp_path):
    tokens, zeros = np.arange(40, dtype=np.int32).reshape(10, 4), np.zeros(10, np.int64)
    np.savez(tmp_path / "mine.npz", x=tokens, y=zeros, part=zeros)
    assert arrays.load(arrays.Options(path="mine.npz"), tmp_path).classes == 2
    np.savez(tmp_path / "mine.npz", x=tokens.astype(np.float32), y=zeros, part=zeros)
    with pytest.raises(ValueError, match="classes be at least 2"):
        arrays.load(arrays.Options(path="mine.npz"), tmp_path)


def test_arrays_may_say_whose_each_sample_is(tmp_path):
    x, y, part = np.zeros((6, 2), np.float32), np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    np.savez(tmp_path / "mine.npz", x=x, y=y, part=part, subject=np.array([7, 7, 8, 8, 9, 9], np.int32))
    source = arrays.load(arrays.Options(path="mine.npz"), tmp_path)
    small = data.prepare(source, seed=0, size=2, test_size=1)
    assert source.subject.tolist() == [7, 7, 8, 8, 9, 9]
    assert small.subject.tolist() == source.subject[small.index].tolist()
    np.savez(tmp_path / "mine.npz", x=x, y=y, part=part, subject=np.array(["a"] * 6))
    with pytest.raises(ValueError, match="subject is <U1"):
        arrays.load(arrays.Options(path="mine.npz"), tmp_path)


def test_arrays_are_read_as_they_were_saved(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(8, 3, 4, 5), dtype=np.uint8)
    y, part = np.array([0, 1, 2, 0, 1, 2, 0, 1], np.int32), np.arange(8) >= 6
    np.savez(tmp_path / "mine.npz", x=x, y=y, part=part)
    read = arrays.load(arrays.Options(path="mine.npz"), tmp_path)
    assert np.array_equal(read.x, x)
    assert np.array_equal(read.y, y)
    assert read.part.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert read.classes == 3
    assert arrays.load(arrays.Options(path="mine.npz", classes=5), tmp_path).classes == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part": None}, "it lacks part \\(it has x, y\\)"),
        ({"y": np.float32([0, 1, 0, 1])}, "y is float32"),
        ({"y": np.array([0, 1, 0, 300])}, "y has labels"),
        ({"y": np.array([], int)}, "y is int64 \\(0,\\)"),
        ({"part": np.array([0, 0, 1, 256])}, "part must hold 0"),
        ({"part": np.array([0.0, 0, 1, 1])}, "part must hold 0"),
        (
            {"part": np.array([0, 0, 1])},
            "part is int64 \\(3,\\), and y is int64 \\(4,\\); both must have the rows of x",
        ),
        ({"y": np.array([0, 1, 0])}, "part is int64 \\(4,\\), and y is int64 \\(3,\\); both must have the rows"),
        ({"y": np.eye(2)[[0, 1, 0, 1]]}, "y is float64 \\(4, 2\\).*it is one-hot: take y.argmax\\(axis=1\\)"),
        ({"y": np.eye(2, dtype=int)[[0, 1, 0, 1]]}, "it is one-hot: take y.argmax\\(axis=1\\)"),
        ({"y": np.array([[0], [1], [0], [1]])}, "y is int64 \\(4, 1\\).*; take y\\[:, 0\\]"),
        ({"y": np.array([0.0, 1, 0, 1])}, "y is float64 \\(4,\\).*; take y.astype\\(int\\)"),
        (
            {"y": np.array([0.5, 1, 0, 1])},
            "y is float64 \\(4,\\); it must hold whole numbers, one for each row of x; save",
        ),
        ({"y": np.array(["b", "a", "b", "a"])}, "; take numpy.unique\\(y, return_inverse=True\\)\\[1\\]"),
        ({"x": np.zeros((4, 2))}, "x is float64"),
        ({"x": np.array([{}, {}, {}, {}])}, "it holds pickled objects"),
    ],
)
def test_broken_arrays_are_refused_with_file_and_field(tmp_path, change, message):
    good = {"x": np.zeros((4, 2), np.float32), "y": np.array([0, 1, 0, 1]), "part": np.array([0, 0, 1, 1])}
    fields = {name: value for name, value in (good | change).items() if value is not None}
    np.savez(tmp_path / "mine.npz", **fields)
    with pytest.raises(ValueError, match=rf"mine\.npz: .*{message}.*numpy\.savez"):
        arrays.load(arrays.Options(path="mine.npz", classes=2), tmp_path)
    where, told = arrays.problem(arrays.Options(path="mine.npz", classes=2), tmp_path)
    assert where == "path"
    assert re.search(message, told)


# ---------------------------------------------------------------- duplicates


def test_duplicates_agree_with_pairwise_comparison():
    x = np.random.default_rng(1).integers(2, size=(60, 5)).astype(np.float32)
    x[x == 0] *= np.where(np.arange((x == 0).sum()) % 2, 1, -1)  # −0 and 0 are equal numbers
    equal = (x[:, None] == x[None]).all(2)
    expected = {tuple(np.flatnonzero(row)) for row in equal if row.sum() > 1}
    groups = [tuple(g.tolist()) for g in data.duplicates(x)]
    assert set(groups) == expected
    assert groups == sorted(groups)


def test_copies_across_roles_agree_with_pairwise_comparison():
    rng = np.random.default_rng(2)
    x = rng.integers(2, size=(40, 4)).astype(np.float32)
    role = rng.integers(3, size=(5, 40))
    equal = (x[:, None] == x[None]).all(2) & ~np.eye(40, dtype=bool)
    for of, among in [(0, 1), (1, 2), (2, 2)]:
        expected = sum(
            bool((equal[i] & (role[m] == among)).any()) for m in range(5) for i in np.flatnonzero(role[m] == of)
        )
        assert data.copies_across(data.duplicates(x), role == of, role == among) == expected > 0
