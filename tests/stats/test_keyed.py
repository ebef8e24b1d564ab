"""Every random draw belongs to one key."""

import numpy as np
import pytest
from unlearning_audit.randomness.keyed import generator, seed_of


def test_seeds_are_the_same_in_every_process_and_version():
    """The values are part of the contract: other ones would rename nothing and change every artifact."""
    assert seed_of(0, "model", 3) == 1229137554994445125
    assert generator(0, "halves").permutation(8).tolist() == [5, 0, 3, 6, 7, 4, 2, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 23), (12, 3)), (("a", "b"), ("ab",)), (("a",), ("a", "")), ((0, "model"), ("model", 0)), ((-1,), (1,))],
)
def test_different_keys_are_different_streams(first, second):
    assert seed_of(*first) != seed_of(*second)
    assert not np.array_equal(generator(*first).random(4), generator(*second).random(4))
