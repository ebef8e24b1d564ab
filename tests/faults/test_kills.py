"""The short form of the campaign of kills: a run that gets signals ends, leaves nobody behind, and goes on later."""

import numpy as np
import pytest

import kills


@pytest.mark.parametrize("what", ["SIGKILL to Snakemake", "SIGTERM to all", "SIGINT twice"])
def test_a_run_ends_by_signals_and_leaves_nobody(what, finished, workplace):
    number = list(kills.ENDS).index(what)
    assert kills.attempt(workplace, finished.contents(), np.random.default_rng([1, number]), number) == (what, "")
    workplace.run("--unlock", check=False)
    workplace.run()
    assert workplace.contents() == finished.contents()
