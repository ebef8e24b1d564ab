"""Planned looks: levels by hand, and the error over nine of them."""

import numpy as np
import pytest
from scipy import stats as reference
from unlearning_audit.stats import looks


def test_levels_add_up_and_grow():
    levels = looks.levels(looks=[4, 8, 16])
    np.testing.assert_allclose(sum(levels), 0.05)
    assert levels == sorted(levels)
    z = reference.norm.ppf(0.975)
    np.testing.assert_allclose(levels[0], 2 * reference.norm.sf(z * 2))
    np.testing.assert_allclose(looks.levels(looks=[7], alpha=0.1), [0.1])
    np.testing.assert_allclose(looks.levels(looks=[1, 4])[0], 2 * reference.norm.sf(z * 2))


@pytest.mark.parametrize("sizes", [[], [0, 4], [4, 4], [8, 4]])
def test_looks_that_do_not_grow_are_refused(sizes):
    with pytest.raises(ValueError, match="looks must be"):
        looks.levels(looks=sizes)


def test_nine_looks_err_as_often_as_one_and_unplanned_ones_three_times_as_often():
    rng, studies, sizes = np.random.default_rng(1), 4000, list(range(4, 21, 2))
    total = rng.standard_normal((studies, 20)).cumsum(axis=1)[:, np.array(sizes) - 1]
    p = 2 * reference.norm.sf(np.abs(total) / np.sqrt(sizes))
    planned = (p <= looks.levels(looks=sizes)).any(axis=1).mean()
    assert planned <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / studies)
    assert (p <= 0.05).any(axis=1).mean() > 0.1
