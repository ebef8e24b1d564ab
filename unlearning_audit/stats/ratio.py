"""Share of traces removed: how much of the distance that doing nothing leaves a method removes, ρ = 1 −
distance(method)/distance(none)."""

import numpy as np

from unlearning_audit.stats import Estimate, empty
from unlearning_audit.stats.paired import Distances

GRID = 48  # directions between no and all of the other distance, on each side
STEPS = 30  # bisections between two of them

UNDEFINED = "by this number doing nothing is not distinguishable from retraining, so there is no share to close"
UNBOUNDED = "the share has no interval: in other pairs doing nothing may leave nothing"


def share_closed(*, distances: Distances, significant: bool, factor: float = 1.0) -> Estimate:
    """Return the share of traces removed, ρ = 1 − distance(method)/distance(none), with an interval after Fieller
    (1954).

    The interval holds every 1 − λ for which distance(method) = λ·distance(none) is not rejected. A negative ρ means
    that the method is further from retraining than doing nothing.

    Parameters
    ----------
    distances : Distances
        Two numbers: the distances of the method and of doing nothing (``none``), in this order. Both are sizes, at
        least 0, so that ρ is at most 1.
    significant : bool
        Whether doing nothing is significantly distinguishable from retraining.
    factor : float
        At least 1. The method's distance may be the largest of several, and the largest of ten attacks that see nothing
        lies above 0 by chance. The factor widens the interval of the distance, towards 0 only, to that of a joint band.
        Without the factor, the interval of ρ covered the truth, 1, in .64 of simulated audits.

    Returns
    -------
    Estimate
        NaN with the reason if the distance of doing nothing is not significant or not above 0. If it is both, but its
        interval contains 0, ρ has no finite limit on one side: the limits are NaN, with the reason.
    """
    method, none = distances.value
    n = distances.design.samples
    if not significant or not none > 0:
        return empty(n=n, note=UNDEFINED)
    value = float(1 - method / none)
    if not none > distances.half_widths()[1]:  # [1]: of doing nothing
        return Estimate(value, np.nan, np.nan, n, "; ".join(filter(None, (distances.note, UNBOUNDED))))

    centre = np.arctan2(method, none)  # the angle of the estimate, at which nothing differs from 0

    def outside(angle: np.ndarray) -> np.ndarray:
        """Return whether cos(angle)·method − sin(angle)·none differs from 0, for each angle; λ is tan(angle).

        ``method`` and ``none`` are the two ``distances``. ``centre`` is the angle of the estimate, and ``factor``
        widens the interval of the method's distance.
        """
        rows = distances.combined(np.stack([np.cos(angle), -np.sin(angle)], axis=1))
        # Only on the side of 0, where angles are below the estimate's: by ``factor`` where the method's distance alone
        # is tested (angle 0), by 1 where that of doing nothing alone is (−π/2).
        wider = np.where(angle < centre, 1 + (factor - 1) * np.cos(angle), 1.0)
        return np.asarray(np.abs(rows.value) > wider * rows.half_widths())

    # From the centre to both sides, the first angle outside is sought on a grid. The last angle of the grid is always
    # outside: it tests doing nothing alone, which is significant. Then the limit is found by bisection.
    angles = np.linspace(centre, [-np.pi / 2, np.pi / 2], GRID + 1)
    first = 1 + outside(angles[1:].ravel()).reshape(GRID, 2).argmax(axis=0)
    beyond, inside = angles[first, [0, 1]], angles[first - 1, [0, 1]]
    for _ in range(STEPS):
        middle = (beyond + inside) / 2
        differs = outside(middle)
        beyond, inside = np.where(differs, middle, beyond), np.where(differs, inside, middle)
    least, most = np.tan(inside).tolist()
    return Estimate(value, 1 - most, min(1 - least, 1.0), n, distances.note)
