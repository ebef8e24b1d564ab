"""Estimates with confidence limits."""

from dataclasses import dataclass

import numpy as np

#: The level of every interval.
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence limits.

    Parameters
    ----------
    value : float
        The number; NaN if it cannot be given.
    low, high : float
        Its confidence limits; NaN if they are unknown.
    n : int
        The count that it rests on.
    note : str
        A remark, or the reason why the value is NaN.
    """

    value: float
    low: float
    high: float
    n: int
    note: str = ""


def empty(*, n: int, note: str) -> Estimate:
    """Return an estimate for a number that cannot be given.

    Parameters
    ----------
    n : int
        The count that the number would rest on.
    note : str
        The reason.

    Returns
    -------
    Estimate
        An estimate whose value and limits are NaN.
    """
    return Estimate(np.nan, np.nan, np.nan, n, note)


def without_interval(value: float, *, n: int, note: str = "") -> Estimate:
    """Return an estimate of a number whose confidence limits are unknown.

    Parameters
    ----------
    value : float
        The number.
    n : int
        The count that it rests on.
    note : str
        A remark.

    Returns
    -------
    Estimate
        An estimate whose limits are NaN.
    """
    return Estimate(value, np.nan, np.nan, n, note)
