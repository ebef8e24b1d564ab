"""The layout of sources, those that need no files, the user's own arrays, and rows that are equal."""

from pathlib import Path

import numpy as np
import pytest
from unlearning_audit import data
from unlearning_audit.data import Source, arrays, breast_cancer, digits

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
        ({"group": np.zeros(6)}, "group is float64"),
        ({"parent": np.full(6, -1)}, "belong together"),
    ],
)
def test_a_source_says_which_field_is_wrong(change, field):
    good = {
        "x": np.zeros((6, 2), np.float32), "y": np.array([0, 1, 0, 1, 0, 1]),
        "part": np.array([0, 0, 0, 0, 1, 1], np.uint8), "classes": 2,
    }  # fmt: skip
    Source(**good)
    with pytest.raises(ValueError, match=field):
        Source(**good | change)


# ---------------------------------------------------------------- tables of scikit-learn


def test_breast_cancer_is_the_table_of_scikit_learn_standardised():
    from sklearn.datasets import load_breast_cancer

    source, table = breast_cancer.load(breast_cancer.Options(), Path()), load_breast_cancer()
    assert (source.x.dtype, source.classes, source.part.any()) == (np.float32, 2, False)
    assert (source.y == table.target).all()
    np.testing.assert_allclose(source.x, (table.data - table.data.mean(0)) / table.data.std(0), atol=1e-6)


def test_digits_are_the_optical_digits_of_scikit_learn():
    from sklearn.datasets import load_digits

    flat, table = digits.load(digits.Options(), Path()), load_digits()
    assert (flat.x.dtype, flat.classes, flat.part.any()) == (np.float32, 10, False)
    np.testing.assert_array_equal(flat.x * 16, table.data)
    np.testing.assert_array_equal(flat.y, table.target)
    np.testing.assert_array_equal(digits.load(digits.Options(images=True), Path()).x[:, 0] * 16, table.images)


# ---------------------------------------------------------------- arrays


@pytest.fixture
def load(tmp_path):
    """What is read of arrays that are saved first."""

    def saved(*, classes=None, **fields):
        np.savez(tmp_path / "mine.npz", **fields)
        return arrays.load(arrays.Options(path="mine.npz", classes=classes), tmp_path)

    return saved


def test_arrays_are_read_as_they_were_saved(load):
    x = np.random.default_rng(0).integers(256, size=(8, 3, 4, 5), dtype=np.uint8)
    fields = {"x": x, "y": np.array([0, 1, 2, 0, 1, 2, 0, 1], np.int32), "part": np.arange(8) >= 6}
    read = load(**fields, subject=np.array([7, 7, 8, 8, 9, 9, 5, 5], np.int32))
    for name, values in fields.items():
        np.testing.assert_array_equal(getattr(read, name), values)
    assert (read.classes, load(**fields, classes=5).classes) == (3, 5)
    small = data.prepare(read, seed=0, size=2, test_size=1)
    assert small.subject.tolist() == read.subject[small.index].tolist()
    tokens = fields | {"x": np.arange(32, dtype=np.int32).reshape(8, 4), "y": np.zeros(8, int)}
    assert load(**tokens).classes == 2, "texts without labels are of two classes"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part": None}, "it lacks part \\(it has x, y\\)"),
        ({"subject": np.array(["a"] * 4)}, "subject is <U1"),
        ({"y": np.array([0, 1, 0, 300])}, "y has labels"),
        ({"y": np.array([], int)}, "y is int64 \\(0,\\)"),
        ({"part": np.array([0, 0, 1, 256])}, "part must hold 0"),
        ({"part": np.array([0.0, 0, 1, 1])}, "part must hold 0"),
        ({"y": np.array([0, 1, 0])}, "y is int64 \\(3,\\); it must be int64 \\(4,\\)"),
        (
            {"y": np.eye(2)[[0, 1, 0, 1]]},
            "y is float64 \\(4, 2\\); it must hold whole numbers, one for each row of x; s",
        ),
        ({"x": np.zeros((4, 2))}, "x is float64"),
        ({"x": np.array([{}, {}, {}, {}])}, "it holds pickled objects"),
    ],
)
def test_broken_arrays_are_refused_with_file_and_field(load, tmp_path, change, message):
    good = {"x": np.zeros((4, 2), np.float32), "y": np.array([0, 1, 0, 1]), "part": np.array([0, 0, 1, 1])}
    fields = {name: value for name, value in (good | change).items() if value is not None}
    with pytest.raises(ValueError, match=rf"mine\.npz: .*{message}.*numpy\.savez") as error:
        load(classes=2, **fields)
    told = arrays.problem(arrays.Options(path="mine.npz", classes=2), tmp_path)
    assert told == ("path", str(error.value))


# ---------------------------------------------------------------- duplicates


def test_duplicates_agree_with_pairwise_comparison():
    x = np.random.default_rng(1).integers(2, size=(60, 5)).astype(np.float32)
    x[x == 0] *= np.where(np.arange((x == 0).sum()) % 2, 1, -1)  # −0 and 0 are equal numbers
    equal = (x[:, None] == x[None]).all(2)
    expected = {tuple(np.flatnonzero(row)) for row in equal if row.sum() > 1}
    assert [tuple(group.tolist()) for group in data.duplicates(x)] == sorted(expected)


def test_copies_across_roles_agree_with_pairwise_comparison():
    rng = np.random.default_rng(2)
    x = rng.integers(2, size=(40, 4)).astype(np.float32)
    role = rng.integers(3, size=(5, 40))
    equal = (x[:, None] == x[None]).all(2) & ~np.eye(40, dtype=bool)
    for of, among in [(0, 1), (1, 2), (2, 2)]:
        expected = int(((role == of) & ((role == among) @ equal)).sum())
        assert data.copies_across(data.duplicates(x), role == of, role == among) == expected > 0
