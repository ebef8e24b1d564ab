"""KLOM by hand."""

import numpy as np
import pytest
from unlearning_audit.stats import klom


def test_four_bins_of_width_one_by_hand():
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 1, 3, 4], [0, 0, 2.5, 3]))
    first, second = np.array([0.25, 0.25, 0.05, 0.5]) / 1.05, np.array([0.5, 0.05, 0.25, 0.25]) / 1.05
    expected = (second * np.log(second / first)).sum()
    for scale, shift in ((1, 0), (3, -7)):  # bins go with the margins
        sides = {"margin": scale * margin + shift, "reference": scale * reference + shift}
        np.testing.assert_allclose(klom.divergence(**sides, bins=4, least=0.05), [expected])


def test_each_sample_has_bins_of_its_own():
    """Of four retrained models three lie in the upper half, of four unlearned ones one; all agree on the other one."""
    margin, reference = np.array([[0.0, 1], [0, 1], [0, 1], [1, 1]]), np.array([[0.0, 1], [1, 1], [1, 1], [1, 1]])
    actual = klom.divergence(margin=margin, reference=reference, bins=2)
    np.testing.assert_allclose(actual, [0.25 * np.log(1 / 3) + 0.75 * np.log(3), 0.0], atol=1e-12)


def test_what_overlaps_nowhere_costs_the_logarithm_of_the_least_share():
    margin, reference = np.zeros((5, 1)), np.ones((5, 1))
    np.testing.assert_allclose(klom.divergence(margin=margin, reference=reference), np.log(1e5), rtol=1e-3)


def test_margins_that_are_none_are_refused():
    with pytest.raises(ValueError, match="finite"):
        klom.divergence(margin=np.full((2, 2), np.inf), reference=np.ones((2, 2)))


def test_the_part_of_bins_without_models_by_hand():
    """Of four bins one holds reference models alone."""
    margin, reference = (np.array(x, float)[:, None] for x in ([0, 0, 19, 19], [0, 0, 19, 5]))
    (part,) = klom.of_empty_bins(margin=margin, reference=reference)
    assert part == pytest.approx(0.25 * np.log(0.25 / 1e-5), rel=1e-3)
