"""Choices among the samples of a source: sizes, test parts, classes, label noise, greyscale."""

import numpy as np
import pytest
from unlearning_audit import data
from unlearning_audit.data import Source

from data_cases import source


def test_without_choices_everything_stays():
    whole = source()
    prepared = data.prepare(whole, seed=0)
    assert np.array_equal(prepared.x, whole.x)
    assert np.array_equal(prepared.y, whole.y)
    assert np.array_equal(prepared.y_clean, whole.y)
    assert np.array_equal(prepared.part, whole.part)
    assert np.array_equal(prepared.index, np.arange(1000))
    assert prepared.classes == 10


def test_rows_stay_aligned_through_all_choices():
    whole = source(test=0)
    prepared = data.prepare(whole, seed=3, test_size=0.2, per_class=50, size=300, label_noise=0.25)
    assert (prepared.part == 0).sum() == 300
    assert (prepared.part == 1).sum() == 200
    assert (np.diff(prepared.index) > 0).all()
    assert np.array_equal(prepared.x, whole.x[prepared.index])
    assert np.array_equal(prepared.y_clean, whole.y[prepared.index])
    assert np.array_equal(prepared.y[prepared.part == 1], prepared.y_clean[prepared.part == 1])


def test_a_smaller_size_is_a_subset_and_the_test_part_is_untouched():
    whole = source()
    subsets = [set(data.prepare(whole, seed=7, size=size).index.tolist()) for size in (80, 0.25, 400, 1.0)]
    assert [len(c) for c in subsets] == [280, 400, 600, 1000]
    assert subsets[0] < subsets[1] < subsets[2] < subsets[3]
    assert all(set(range(800, 1000)) <= c for c in subsets)
    assert data.prepare(whole, seed=8, size=400).index.tolist() != sorted(subsets[2])


def test_the_integer_one_is_a_sample_and_the_float_one_is_everything():
    assert (data.prepare(source(), seed=0, size=1).part == 0).sum() == 1
    assert (data.prepare(source(), seed=0, size=1.0).part == 0).sum() == 800


def test_every_sample_is_equally_likely_to_be_kept_or_to_become_a_test_sample():
    whole, draws = source(n=40, test=0, classes=2), 2000
    tested, retained = np.zeros(40), np.zeros(40)
    for seed in range(draws):
        prepared = data.prepare(whole, seed=seed, test_size=20, size=5)
        tested[prepared.index[prepared.part == 1]] += 1
        retained[prepared.index[prepared.part == 0]] += 1
    # Binomial(2000, 1/2) and (2000, 1/8) for each of 40 samples; 4 sd leave 0.3 % for the most extreme of them.
    for counts, p in ((tested, 1 / 2), (retained, 1 / 8)):
        assert counts.sum() == draws * 40 * p
        assert abs(counts - draws * p).max() < 4 * np.sqrt(draws * p * (1 - p))


def test_the_test_part_is_drawn_where_there_is_none():
    whole = source(test=0)
    small, large = (data.prepare(whole, seed=1, test_size=size) for size in (100, 0.3))
    assert (small.part.sum(), large.part.sum()) == (100, 300)
    assert set(np.flatnonzero(small.part)) < set(np.flatnonzero(large.part))
    whole = source()
    fewer, more = (data.prepare(whole, seed=1, test_size=size) for size in (3, 0.5))
    assert (fewer.part == 1).sum() == 3
    assert (more.part == 1).sum() == round(0.5 * (whole.part == 1).sum())
    assert set(fewer.index[fewer.part == 1]) < set(more.index[more.part == 1]) <= set(np.flatnonzero(whole.part == 1))
    assert np.array_equal(fewer.index[fewer.part == 0], np.flatnonzero(whole.part == 0))


def test_per_class_keeps_the_first_samples_of_each_class():
    whole = source()
    prepared = data.prepare(whole, seed=0, per_class=30)
    for label in range(10):
        expected = np.flatnonzero((whole.y == label) & (whole.part == 0))[:30]
        assert np.array_equal(prepared.index[(prepared.y == label) & (prepared.part == 0)], expected)
    assert (prepared.part == 1).sum() == 200


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


def test_label_noise_counts_exactly_the_share_of_what_is_kept():
    whole = source()
    for size, share in ((800, 0.2), (333, 0.5), (10, 0.25)):
        prepared = data.prepare(whole, seed=0, size=size, label_noise=share, label_noise_kind="other")
        assert (prepared.y != prepared.y_clean).sum() == int(size * share + 0.5)


def test_label_noise_is_nested_in_the_share_and_has_its_own_seed():
    whole = source()
    weak, strong = (data.prepare(whole, seed=0, label_noise=share, label_noise_kind="other") for share in (0.1, 0.4))
    hit = weak.y != weak.y_clean
    assert np.array_equal(weak.y[hit], strong.y[hit])
    assert (strong.y != strong.y_clean).sum() == 320
    again = data.prepare(whole, seed=99, label_noise=0.1, label_noise_kind="other")
    assert np.array_equal(again.y, weak.y)
    reseeded = data.prepare(whole, seed=0, label_noise=0.1, label_noise_seed=1, label_noise_kind="other")
    assert not np.array_equal(reseeded.y, weak.y)


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
