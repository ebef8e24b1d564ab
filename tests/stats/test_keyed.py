"""Every random draw belongs to one key."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.randomness import keyed
from unlearning_audit.randomness.keyed import generator, seed_of


def test_seeds_are_the_same_in_every_process_and_version():
    """The values are part of the contract: other ones would rename nothing and change every artifact."""
    assert seed_of(0, "model", 3) == 1229137554994445125
    assert generator(0, "halves").permutation(8).tolist() == [5, 0, 3, 6, 7, 4, 2, 1]
    code = "from unlearning_audit.randomness.keyed import seed_of; print(seed_of(0, 'model', 3))"
    places = {"PYTHONPATH": str(Path(keyed.__file__).parents[2]), "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=places)
    assert int(run.stdout) == seed_of(0, "model", 3)


def test_seeds_fit_in_int64_and_use_all_63_bits():
    seeds = np.array([seed_of("range", i) for i in range(4000)], dtype=np.int64)
    assert seeds.min() >= 0
    assert len(set(seeds.tolist())) == len(seeds)
    means = ((seeds[:, None] >> np.arange(63)) & 1).mean(0)
    assert np.abs(means - 0.5).max() < 5 * 0.5 / np.sqrt(len(seeds))


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 23), (12, 3)), (("a", "b"), ("ab",)), (("a",), ("a", "")), ((0, "model"), ("model", 0)), ((-1,), (1,))],
)
def test_different_keys_are_different_streams(first, second):
    assert seed_of(*first) != seed_of(*second)
    assert not np.array_equal(generator(*first).random(4), generator(*second).random(4))
