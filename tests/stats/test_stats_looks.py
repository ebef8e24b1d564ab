"""Planned looks: levels by hand, and the error over nine of them."""

import numpy as np
import pytest
from scipy.stats import norm
from unlearning_audit.stats import looks

from stat_cases import at_most


def test_levels_add_up_to_what_is_spent_by_each_look():
    spent = np.cumsum(looks.levels(looks=[4, 8, 16]))
    np.testing.assert_allclose(spent, 2 * norm.sf(norm.ppf(0.975) * np.sqrt([4, 2, 1])))
    assert looks.levels(looks=[7]) == pytest.approx([0.05])


@pytest.mark.parametrize("sizes", [[], [0, 4], [4, 4], [8, 4]])
def test_looks_that_do_not_grow_are_refused(sizes):
    with pytest.raises(ValueError, match="looks must be"):
        looks.levels(looks=sizes)


def test_nine_looks_err_as_often_as_one_and_unplanned_ones_three_times_as_often():
    rng, studies, sizes = np.random.default_rng(1), 4000, list(range(4, 21, 2))
    total = rng.standard_normal((studies, 20)).cumsum(axis=1)[:, np.array(sizes) - 1]
    p = 2 * norm.sf(np.abs(total) / np.sqrt(sizes))
    assert (p <= looks.levels(looks=sizes)).any(axis=1).mean() <= at_most(0.05, studies)
    assert (p <= 0.05).any(axis=1).mean() > 0.1
