"""The two-way jackknife: tables of groups and samples whose variances are those of textbooks, and pseudo-values."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import jackknife, paired

from stat_cases import at_least, three


def left_out(cells):
    """Means from all groups, then without each: [1 + groups, 1, samples]."""
    return np.stack([cells.mean(axis=0), *(np.delete(cells, g, axis=0).mean(axis=0) for g in range(len(cells)))])[
        :, None
    ]


def same(x):
    return x


TABLES = {
    "both vary": [[1.0, 2.0, 4.0], [2.0, 3.5, 5.0], [0.0, 1.0, 4.0]],
    "two of each": [[1.0, 2.0], [2.0, 5.0]],
    "noise beyond both": [[1.0, -1.0, 0.5], [-1.0, 1.0, 0.0]],
    "samples beyond noise": [[1.0, 5.0, 9.0, 2.0], [2.0, 5.0, 8.0, 3.0]],
    "groups beyond noise": [[1.0, 2.0, 1.0], [5.0, 4.0, 5.5], [9.0, 9.0, 8.0]],
    "no noise": [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_mean_has_the_interval_of_a_two_way_table(name):
    """Variances over samples, over groups, and the noise that both hold."""
    cells = np.array(TABLES[name])
    groups, samples = cells.shape
    a, b = cells.mean(axis=0).var(ddof=1) / samples, cells.mean(axis=1).var(ddof=1) / groups
    shared = ((cells.var(axis=0, ddof=1) / groups).mean() - b) / (samples - 1)
    t_samples, t_groups = special.stdtrit([samples - 1, groups - 1], 0.975) ** 2
    both = t_samples * max(a - shared, 0) + t_groups * b
    estimate = jackknife.estimate(per_sample=left_out(cells), combine=same, n=9)
    half = np.sqrt(max(t_samples * a, both))
    np.testing.assert_allclose(three(estimate), cells.mean() + half * np.array([0, -1, 1]))
    assert (estimate.n, estimate.note) == (9, "")


def test_what_samples_and_groups_share_adds_no_variance():
    """Of a logarithm the noise that both count can come out below 0: then both variances add up (Efron and Stein)."""
    cells = np.array([[0.0, -2.0], [2.0, 0.0]])

    def combine(x):
        return np.log(x + 2.5)

    def points(table):
        return 2 * combine(table.mean()) - combine(table.mean(axis=0)[::-1])

    over_groups, over_samples = combine(cells.mean(axis=1)).var(), points(cells).var(ddof=1) / 2
    assert np.array([points(row[None]) for row in cells]).var(axis=0).mean() < over_groups
    half = special.stdtrit(1, 0.975) * np.sqrt(over_samples + over_groups)
    estimate = jackknife.estimate(per_sample=left_out(cells), combine=combine, n=2)
    np.testing.assert_allclose(three(estimate), combine(cells.mean()) + half * np.array([0, -1, 1]))


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_one_sample_leaves_the_groups_and_one_group_the_samples(groups):
    values = np.array([1.0, 2.0, 6.0])
    several = groups > 1
    cells = left_out(values[:, None]) if several else np.tile(values, (1 + groups, 1))[:, None]
    estimate = jackknife.estimate(per_sample=cells, combine=same, n=3, note="phi")
    half = special.stdtrit(2, 0.975) * values.std(ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(three(estimate), [3, 3 - half, 3 + half])
    assert estimate.note == "phi" + "; too few models for an interval over models" * (not several)


def test_one_sample_and_one_group_have_no_interval():
    estimate = jackknife.estimate(per_sample=np.full((2, 1, 1), 3.0), combine=same, n=5)
    np.testing.assert_equal(three(estimate), [3, np.nan, np.nan])
    assert (estimate.n, estimate.note) == (5, "too few models for an interval over models")


def test_numbers_without_samples_vary_with_groups_alone():
    means = np.array([[3.0], [2.5], [3.0], [3.5]])
    estimate = jackknife.estimate(per_sample=np.zeros((4, 0, 5)), combine=lambda x: 2 * x, per_model=means, n=0)
    half = special.stdtrit(2, 0.975) * np.sqrt(4 * (2 / 3) * 0.5)
    np.testing.assert_allclose(three(estimate), [6, 6 - half, 6 + half])


def test_what_never_varies_has_no_width_and_bounds_cut_what_does():
    still = jackknife.estimate(per_sample=np.full((4, 1, 3), 2.0), combine=same, n=3)
    assert three(still) == [2, 2, 2]
    cells = np.array(TABLES["groups beyond noise"])
    cut = jackknife.estimate(per_sample=left_out(cells), combine=same, n=3, bounds=(4.0, 6.0))
    assert (cut.low, cut.high) == (4, 6)


def test_groups_are_as_equal_as_they_can_be():
    groups = [jackknife.groups_of(models, groups=count).tolist() for models, count in ((5, 2), (7, 3), (3, 8))]
    assert groups == [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 2, 2], [0, 1, 2]]


@pytest.mark.parametrize("samples", [2, 3])
def test_effects_to_a_square_are_the_pseudo_values_of_two_jackknives(samples):
    """In loops, as it is defined."""
    per_sample = np.random.default_rng(0).normal(2, 1, (3, 1, samples))
    value, influence = jackknife.group_values(per_sample=per_sample, combine=np.square)

    def statistic(row, without=()):
        return np.delete(per_sample[row, 0], without).mean() ** 2

    at = [statistic(row) for row in range(3)]
    np.testing.assert_allclose(value, [at[0] - (at[g] - (at[1] + at[2]) / 2) for g in (1, 2)])
    points = np.array([[samples * at[r] - (samples - 1) * statistic(r, [i]) for i in range(samples)] for r in range(3)])
    points -= points.mean(axis=1, keepdims=True)
    expected = [(points[0] - (points[g] - (points[1] + points[2]) / 2)) / samples for g in (1, 2)]
    np.testing.assert_allclose(influence, expected, atol=1e-14)


def test_differences_of_ratios_cover_the_truth():
    """F/F₀ of two methods on the same groups and samples: of skewed points that share what samples and groups do."""
    rng, audits, inside = np.random.default_rng(2), 150, 0
    for _ in range(audits):
        shared = rng.exponential(size=(1, 60)) * rng.gamma(20, 1 / 20, (8, 1))
        *methods, null = (left_out(mean * shared * rng.gamma(4, 1 / 4, (8, 60))) for mean in (0.10, 0.16, 0.20))
        parts = [jackknife.group_values(per_sample=np.hstack([x, null]), combine=np.divide) for x in methods]
        value, influence = (np.stack([part[i] for part in parts]) for i in (0, 1))
        gap = paired.distances(value=value, influence=influence, unit=np.arange(8)).combined([[1, -1]])
        inside += abs(gap.value[0] + 0.3) <= gap.half_widths()[0]
    assert inside / audits >= at_least(0.93, audits)
