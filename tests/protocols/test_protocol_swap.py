"""The protocol of the SWAP test: sizes, swaps, halves, independence of blocks; every draw is uniform."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from protocol_cases import assert_equal, block_of, samples


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5])
@pytest.mark.parametrize("n", [42, 97, 200, 1600])
def test_sizes_are_those_of_the_paper(alpha, n):
    half, exact = n // 2, Fraction(str(alpha)) if alpha != 1 / 3 else Fraction(1, 3)
    k = int(exact * half / (1 + exact))
    m = block_of("swap", data=samples(n), alpha=alpha)
    assert set(m.forget.sum(1)) == set(m.heldout.sum(1)) == {k}
    assert set(m.retain.sum(1)) == {half - 2 * k}
    # α = k / (|R| + k) to the nearest that whole samples allow
    assert k / (half - k) <= alpha + 1e-12 < (k + 1) / (half - k - 1)


@pytest.mark.parametrize("name", ["swap", "random_splits"])
def test_retain_forget_and_heldout_partition_the_half_of_each_side(name):
    data = samples(n=201)  # one sample is left over and belongs to nobody
    m = block_of(name, 5, data)
    parts = m.retain.astype(int) + m.forget + m.heldout
    assert parts.max() == 1
    game, shadow = halves = [np.unique(parts[m.shadow == side], axis=0) for side in (False, True)]
    assert [half.sum(1).tolist() for half in halves] == [[100], [100]]
    assert not (game & shadow).any()
    assert not (game | shadow)[:, data.part == 1].any()
    again = block_of(name, 6, data)
    np.testing.assert_array_equal((again.train | again.heldout)[again.shadow][:1], shadow, "the halves stay")


def test_the_second_split_of_a_pair_swaps_forget_and_heldout_exactly():
    for block in range(3):
        m = block_of("swap", block)
        for side in (False, True):
            first, second = (m[(m.shadow == side) & (m.split == split)] for split in (0, 1))
            assert len(first.seed) == len(second.seed) == (1 if side else 3)
            for one, other in (("forget", "heldout"), ("heldout", "forget"), ("retain", "retain")):
                assert len(np.unique([*getattr(first, one), *getattr(second, other)], axis=0)) == 1


def test_a_models_split_and_seed_do_not_depend_on_how_many_replicates_there_are():
    small, large = block_of("swap", models_per_split=1), block_of("swap", models_per_split=3, shadow_models_per_split=2)
    place = {seed: i for i, seed in enumerate(large.seed.tolist())}
    for i, seed in enumerate(small.seed.tolist()):
        assert_equal(small[[i]], large[[place[seed]]])


def test_random_splits_are_independent_of_each_other():
    """|F ∩ F′| is hypergeometric: mean k²/n and its variance; a swapped pair would always have 0."""
    n, k, draws = 100, 20, 600
    overlap = []
    for block in range(draws):
        m = block_of("random_splits", block, alpha=0.25, models_per_split=1, shadow_models_per_split=0)
        overlap.append(int((m.forget[0] & m.forget[1]).sum()))
    law = stats.hypergeom(n, k, k)
    assert abs(np.mean(overlap) - law.mean()) < 4 * law.std() / np.sqrt(draws)
    assert abs(np.var(overlap) / law.var() - 1) < 4 * np.sqrt(2 / draws)


def test_the_weight_of_a_sample_is_that_of_its_class():
    data = samples()
    assert block_of("swap", data=data).weight is None
    for sensitivity in ({3: 5.0, 7: 0.0}, {"3": 5.0, "7": 0.0}):  # a study's file has text for keys
        weight = block_of("swap", data=data, sensitivity=sensitivity).weight
        np.testing.assert_array_equal(weight, np.where(data.y == 3, 5.0, np.where(data.y == 7, 0.0, 1.0)))
