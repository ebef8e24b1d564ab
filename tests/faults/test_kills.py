"""The short form of the campaign of kills: a run that gets signals ends, leaves nobody behind, and goes on later."""

import numpy as np
import pytest

import kills

pytestmark = pytest.mark.slow


def test_runs_end_by_signals_and_leave_nobody_and_the_next_one_goes_on(finished, workplace):
    for end in ("SIGKILL to Snakemake", "SIGTERM to all", "SIGINT twice"):
        number = list(kills.ENDS).index(end)
        assert kills.attempt(workplace, finished.contents(), np.random.default_rng([1, number]), number) == (end, "")
    workplace.run("--nolock")
    assert workplace.contents() == finished.contents()
