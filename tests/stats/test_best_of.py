"""The best of k of n draws."""

from itertools import combinations

import numpy as np
import pytest
from unlearning_audit.stats import best_of


@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_it_is_the_mean_over_all_choices(count):
    values = np.random.default_rng(count).standard_normal((3, 7))
    expected = [np.mean([max(subset) for subset in combinations(row, count)]) for row in values]
    np.testing.assert_allclose(best_of.largest(values=values, best_of=count), expected)
    values[1, 2] = np.nan
    assert np.isnan(best_of.largest(values=values, best_of=count)).tolist() == [False, True, False]


@pytest.mark.parametrize("count", [0, 4])
def test_more_than_were_drawn_are_refused(count):
    with pytest.raises(ValueError, match=f"the best of {count} needs as many draws, and there are 3"):
        best_of.largest(values=np.zeros(3), best_of=count)
