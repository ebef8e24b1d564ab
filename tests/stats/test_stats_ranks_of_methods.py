"""Joint bands, adjusted p-values and rank sets: closed forms and error rates with known truth."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from unlearning_audit.stats import rank_sets, simultaneous

from audit_worlds import World


def largest(correlation, seed):
    deviations = simultaneous.deviations(correlation=correlation, rng=np.random.default_rng(seed), draws=40_000)
    return np.abs(deviations).max(axis=1)


def test_adjusted_p_values_of_independent_numbers_are_sidak_s():
    p = np.array([0.001, 0.01, 0.2, 0.9])
    p_adjusted = simultaneous.adjusted(p=p, largest=largest(np.eye(4), 0))
    np.testing.assert_allclose(p_adjusted, 1 - (1 - p) ** 4, atol=4 * 0.5 / np.sqrt(40_000))


def test_adjusted_p_values_of_one_number_that_is_there_twice_are_its_own():
    p = np.array([0.03, 0.03])
    p_adjusted = simultaneous.adjusted(p=p, largest=largest(np.ones((2, 2)), 1))
    np.testing.assert_allclose(p_adjusted, p, atol=4 * np.sqrt(0.03 * 0.97 / 40_000))


def test_joint_band_of_independent_numbers():
    world = World(truth=(0.0,) * 5, common=0.0, samples=2000, asked=900, pairs=2, models=1)
    read = world.read(np.random.default_rng(3))
    band = simultaneous.together(distances=read, rng=np.random.default_rng(4), draws=40_000).alone
    level = 2 * ndtr(ndtri((1 + 0.95 ** (1 / 5)) / 2)) - 1
    np.testing.assert_allclose(band, read.half_widths(level=level, units=False), rtol=0.03)


@pytest.mark.slow
def test_the_strongest_of_several_is_told_as_rarely_as_promised():
    world, audits, rejections, within = World(truth=(0.0,) * 6, common=0.6), 400, 0, 0
    rng = np.random.default_rng(5)
    for _ in range(audits):
        read = world.read(rng)
        joint = simultaneous.together(distances=read, rng=rng, draws=1000)
        rejections += (joint.p <= 0.05).any()
        within += (np.abs(read.value) <= joint.half).all()
        assert (joint.half >= read.half_widths()).all()
        assert (joint.inner < joint.half).all()
    assert rejections / audits <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)
    assert within / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_what_is_told_has_an_interval_that_excludes_retraining():
    world, rng, hits = World(truth=(0.0, 0.02, 0.05, 0.05), pairs=2, pair=0.1, models=3), np.random.default_rng(13), 0
    for _ in range(150):
        read = world.read(rng)
        joint = simultaneous.together(distances=read, rng=rng, draws=500)
        tells = joint.p <= 0.05
        hits += tells.sum()
        assert (joint.alone[tells] < np.abs(read.value[tells])).all()
    assert hits > 50


TRUTHS = {
    "all equal": (0.1,) * 5,
    "two groups": (0.1, 0.1, 0.1, 0.3, 0.3),
    "a ladder": (0.0, 0.05, 0.1, 0.2, 0.4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("pairs", [3, 8])
def test_rank_sets_hold_the_truth(name, pairs):
    truth, rng, audits, inside = np.array(TRUTHS[name]), np.random.default_rng(6), 250, 0
    rank = 1 + (truth[None] > truth[:, None] + 1e-12).sum(axis=1)
    world = World(truth=tuple(truth), pairs=pairs, pair=0.05, model=0.05)
    for _ in range(audits):
        best, worst = rank_sets.rank_sets(distances=world.read(rng), rng=rng, draws=1000)
        inside += ((best <= rank) & (rank <= worst)).all()
    assert inside / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)


@pytest.mark.parametrize("name", TRUTHS)
def test_what_is_proven_is_true(name):
    truth, rng, audits = np.array(TRUTHS[name]), np.random.default_rng(16), 250
    world, right, proofs = World(truth=tuple(truth), pairs=8, pair=0.05, model=0.05), 0, 0
    for _ in range(audits):
        larger = rank_sets.proven(distances=world.read(rng), rng=rng, draws=1000)
        right += not larger[truth[:, None] <= truth[None] + 1e-12].any()
        proofs += larger.any()
    assert right / audits >= 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / audits)
    assert name == "all equal" or proofs / audits > 0.5


def test_ranks_need_two_methods():
    with pytest.raises(ValueError, match="two methods"):
        rank_sets.rank_sets(distances=World(truth=(1.0,)).read(np.random.default_rng(11)), rng=None)
