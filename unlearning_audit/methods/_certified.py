"""Calibrate normal noise so that runs from two starting points are (ε, δ)-indistinguishable."""

import math

from scipy import special


def delta(epsilon: float, mu: float) -> float:
    """Return the smallest δ for which the normal distributions N(0, 1) and N(``mu``, 1), with ``mu`` > 0, are
    (``epsilon``, δ)-indistinguishable: Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) (Balle and Wang 2018)."""
    below, above = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return float(special.ndtr(below) - math.exp(epsilon + special.log_ndtr(above)))


def largest_shift(epsilon: float, limit: float) -> float:
    """Return the largest distance of the means, in standard deviations, at which two normal distributions of equal
    spread are (``epsilon``, δ)-indistinguishable with δ = ``limit``. It is found by bisection, and rounded down."""
    low, high = 0.0, 1.0
    while delta(epsilon, high) <= limit:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(epsilon, middle) <= limit else (low, middle)
    return low


def step_noise(distance: float, drift: float, contraction: float, steps: int, epsilon: float, limit: float) -> float:
    """Return the standard deviation σ of the noise of one step that makes two runs (ε, δ)-indistinguishable after T =
    ``steps`` steps.

    Each step adds normal noise. By shifted interpolation (Bok, Su and Altschuler 2024) the noise of step t may absorb
    a_t of the distance, if Σ a_t² ≤ (μσ)², with μ from `largest_shift`. All of the distance must be absorbed in the
    end; the cheapest a_t grow as contraction^(T−t).

    Parameters
    ----------
    distance
        How far apart the runs begin at most.
    drift, contraction
        A step takes two points at distance d to points at most ``contraction``·d + ``drift`` apart.
    epsilon, limit
        ε and δ.
    """
    powers = [contraction**k for k in range(steps)]
    at_the_end = contraction**steps * distance + drift * sum(powers)  # how far apart runs without noise end at most
    return at_the_end / (math.sqrt(sum(p * p for p in powers)) * largest_shift(epsilon, limit))
