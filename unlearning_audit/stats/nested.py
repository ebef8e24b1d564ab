"""Separate two sources of randomness: models from one original differ by unlearning alone, others by training as
well."""

import numpy as np
from scipy import special

from unlearning_audit.stats import LEVEL, Estimate, empty
from unlearning_audit.stats.shapes import Float, OfModels

SINGLE = "no original has two models: what unlearning varies by cannot be separated from what training varies by"
ALONE = "all models came from one original: what training varies by is not shown"
#: The probabilities below the two limits of an interval.
TAILS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def deviations(*, value: Float[np.ndarray, "models"], original: OfModels) -> tuple[Estimate, Estimate]:
    """Return the standard deviations of a value over training seeds and over unlearning seeds, with 95 %
    intervals.

    The method is a one-way analysis of variance with random effects. Let S_w² be the mean square within originals, and
    S_b² that between them. In expectation S_b² = n₀·σ² + S_w², where σ is the deviation over training seeds. n₀ is the
    number of models of an original (for unequal numbers see Snedecor and Cochran). The interval over unlearning seeds
    is from χ². The interval over training seeds is that of Ting et al. (1990), at least 0.

    Parameters
    ----------
    value : float [models]
        The value of each unlearned model.
    original : int [models]
        The original that each model was unlearned from.

    Returns
    -------
    training : Estimate
        The deviation over training seeds; NaN with the reason if there is one original.
    unlearning : Estimate
        The deviation over unlearning seeds. Both are NaN with the reason if no original has two models.

    Raises
    ------
    ValueError
        A value is not finite.
    """
    value = np.asarray(value, dtype=np.float64)
    if not np.isfinite(value).all():
        raise ValueError("values of models must be finite")
    _, number = np.unique(original, return_inverse=True)  # originals renumbered from 0
    count = np.bincount(number)
    n, originals = len(value), len(count)  # models, and originals that they were unlearned from
    if n == originals:
        return empty(n=originals, note=SINGLE), empty(n=n, note=SINGLE)
    means = np.bincount(number, weights=value) / count
    within = float(((value - means[number]) ** 2).sum() / (n - originals))
    low, high = (n - originals) * within / special.chdtri(n - originals, TAILS)
    unlearning = Estimate(float(np.sqrt(within)), float(np.sqrt(low)), float(np.sqrt(high)), n)
    if originals < 2:
        return empty(n=originals, note=ALONE), unlearning
    between = float((count * (means - value.mean()) ** 2).sum() / (originals - 1))
    n0 = float((n - (count**2).sum() / n) / (originals - 1))
    # Estimates of n₀·σ²: the value, then its limits.
    squares = between - within, *_limits(between, within, dof_between=originals - 1, dof_within=n - originals)
    deviation, low, high = (float(np.sqrt(max(square / n0, 0.0))) for square in squares)
    return Estimate(deviation, low, high, originals), unlearning


def _limits(between: float, within: float, dof_between: int, dof_within: int) -> tuple[float, float]:
    """Return the 95 % limits of the expected difference ``between`` − ``within`` of two mean squares.

    The formula and the other names are those of Ting et al. (1990): G₁ and H₁ are factors of ``between`` alone, G₂ and
    H₂ of ``within`` alone, G₁₂ and H₁₂ of their product.

    Parameters
    ----------
    dof_between
        The degrees of freedom of ``between``.
    dof_within
        The degrees of freedom of ``within``.
    """
    never = 1e12  # with so many second degrees of freedom, F is χ²/dof of the first
    h1, g1 = (1 / special.fdtri(dof_between, never, TAILS) - 1) * (1, -1)
    h2, g2 = (1 / special.fdtri(dof_within, never, TAILS) - 1) * (1, -1)
    f_high, f_low = special.fdtri(dof_between, dof_within, TAILS)
    g12 = ((f_low - 1) ** 2 - (g1 * f_low) ** 2 - h2**2) / f_low
    h12 = ((1 - f_high) ** 2 - (h1 * f_high) ** 2 - g2**2) / f_high
    below = (g1 * between) ** 2 + (h2 * within) ** 2 + g12 * between * within
    above = (h1 * between) ** 2 + (g2 * within) ** 2 + h12 * between * within
    difference = between - within
    return difference - float(np.sqrt(max(below, 0.0))), difference + float(np.sqrt(max(above, 0.0)))
