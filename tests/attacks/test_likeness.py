"""Models that were mixed are told from models that are only near each other."""

import numpy as np
import pytest
from unlearning_audit.evaluation import likeness


def world(seed, models=6, samples=80, classes=4, common=1.0, noise=0.5):
    """Logits of models that share what they learned, and differ by their seeds."""
    rng = np.random.default_rng(seed)
    return common * rng.normal(size=(1, samples, classes)) + noise * rng.normal(size=(models, samples, classes))


def pairs(before, after, kind):
    return [(i, j) for relation, i, j in likeness.signs_of_mixing(before, after) if relation == kind]


def test_distances_are_those_written_out():
    first, second = world(0, 2), 3 * world(1, 3) + np.random.default_rng(1).normal(size=(3, 80, 1))
    middle = [logits - logits.mean(-1, keepdims=True) for logits in (first, second)]
    for i in range(2):
        spread = np.sqrt(np.mean([np.var(middle[0][i][:, c]) for c in range(4)]))
        for j in range(3):
            expected = np.sqrt(np.mean((middle[0][i] - middle[1][j]) ** 2)) / spread
            np.testing.assert_allclose(likeness.distances(first, second)[i, j], expected)


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.001])
def test_mixed_models_are_found_however_near_models_are(noise):
    before = world(0, noise=noise)
    first, mean = np.repeat(before[:1], 6, axis=0), np.repeat(before.mean(0, keepdims=True), 6, axis=0)
    all_pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    assert pairs(before, first, "alike") == all_pairs
    assert pairs(before, mean, "alike") == all_pairs
    assert pairs(before, np.roll(before, 1, axis=0), "was") == [(i, (i - 1) % 6) for i in range(6)]
    assert pairs(before, before[[0, 1, 2, 3, 2, 5]], "alike") == [(2, 4)]


@pytest.mark.parametrize("seed", range(40))
def test_models_that_were_not_mixed_are_none(seed):
    """Untouched, scaled, retrained, moved towards each other by half, and all saying the same of every sample."""
    before, rng = world(seed, noise=0.2), np.random.default_rng(seed)
    constant = np.tile(rng.normal(size=(6, 1, 4)), (1, 80, 1))
    same = np.tile(rng.normal(size=(1, 1, 4)), (6, 80, 1))
    half = (before + before.mean(0)) / 2
    for after in (before, 1e-3 * before, world(seed + 1, noise=0.2), half, constant, same, np.zeros_like(before)):
        assert list(likeness.signs_of_mixing(before, after)) == []
    # what hardly varied between samples before has no distance that could serve as a scale
    assert list(likeness.signs_of_mixing(constant + 1e-3 * before, before)) == []


def test_twins_are_found_through_a_little_noise_and_constants():
    logits = world(0)
    noisy = logits + 1e-6 * np.random.default_rng(1).normal(size=logits.shape)
    assert list(likeness.twins(logits)) == []
    assert list(likeness.twins(np.concatenate([logits, noisy[:2] + 1e-3]))) == [(0, 6), (1, 7)]


def test_samples_are_spread_over_all():
    rows = np.arange(10, 1010)
    sample = likeness.evenly(rows)
    assert (len(sample), sample[0], sample[-1]) == (256, 10, 1009)
    np.testing.assert_array_equal(likeness.evenly(rows[:5]), rows[:5])
    assert len(likeness.evenly(rows[:0])) == 0
