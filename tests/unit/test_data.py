"""The layout of sources, and the choices that reduce, split and relabel them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unlearning import data
from unlearning.data import Source, arrays, digits

SCRIPTS = Path(data.__file__).parents[2]


def source(n=1000, classes=10, test=200, seed=0) -> Source:
    rng = np.random.default_rng(seed)
    part = np.zeros(n, dtype=np.uint8)
    part[n - test :] = 1
    x = np.arange(n, dtype=np.float32)[:, None] * np.float32([1, -1])
    return Source(x, rng.integers(classes, size=n), part, classes)


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


def test_naming_a_source_imports_no_heavy_library():
    code = (
        "import sys\n"
        "from unlearning.data import arrays, cifar10, cifar100, digits, fashion_mnist, image_folder, mnist\n"
        "print([m for m in ('torch', 'torchvision', 'sklearn', 'pandas', 'PIL', 'scipy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# ---------------------------------------------------------------- digits and arrays


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


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    np.save(tmp_path / "mine.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("x,y\n1,2\n")
    whole = tmp_path / "cut.npz"
    np.savez(whole, x=np.zeros((4, 2), np.float32), y=np.zeros(4, int), part=np.zeros(4, int))
    whole.write_bytes(whole.read_bytes()[:-40])
    for name in ("mine.npy", "text.npz", "cut.npz", "absent.npz"):
        with pytest.raises(ValueError, match=rf"{name}: .*numpy\.savez"):
            arrays.load(arrays.Options(path=name), tmp_path)


# ---------------------------------------------------------------- choices


def test_without_choices_everything_stays():
    whole = source()
    kept = data.prepare(whole, seed=0)
    assert np.array_equal(kept.x, whole.x)
    assert np.array_equal(kept.y, whole.y)
    assert np.array_equal(kept.y_clean, whole.y)
    assert np.array_equal(kept.part, whole.part)
    assert np.array_equal(kept.index, np.arange(1000))
    assert kept.classes == 10


def test_rows_stay_aligned_through_all_choices():
    whole = source(test=0)
    kept = data.prepare(whole, seed=3, test_size=0.2, per_class=50, size=300, label_noise=0.25)
    assert (kept.part == 0).sum() == 300
    assert (kept.part == 1).sum() == 200
    assert (np.diff(kept.index) > 0).all()
    assert np.array_equal(kept.x, whole.x[kept.index])
    assert np.array_equal(kept.y_clean, whole.y[kept.index])
    assert np.array_equal(kept.y[kept.part == 1], kept.y_clean[kept.part == 1])


def test_a_smaller_size_is_a_subset_and_the_test_part_is_untouched():
    whole = source()
    chosen = [set(data.prepare(whole, seed=7, size=size).index.tolist()) for size in (80, 0.25, 400, 1.0)]
    assert [len(c) for c in chosen] == [280, 400, 600, 1000]
    assert chosen[0] < chosen[1] < chosen[2] < chosen[3]
    assert all(set(range(800, 1000)) <= c for c in chosen)
    assert data.prepare(whole, seed=8, size=400).index.tolist() != sorted(chosen[2])


def test_the_integer_one_is_a_sample_and_the_float_one_is_everything():
    assert (data.prepare(source(), seed=0, size=1).part == 0).sum() == 1
    assert (data.prepare(source(), seed=0, size=1.0).part == 0).sum() == 800


def test_every_sample_is_equally_likely_to_be_kept_or_to_become_a_test_sample():
    whole, draws = source(n=40, test=0, classes=2), 2000
    tested, kept = np.zeros(40), np.zeros(40)
    for seed in range(draws):
        chosen = data.prepare(whole, seed=seed, test_size=20, size=5)
        tested[chosen.index[chosen.part == 1]] += 1
        kept[chosen.index[chosen.part == 0]] += 1
    # Binomial(2000, 1/2) and (2000, 1/8) for each of 40 samples; 4 sd leave 0.3 % for the most extreme of them.
    for counts, p in ((tested, 1 / 2), (kept, 1 / 8)):
        assert counts.sum() == draws * 40 * p
        assert abs(counts - draws * p).max() < 4 * np.sqrt(draws * p * (1 - p))


def test_the_test_part_is_drawn_where_there_is_none():
    whole = source(test=0)
    small, large = (data.prepare(whole, seed=1, test_size=size) for size in (100, 0.3))
    assert (small.part.sum(), large.part.sum()) == (100, 300)
    assert set(np.flatnonzero(small.part)) < set(np.flatnonzero(large.part))
    whole = source()
    few, more = (data.prepare(whole, seed=1, test_size=size) for size in (3, 0.5))
    assert (few.part == 1).sum() == 3
    assert (more.part == 1).sum() == round(0.5 * (whole.part == 1).sum())
    assert set(few.index[few.part == 1]) < set(more.index[more.part == 1]) <= set(np.flatnonzero(whole.part == 1))
    assert np.array_equal(few.index[few.part == 0], np.flatnonzero(whole.part == 0))


def test_per_class_keeps_the_first_samples_of_each_class():
    whole = source()
    kept = data.prepare(whole, seed=0, per_class=30)
    for label in range(10):
        expected = np.flatnonzero((whole.y == label) & (whole.part == 0))[:30]
        assert np.array_equal(kept.index[(kept.y == label) & (kept.part == 0)], expected)
    assert (kept.part == 1).sum() == 200


@pytest.mark.parametrize(
    ("kind", "changed", "spread"),
    # any: each of 20,000 randomised labels of 10 classes changes with probability .9; other: all change.
    [("any", 18_000, 4 * np.sqrt(20_000 * 0.9 * 0.1)), ("other", 20_000, 0)],
)
def test_label_noise_hits_the_share_and_no_class_is_preferred(kind, changed, spread):
    whole = source(n=110_000, test=10_000)
    kept = data.prepare(whole, seed=0, label_noise=0.2, label_noise_seed=5, label_noise_kind=kind)
    moved = kept.y != kept.y_clean
    assert not moved[whole.part == 1].any()
    assert abs(moved.sum() - changed) <= spread
    # From every class, a label moves to each of the nine others equally often.
    table = np.zeros((10, 10))
    np.add.at(table, (kept.y_clean[moved], kept.y[moved]), 1)
    expected = np.where(np.eye(10, dtype=bool), 0, table.sum(1, keepdims=True) / 9)
    # Chi-squared with 10 × 8 degrees of freedom: 124.8 is exceeded once in 1,000.
    assert ((table - expected) ** 2 / np.maximum(expected, 1)).sum() < 124.8


def test_label_noise_counts_exactly_the_share_of_what_is_kept():
    whole = source()
    for size, share in ((800, 0.2), (333, 0.5), (10, 0.25)):
        kept = data.prepare(whole, seed=0, size=size, label_noise=share, label_noise_kind="other")
        assert (kept.y != kept.y_clean).sum() == int(size * share + 0.5)


def test_label_noise_is_nested_in_the_share_and_has_its_own_seed():
    whole = source()
    few, many = (data.prepare(whole, seed=0, label_noise=share, label_noise_kind="other") for share in (0.1, 0.4))
    hit = few.y != few.y_clean
    assert np.array_equal(few.y[hit], many.y[hit])
    assert (many.y != many.y_clean).sum() == 320
    again = data.prepare(whole, seed=99, label_noise=0.1, label_noise_kind="other")
    assert np.array_equal(again.y, few.y)
    other = data.prepare(whole, seed=0, label_noise=0.1, label_noise_seed=1, label_noise_kind="other")
    assert not np.array_equal(other.y, few.y)


def test_the_label_a_sample_would_get_does_not_depend_on_the_size():
    whole = source()
    full, half = (data.prepare(whole, seed=0, size=size, label_noise=1.0) for size in (800, 400))
    assert np.array_equal(full.y[half.index], half.y)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"size": 801}, "size: 801 .* 1 to 800"),
        ({"size": 0}, "size: 0"),
        ({"size": 1.5}, "size: 1.5"),
        ({"size": 0.0}, "size: 0.0"),
        ({"size": True}, "size: True"),
        ({"per_class": 500}, "per_class: cannot keep 500 of the"),
        ({"per_class": 0}, "per_class: cannot keep 0"),
        ({"label_noise": 1.2}, "label_noise: 1.2"),
        ({"label_noise": -0.1}, "label_noise: -0.1"),
        ({"label_noise_kind": "flip"}, "label_noise_kind: 'flip'"),
        ({"greyscale": True}, "greyscale: needs uint8 images"),
    ],
)
def test_impossible_choices_are_named(choice, message):
    with pytest.raises(ValueError, match=message):
        data.prepare(source(), seed=0, **choice)


def test_a_test_part_of_everything_is_refused():
    with pytest.raises(ValueError, match=r"test_size: 1\.0 leaves no training sample"):
        data.prepare(source(test=0), seed=0, test_size=1.0)


def test_greyscale_is_the_luma_of_pillow():
    from PIL import Image

    x = np.random.default_rng(0).integers(256, size=(40, 3, 16, 8), dtype=np.uint8)
    x[0], x[1] = 255, 0
    whole = Source(x, np.arange(40) % 2, np.zeros(40, np.uint8), 2)
    grey = data.prepare(whole, seed=0, greyscale=True).x
    assert grey.shape == (40, 1, 16, 8)
    for image, luma in zip(x, grey, strict=True):
        assert np.array_equal(np.asarray(Image.fromarray(image.transpose(1, 2, 0)).convert("L")), luma[0])


def test_interleaved_greyscale_mixes_neighbouring_pixels():
    # One pixel row of three pixels: channel-last bytes 10 20 30 | 40 50 60 | 70 80 90, read in thirds.
    x = np.array([[[[10, 40, 70]], [[20, 50, 80]], [[30, 60, 90]]]] * 2, dtype=np.uint8)
    whole = Source(x, np.array([0, 1]), np.zeros(2, np.uint8), 2)
    grey = data.prepare(whole, seed=0, greyscale="interleaved").x
    by_hand = [0.299 * a + 0.587 * b + 0.114 * c for a, b, c in ((10, 40, 70), (20, 50, 80), (30, 60, 90))]
    assert np.array_equal(grey[0, 0, 0], np.round(by_hand))


# ---------------------------------------------------------------- duplicates


def test_duplicates_are_the_groups_of_equal_rows():
    x = np.random.default_rng(0).integers(256, size=(50, 3, 4, 4), dtype=np.uint8)
    x[[7, 31]], x[40] = x[2], x[11]
    x[20, 2, 3, 3] = x[19, 2, 3, 3] ^ 1
    x[20].flat[:-1] = x[19].flat[:-1]
    groups = data.duplicates(x)
    assert [g.tolist() for g in groups] == [[2, 7, 31], [11, 40]]
    part = (np.arange(50) >= 30).astype(np.uint8)
    assert data.pairs_across(groups, part).tolist() == [[2, 31], [7, 31], [11, 40]]
    assert data.pairs_across([], part).shape == (0, 2)


def test_duplicates_agree_with_pairwise_comparison():
    x = np.random.default_rng(1).integers(2, size=(60, 5)).astype(np.float32)
    x[x == 0] *= np.where(np.arange((x == 0).sum()) % 2, 1, -1)  # −0 and 0 are equal numbers
    equal = (x[:, None] == x[None]).all(2)
    expected = {tuple(np.flatnonzero(row)) for row in equal if row.sum() > 1}
    groups = [tuple(g.tolist()) for g in data.duplicates(x)]
    assert set(groups) == expected
    assert groups == sorted(groups)


def test_copies_across_roles_are_counted_model_by_model():
    """Rows 0, 1, 2 are equal, and so are 3, 4; of each role by hand."""
    groups = [np.array([0, 1, 2]), np.array([3, 4])]
    forget = np.array([[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 0]], bool)
    retain = np.array([[0, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1]], bool)
    assert data.copies_across(groups, forget, retain) == 2  # rows 0 and 1 of the first model
    assert data.copies_across(groups, retain, forget) == 1
    assert data.copies_across(groups, forget, forget) == 2  # each of the two is the other's copy, none its own
    assert data.copies_across(groups, forget, ~forget) == 4
    assert data.copies_across([], forget, retain) == 0


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
