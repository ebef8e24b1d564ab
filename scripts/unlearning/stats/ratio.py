"""Share closed: how much of what doing nothing leaves a method removes, ρ = 1 − distance(method)/distance(none)."""

import numpy as np

from unlearning.stats import LEVEL, Estimate, empty
from unlearning.stats.paired import Distances

GRID = 48  # directions between no and all of the other distance, on each side
STEPS = 30  # bisections between two of them

UNTOLD = "doing nothing is not told from retraining, so there is no share to close"


def share_closed(*, distances: Distances, level: float = LEVEL, units: bool = True) -> Estimate:
    """ρ with an interval after Fieller (1954): the λ for which distance(method) = λ·distance(none) is not rejected.

    ``distances`` of two numbers, the method's and that of none, in this order. ρ may exceed 1 (beyond retraining) and
    be negative (further away than none). NaN with the reason where none's own interval holds 0 or lies on the far
    side: then no λ is excluded, or none of them means anything. ``units`` as in ``Distances.half_widths``. Raises
    ValueError unless there are two numbers.
    """
    if distances.value.shape != (2,):
        raise ValueError(f"a share needs the distances of a method and of none, not {len(distances.value)} numbers")
    method, none = distances.value
    n = distances.design.samples
    if not none - distances.half_widths(level=level, units=units)[1] > 0:
        return empty(n=n, note=UNTOLD)

    def outside(angle: np.ndarray) -> np.ndarray:
        """Whether cos(angle)·method − sin(angle)·none is told from 0; λ = tan(angle)."""
        rows = distances.of(np.stack([np.cos(angle), -np.sin(angle)], axis=1))
        return np.abs(rows.value) > rows.half_widths(level=level, units=units)

    centre = np.arctan2(method, none)
    limits = []
    for end in (-np.pi / 2, np.pi / 2):
        steps = np.linspace(centre, end, GRID + 1)[1:]
        first = int(np.argmax(outside(steps)))  # the last step is the test of none itself, which is told
        out, inside = steps[first], steps[first - 1] if first else centre
        for _ in range(STEPS):
            middle = (out + inside) / 2
            out, inside = (middle, inside) if outside(np.array([middle]))[0] else (out, middle)
        limits.append(float(np.tan(inside)))
    return Estimate(float(1 - method / none), 1 - limits[1], 1 - limits[0], n, distances.note)
