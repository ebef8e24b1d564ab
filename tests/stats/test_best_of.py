"""The best of k of n draws: by hand, against all choices, against pass@k, and without bias."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from unlearning_audit.stats import best_of


def test_three_draws_by_hand():
    """Of 0, .5 and 1 two are chosen in three ways: the largest is 1 twice and .5 once."""
    values = np.array([1.0, 0.0, 0.5])
    assert [best_of.largest(values=values, best_of=k) for k in (1, 2, 3)] == pytest.approx([0.5, 2.5 / 3, 1.0])


@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_it_is_the_mean_over_all_choices(count):
    values = np.random.default_rng(count).standard_normal((3, 7))
    expected = [np.mean([max(subset) for subset in combinations(row, count)]) for row in values]
    np.testing.assert_allclose(best_of.largest(values=values, best_of=count), expected)


@pytest.mark.parametrize(("right", "count"), [(0, 3), (1, 1), (2, 5), (9, 2), (10, 10)])
def test_of_right_and_wrong_it_is_pass_at_k(right, count):
    values = np.r_[np.ones(right), np.zeros(10 - right)]
    expected = 1 - comb(10 - right, count) / comb(10, count)
    assert best_of.largest(values=values, best_of=count) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 4, 12])
def test_it_has_no_bias_where_the_best_of_all_draws_has(count):
    """Uniform numbers: the largest of k has the mean k/(k + 1)."""
    values = np.random.default_rng(0).random((20_000, 12))
    estimates = best_of.largest(values=values, best_of=count)
    assert abs(estimates.mean() - count / (count + 1)) < 4 * estimates.std() / np.sqrt(len(estimates))


def test_more_than_were_drawn_are_refused_and_the_unknown_stays_unknown():
    for count in (0, 4):
        with pytest.raises(ValueError, match=f"the best of {count} needs as many draws, and there are 3"):
            best_of.largest(values=np.zeros(3), best_of=count)
    assert np.isnan(best_of.largest(values=np.array([0.1, np.nan, 0.2]), best_of=1))
