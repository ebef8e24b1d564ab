"""Estimates with confidence limits."""

from dataclasses import dataclass

import numpy as np

#: The level of every interval.
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number ``value`` with its confidence limits ``low`` and ``high``, the count ``n`` that it rests on, and a
    ``note``, which gives the reason where the value is NaN."""

    value: float
    low: float
    high: float
    n: int
    note: str = ""


def empty(*, n: int, note: str) -> Estimate:
    """Return an estimate for a number that cannot be given: value and limits are NaN, and ``note`` is the reason."""
    return Estimate(np.nan, np.nan, np.nan, n, note)
