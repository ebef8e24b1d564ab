"""The two-way jackknife by hand: tables of groups and samples whose variances are those of textbooks."""

import numpy as np
import pytest
from scipy import special
from unlearning_audit.stats import jackknife, pseudo


def left_out(cells):
    """Means from all groups, then without each: [1 + groups, 1, samples]."""
    groups = len(cells)
    return np.stack([cells.mean(axis=0), *(np.delete(cells, g, axis=0).mean(axis=0) for g in range(groups))])[:, None]


def textbook(cells):
    """Variances of the mean of a table: over samples, over groups, and the noise that both hold."""
    groups, samples = cells.shape
    over_samples = cells.mean(axis=0).var(ddof=1) / samples
    over_groups = cells.mean(axis=1).var(ddof=1) / groups
    shared = ((cells.var(axis=0, ddof=1) / groups).mean() - over_groups) / (samples - 1)
    return over_samples, over_groups, shared


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
    cells = np.array(TABLES[name])
    a, b, shared = textbook(cells)
    variance = {"samples beyond noise": a, "groups beyond noise": b, "noise beyond both": a}.get(name, a + b - shared)
    np.testing.assert_allclose(max(a, b, a + b - shared), variance)
    groups, samples = cells.shape
    dof = (a + b) ** 2 / (a**2 / (samples - 1) + b**2 / (groups - 1))
    estimate = jackknife.estimate(per_sample=left_out(cells), combine=lambda x: x, n=9, level=0.9)
    half = special.stdtrit(dof, 0.95) * np.sqrt(variance)
    np.testing.assert_allclose(
        [estimate.value, estimate.low, estimate.high], cells.mean() + half * np.array([0, -1, 1])
    )
    assert (estimate.n, estimate.note) == (9, "")


def test_what_samples_and_groups_share_adds_no_variance():
    """Of a logarithm the noise that both count can come out below 0: then both variances add up (Efron and Stein)."""
    cells = np.array([[0.0, -2.0], [2.0, 0.0]])

    def combine(x):
        return np.log(x + 2.5)

    def points(table):
        return 2 * combine(table.mean()) - combine(table.mean(axis=0)[::-1])

    rows, columns = combine(cells.mean(axis=1)), points(cells)
    over_groups, over_samples = rows.var(), columns.var(ddof=1) / 2
    shared = np.array([points(row[None]) for row in cells]).var(axis=0).mean() - over_groups
    assert shared < 0
    dof = (over_samples + over_groups) ** 2 / (over_samples**2 + over_groups**2)
    half = special.stdtrit(dof, 0.975) * np.sqrt(over_samples + over_groups)
    estimate = jackknife.estimate(per_sample=left_out(cells), combine=combine, n=2)
    np.testing.assert_allclose([estimate.low, estimate.high], combine(cells.mean()) + half * np.array([-1, 1]))


def test_one_sample_leaves_the_groups():
    cells = np.array([[1.0], [2.0], [6.0]])
    estimate = jackknife.estimate(per_sample=left_out(cells), combine=lambda x: x, n=1)
    half = special.stdtrit(2, 0.975) * cells.std(ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([estimate.low, estimate.high], [3 - half, 3 + half])


@pytest.mark.parametrize("rows", [1, 2])
def test_one_group_leaves_the_samples_and_says_so(rows):
    cells = np.array([1.0, 2.0, 6.0])
    estimate = jackknife.estimate(per_sample=np.tile(cells, (rows, 1))[:, None], combine=lambda x: x, n=3, note="phi")
    half = special.stdtrit(2, 0.975) * cells.std(ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [3, 3 - half, 3 + half])
    assert estimate.note == "phi; too few models for an interval over models"


def test_one_sample_and_one_group_have_no_interval():
    estimate = jackknife.estimate(per_sample=np.full((2, 1, 1), 3.0), combine=lambda x: x, n=5)
    assert estimate.value == 3
    assert np.isnan([estimate.low, estimate.high]).all()
    assert (estimate.n, estimate.note) == (5, "too few models for an interval over models")


def test_numbers_without_samples_vary_with_groups_alone():
    means = np.array([[3.0], [2.5], [3.0], [3.5]])
    estimate = jackknife.estimate(per_sample=np.zeros((4, 0, 5)), combine=lambda x: 2 * x, per_model=means, n=0)
    variance = 4 * (2 / 3) * 0.5
    half = special.stdtrit(2, 0.975) * np.sqrt(variance)
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [6, 6 - half, 6 + half])


def test_what_never_varies_has_no_width_and_bounds_cut_what_does():
    same = jackknife.estimate(per_sample=np.full((4, 1, 3), 2.0), combine=lambda x: x, n=3)
    assert (same.value, same.low, same.high) == (2, 2, 2)
    cells = np.array(TABLES["groups beyond noise"])
    cut = jackknife.estimate(per_sample=left_out(cells), combine=lambda x: x, n=3, bounds=(4.0, 6.0))
    assert (cut.low, cut.high) == (4, 6)


def test_groups_are_as_equal_as_they_can_be():
    assert jackknife.groups_of(5, groups=2).tolist() == [0, 0, 0, 1, 1]
    assert jackknife.groups_of(7, groups=3).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert jackknife.groups_of(3, groups=8).tolist() == [0, 1, 2]


def test_the_variance_of_three_replicates_by_hand():
    variances = jackknife.jackknife_variance(np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]]))
    np.testing.assert_allclose(variances, [2 / 3 * 14, 2 / 3 * 6])


@pytest.mark.parametrize("samples", [2, 3])
def test_contributions_of_a_square_are_the_pseudo_values_of_two_jackknives(samples):
    """The statistic is x²·m for the mean x over samples and a number m of each group; in loops, as it is defined."""
    rng = np.random.default_rng(0)
    per_sample, per_model = rng.normal(2, 1, (3, 1, samples)), np.array([[1.0], [0.8], [1.3]])
    value, influence = pseudo.of_means(per_sample=per_sample, combine=lambda x, m: x**2 * m, per_model=per_model)

    def statistic(row, without=None):
        values = np.delete(per_sample[row, 0], [] if without is None else [without])
        return values.mean() ** 2 * per_model[row, 0]

    at = [statistic(row) for row in range(3)]
    np.testing.assert_allclose(value, [at[0] - (at[g] - (at[1] + at[2]) / 2) for g in (1, 2)])
    points = np.array([[samples * at[r] - (samples - 1) * statistic(r, i) for i in range(samples)] for r in range(3)])
    points -= points.mean(axis=1, keepdims=True)
    expected = [(points[0] - (points[g] - (points[1] + points[2]) / 2)) / samples for g in (1, 2)]
    np.testing.assert_allclose(influence, expected, atol=1e-14)


@pytest.mark.parametrize(("rows", "samples", "words"), [(2, 5, "not 1 and 5"), (3, 1, "not 2 and 1")])
def test_contributions_need_two_groups_and_two_samples(rows, samples, words):
    with pytest.raises(ValueError, match=words):
        pseudo.of_means(per_sample=np.ones((rows, 1, samples)), combine=lambda x: x)
