"""A number with its limits, the count it rests on, and why it is empty where it is."""

from dataclasses import dataclass

import numpy as np

#: The level of every interval.
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number, its confidence limits, the count it rests on, and why it is empty where it is NaN."""

    value: float
    low: float
    high: float
    n: int
    note: str = ""


def empty(*, n: int, note: str) -> Estimate:
    """An estimate that cannot be given: NaN with limits NaN, and the reason."""
    return Estimate(np.nan, np.nan, np.nan, n, note)
