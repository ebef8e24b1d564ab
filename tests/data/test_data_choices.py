"""Choices among the samples of a source: sizes, test parts, classes, label noise, greyscale."""

from itertools import pairwise

import numpy as np
import pytest
from unlearning_audit import data
from unlearning_audit.data import Source


def source(n=1000, classes=10, test=200, seed=0) -> Source:
    rng = np.random.default_rng(seed)
    part = np.zeros(n, dtype=np.uint8)
    part[n - test :] = 1
    x = np.arange(n, dtype=np.float32)[:, None] * np.float32([1, -1])
    return Source(x, rng.integers(classes, size=n), part, classes)


def test_rows_stay_aligned_through_all_choices_and_without_any():
    whole = source()
    prepared = data.prepare(whole, seed=0)
    for field in ("x", "y", "part"):
        np.testing.assert_array_equal(getattr(prepared, field), getattr(whole, field))
    whole = source(test=0)
    prepared = data.prepare(whole, seed=3, test_size=0.2, per_class=50, size=300, label_noise=0.25)
    assert np.bincount(prepared.part).tolist() == [300, 200]
    assert (np.diff(prepared.index) > 0).all()
    np.testing.assert_array_equal(prepared.x, whole.x[prepared.index])
    np.testing.assert_array_equal(prepared.y_clean, whole.y[prepared.index])


def test_a_smaller_size_is_a_subset_and_the_test_part_is_untouched():
    whole = source()
    subsets = [set(data.prepare(whole, seed=7, size=size).index.tolist()) for size in (1, 80, 0.25, 0.33194, 400, 1.0)]
    assert [len(subset) for subset in subsets] == [201, 280, 400, 466, 600, 1000]  # 265.55 of 800 are 266
    assert all(small < large for small, large in pairwise(subsets))
    assert set(range(800, 1000)) <= subsets[0]
    assert data.prepare(whole, seed=8, size=400).index.tolist() != sorted(subsets[4])


def test_every_sample_is_equally_likely_to_be_kept_or_to_become_a_test_sample():
    whole, draws = source(n=40, test=0, classes=2), 2000
    counts = np.zeros((2, 40))
    for seed in range(draws):
        prepared = data.prepare(whole, seed=seed, test_size=20, size=5)
        counts[prepared.part, prepared.index] += 1
    # Binomial(2000, 1/8) and (2000, 1/2) for each of 40 samples; 4 sd leave 0.3 % for the most extreme of them.
    for kept, p in zip(counts, (1 / 8, 1 / 2), strict=True):
        assert kept.sum() == draws * 40 * p
        assert abs(kept - draws * p).max() < 4 * np.sqrt(draws * p * (1 - p))


@pytest.mark.parametrize("test", [0, 200])
def test_the_test_part_is_drawn_from_the_one_there_is_or_else_from_all(test):
    whole = source(test=test)
    small, large = (data.prepare(whole, seed=1, test_size=size) for size in (100, 0.75))
    drawn, more = (set(subset.index[subset.part == 1]) for subset in (small, large))
    assert (len(drawn), len(more)) == (100, 0.75 * (test or 1000))
    assert drawn < more
    assert not test or more < set(range(800, 1000))
    assert (small.part == 0).sum() == (800 if test else 900)


def test_per_class_keeps_the_first_samples_of_each_class():
    whole = source()
    prepared = data.prepare(whole, seed=0, per_class=30)
    first = [np.flatnonzero((whole.y == label) & (whole.part == 0))[:30] for label in range(10)]
    np.testing.assert_array_equal(prepared.index, [*np.sort(np.concatenate(first)), *range(800, 1000)])


@pytest.mark.parametrize(
    ("kind", "changed", "spread"),
    # any: each of 20,000 randomised labels of 10 classes changes with probability .9; other: all change.
    [("any", 18_000, 4 * np.sqrt(20_000 * 0.9 * 0.1)), ("other", 20_000, 0)],
)
def test_label_noise_hits_the_share_and_no_class_is_preferred(kind, changed, spread):
    whole = source(n=110_000, test=10_000)
    prepared = data.prepare(whole, seed=0, label_noise=0.2, label_noise_seed=5, label_noise_kind=kind)
    moved = prepared.y != prepared.y_clean
    assert not moved[whole.part == 1].any()
    assert abs(moved.sum() - changed) <= spread
    # From every class, a label moves to each of the nine others equally often.
    table = np.zeros((10, 10))
    np.add.at(table, (prepared.y_clean[moved], prepared.y[moved]), 1)
    expected = np.where(np.eye(10, dtype=bool), 0, table.sum(1, keepdims=True) / 9)
    # Chi-squared with 10 × 8 degrees of freedom: 124.8 is exceeded once in 1,000.
    assert ((table - expected) ** 2 / np.maximum(expected, 1)).sum() < 124.8


def test_label_noise_is_exact_nested_in_the_share_and_has_its_own_seed():
    def noisy(share, seed=0, **more):
        return data.prepare(source(), seed=seed, label_noise=share, label_noise_kind="other", **more)

    for size, share, hit in ((800, 0.2, 160), (333, 0.5, 167), (10, 0.25, 3)):
        subset = noisy(share, size=size)
        assert (subset.y != subset.y_clean).sum() == hit
    weak, strong = noisy(0.1), noisy(0.4)
    hit = weak.y != weak.y_clean
    np.testing.assert_array_equal(weak.y[hit], strong.y[hit])
    np.testing.assert_array_equal(noisy(0.1, seed=99).y, weak.y)
    assert (noisy(0.1, label_noise_seed=1).y != weak.y).any()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"size": 801}, "size: 801 .* 1 to 800"),
        ({"size": 0}, "size: 0"),
        ({"size": 1.5}, "size: 1.5"),
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


def grey(x, how):
    n = len(x)
    return data.prepare(Source(x, np.arange(n) % 2, np.zeros(n, np.uint8), 2), seed=0, greyscale=how).x


def test_greyscale_is_the_luma_of_pillow():
    from PIL import Image

    x = np.random.default_rng(0).integers(256, size=(40, 3, 16, 8), dtype=np.uint8)
    x[0], x[1] = 255, 0
    expected = [np.asarray(Image.fromarray(image.transpose(1, 2, 0)).convert("L"))[None] for image in x]
    np.testing.assert_array_equal(grey(x, True), expected)


def test_interleaved_greyscale_mixes_neighbouring_pixels():
    # One pixel row of three pixels: channel-last bytes 10 20 30 | 40 50 60 | 70 80 90, read in thirds.
    x = np.array([[[[10, 40, 70]], [[20, 50, 80]], [[30, 60, 90]]]] * 2, dtype=np.uint8)
    by_hand = [0.299 * a + 0.587 * b + 0.114 * c for a, b, c in ((10, 40, 70), (20, 50, 80), (30, 60, 90))]
    np.testing.assert_array_equal(grey(x, "interleaved")[0, 0, 0], np.round(by_hand))
