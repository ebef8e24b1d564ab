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
    (game,) = {tuple(np.flatnonzero(row)) for row in parts[~m.shadow]}
    (shadow,) = {tuple(np.flatnonzero(row)) for row in parts[m.shadow]}
    assert not set(game) & set(shadow)
    assert len(game) == len(shadow) == 100
    assert (data.part[[*game, *shadow]] == 0).all()
    again = block_of(name, 6, data)
    np.testing.assert_array_equal(
        (again.train | again.heldout)[again.shadow][0], parts[m.shadow][0].astype(bool), "the halves stay"
    )


def test_the_second_split_of_a_pair_swaps_forget_and_heldout_exactly():
    for block in range(3):
        m = block_of("swap", block)
        for side in (False, True):
            first, second = (np.flatnonzero((m.shadow == side) & (m.split == split)) for split in (0, 1))
            assert len(first) == len(second) == (1 if side else 3)
            for i in first:
                for j in second:
                    np.testing.assert_array_equal(m.forget[i], m.heldout[j])
                    np.testing.assert_array_equal(m.heldout[i], m.forget[j])
                    np.testing.assert_array_equal(m.retain[i], m.retain[j])


@pytest.mark.parametrize("name", ["swap", "random_splits"])
def test_as_many_models_as_were_asked_for(name):
    m = block_of(name, models_per_split=4, shadow_models_per_split=2)
    counts = {(bool(s), int(i)): int(((m.shadow == s) & (m.split == i)).sum()) for s in (0, 1) for i in (0, 1)}
    assert counts == {(False, 0): 4, (False, 1): 4, (True, 0): 2, (True, 1): 2}
    assert not block_of(name, shadow_models_per_split=0).shadow.any()


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


@pytest.mark.parametrize("name", ["swap", "random_splits"])
def test_every_sample_is_forgotten_equally_often(name):
    blocks = 500
    counts = {False: 0, True: 0}
    for block in range(blocks):
        m = block_of(name, block, models_per_split=1, alpha=0.25)
        for side in counts:
            counts[side] = counts[side] + m.forget[m.shadow == side][0].astype(int)
    for side in counts.values():
        positive = side[side > 0]
        assert len(positive) == 100
        # Counts are binomial(500, 1/5), negatively correlated by the fixed k: (n − 1)/n of the chi-square.
        chi = ((positive - blocks / 5) ** 2).sum() / (blocks * 0.2 * 0.8)
        assert stats.chi2(99).ppf(1e-4) < chi < stats.chi2(99).ppf(1 - 1e-4)


def test_blocks_are_drawn_independently():
    first, second = block_of("swap", 0, samples(2000)), block_of("swap", 1, samples(2000))
    overlap, k = int((first.forget[0] & second.forget[0]).sum()), int(first.forget[0].sum())
    law = stats.hypergeom(1000, k, k)
    assert law.ppf(1e-5) <= overlap <= law.ppf(1 - 1e-5)


def test_the_weight_of_a_sample_is_that_of_its_class():
    data = samples()
    assert block_of("swap", data=data).weight is None
    for sensitivity in ({3: 5.0, 7: 0.0}, {"3": 5.0, "7": 0.0}):  # a study's file has text for keys
        weight = block_of("swap", data=data, sensitivity=sensitivity).weight
        np.testing.assert_array_equal(weight, np.where(data.y == 3, 5.0, np.where(data.y == 7, 0.0, 1.0)))


@pytest.mark.parametrize("name", ["swap", "random_splits"])
def test_too_few_samples_are_told(name):
    block_of(name, data=samples(22), alpha=0.1)
    with pytest.raises(ValueError, match=r"alpha=0\.1 leaves nothing to forget among 10 samples; use more data"):
        block_of(name, data=samples(20), alpha=0.1)
