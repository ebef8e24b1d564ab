"""How much normal noise hides a distance: (ε, δ) of what two starting points become."""

import math

from scipy import special


def delta(epsilon: float, mu: float) -> float:
    """The least δ at which N(0, 1) and N(``mu`` > 0, 1) are (``epsilon``, δ)-indistinguishable (Balle, Wang 2018)."""
    below, above = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return float(special.ndtr(below) - math.exp(epsilon + special.log_ndtr(above)))


def shift(epsilon: float, limit: float) -> float:
    """The largest distance in standard deviations at which two normal distributions are (``epsilon``, ``limit``)-
    indistinguishable, by bisection from below."""
    low, high = 0.0, 1.0
    while delta(epsilon, high) <= limit:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(epsilon, middle) <= limit else (low, middle)
    return low


def spread(distance: float, drift: float, contraction: float, steps: int, epsilon: float, limit: float) -> float:
    """Standard deviation of the noise of each of so many ``steps`` after which two runs are (``epsilon``, ``limit``)-
    indistinguishable that began within ``distance``.

    Each step takes two points at distance d to points within ``contraction``·d + ``drift`` and adds normal noise.
    Shifted interpolation (Bok, Su and Altschuler 2024): noise of step t may absorb a_t of the distance, at a price of
    Σ a_t² ≤ (μσ)²; with all of it absorbed at last, the cheapest a_t grow as contraction^(T−t).
    """
    powers = [contraction**k for k in range(steps)]
    whole = contraction**steps * distance + drift * sum(powers)
    return whole / (math.sqrt(sum(p * p for p in powers)) * shift(epsilon, limit))
