"""Which rows a step reads: keyed, balanced, and shifted as announced."""

import itertools

import numpy as np
import pytest
import torch
from unlearning_audit.training.streams import Order, Rows, crop_and_flip


def test_what_cannot_be_read_is_told():
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 1]], bool)
    assert Rows.where(mask[:, [0, 1, 2]]).index.tolist() == [[0, 1], [0, 2]]
    for message, attempt in (
        ("equally many samples, found 2 to 3", lambda: Rows.where(mask)),
        ("no rows", lambda: next(iter(Order(Rows(np.empty((2, 0), np.int64)), [1, 2], "p", 4)))),
        ("crop_flip is for images, and a sample here is .7,.; set it to none",
         lambda: crop_and_flip(torch.zeros(2, 3, 7), np.zeros((2, 3, 3), np.uint8))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            attempt()


def some_rows(models=3, k=11):
    rng = np.random.default_rng(0)
    return Rows(np.stack([rng.permutation(50)[:k] for _ in range(models)]))


def passes(order: Order, count: int) -> np.ndarray:
    """The first passes of an order, [passes, models, k]."""
    reader = iter(order)
    return np.stack([np.concatenate([next(reader)[0].numpy() for _ in range(order.steps)], 1) for _ in range(count)])


def test_every_pass_reads_each_model_s_rows_once_and_in_a_new_order():
    rows = some_rows()
    order = Order(rows, [1, 2, 3], "p", 4)
    assert [batch.shape for batch, _ in itertools.islice(order, 4)] == [(3, 4), (3, 4), (3, 3), (3, 4)]
    read = passes(Order(rows, [1, 2, 3], "p", 4), 3)
    assert (np.sort(read, 2) == np.sort(rows.index, 1)).all()
    assert not (read[0] == read[1]).all(1).any()


def test_ranked_rows_are_read_by_falling_score_in_every_pass():
    rows, score = some_rows(), np.random.default_rng(1).normal(size=50)
    ranked = rows.ranked(score)
    assert (np.diff(score[ranked.index], axis=1) < 0).all()
    assert (np.sort(ranked.index, 1) == np.sort(rows.index, 1)).all()
    assert (passes(Order(ranked, [1, 2, 3], "p", 4), 2) == ranked.index).all()
    assert (passes(Order(ranked[[2]], [3], "p", 4), 2) == ranked.index[[2]]).all()
    jitter = next(iter(Order(ranked, [1, 2, 3], "p", 11, jitter=True)))[1]
    assert jitter.amax() > 1


def test_the_order_depends_on_the_seed_and_the_purpose_alone():
    rows = some_rows()
    whole = passes(Order(rows, [1, 2, 3], "p", 4), 2)
    assert (passes(Order(rows[[2, 0]], [3, 1], "p", 11), 2) == whole[:, [2, 0]]).all()
    assert (passes(Order(rows, [1, 2, 3], "q", 4), 2) != whole).any(2).all()
    assert (passes(Order(rows, [4, 5, 6], "p", 4), 2) != whole).any(2).all()


def test_jitter_covers_its_range_belongs_to_the_model_and_leaves_the_order_alone():
    rows = Rows(np.arange(400).reshape(2, 200))
    plain = passes(Order(rows, [1, 2], "p", 200), 1)
    batch, jitter = next(iter(Order(rows, [1, 2], "p", 200, jitter=True)))
    assert (batch.numpy() == plain[0]).all()
    assert jitter.amin((0, 1)).tolist() == [0, 0, 0]
    assert jitter.amax((0, 1)).tolist() == [8, 8, 1]
    assert (next(iter(Order(rows[[1]], [2], "p", 200, jitter=True)))[1] == jitter[[1]]).all()


def test_rows_can_be_joined_and_sampled_model_by_model():
    rows = some_rows()
    second = Rows(rows.index + 100)
    assert ((rows + second).index == np.concatenate([rows.index, second.index], 1)).all()
    sample = rows.sample(4, [1, 2, 3], "p")
    assert all(set(d) < set(r) and len(set(d)) == 4 for d, r in zip(sample.index, rows.index, strict=True))
    assert (rows[[2, 0]].sample(4, [3, 1], "p").index == sample.index[[2, 0]]).all()
    assert (rows.sample(4, [1, 2, 3], "q").index != sample.index).any()
    assert len(rows.sample(99, [1, 2, 3], "p")) == len(rows)


def test_crop_and_flip_against_a_plain_loop():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 12, 3, 7, 9)).astype(np.float32)
    jitter = rng.integers(0, [9, 9, 2], (2, 12, 3), dtype=np.uint8)
    jitter[0, 0], jitter[0, 1], jitter[0, 2] = (4, 4, 0), (0, 0, 1), (8, 8, 1)
    padded = np.pad(x, ((0, 0),) * 3 + ((4, 4),) * 2)
    out = crop_and_flip(torch.from_numpy(x), jitter).numpy()
    for m, b in np.ndindex(2, 12):
        down, right, flip = jitter[m, b]
        crop = padded[m, b, :, down : down + 7, right : right + 9]
        assert (out[m, b] == (crop[:, :, ::-1] if flip else crop)).all()
