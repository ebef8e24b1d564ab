"""Audits of known truth through files, jobs and decision: a class to forget, one model against three retrained ones."""

import pytest
import verdict_audits
from scipy.stats import binom

pytestmark = pytest.mark.slow

AUDITS, ALPHA = 10, 0.05


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    return [verdict_audits.line(1000 + seed) for seed in range(AUDITS)]


def bound(level: float = 1e-4) -> int:
    """So many of the audits may be wrong: more have this probability at most if each is with probability α."""
    return int(binom.isf(level, AUDITS, ALPHA))


def test_a_model_drawn_as_the_retrained_ones_is_seldom_distinguishable(audits):
    """`tests/benchmarks/verdict_audits.py` makes two hundred."""
    wrong = sum(line["mine"] in ("distinguishable", "over_unlearned") for line in audits)
    assert wrong <= bound() < AUDITS / 2


def test_a_model_that_keeps_the_class_is_found(audits):
    """The same check on models that are wrong: it does not pass them."""
    assert sum(line["none"] == "distinguishable" for line in audits) > bound()
