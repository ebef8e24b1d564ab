"""Numbers with given errors, and how often an event of known rate may happen in a simulation."""

import numpy as np
from scipy.stats import binom
from unlearning_audit.stats.paired import Design, Distances, Layer

NOTHING = (0.0, 0.0, 0)


def three(estimate) -> list[float]:
    """The value and the limits of an estimate."""
    return [estimate.value, estimate.low, estimate.high]


def at_most(rate: float, trials: int) -> float:
    """The share of trials that an event of this rate exceeds in fewer than one of 1,000 simulations."""
    return binom.isf(1e-3, trials, rate) / trials


def at_least(rate: float, trials: int) -> float:
    """The share of trials below which an event of this rate stays in fewer than one of 1,000 simulations."""
    return binom.ppf(1e-3, trials, rate) / trials


def numbers(value, influence, *, models=NOTHING, units=NOTHING, design=(2, 2.0, 3.0, 3)) -> Distances:
    """K numbers; layers as (between, shared, dof), each a number or a matrix; nothing is known of them by default."""
    value, influence = np.atleast_1d(np.asarray(value, float)), np.asarray(influence, float)
    zero = np.zeros((len(value), len(value)))
    layers = (Layer(zero + between, zero + shared, dof) for between, shared, dof in (models, units))
    return Distances(value, influence, *layers, Design(*design))


def normal(value, error, *, root=None, **layers) -> Distances:
    """Numbers with these errors over so many samples that they are as good as normal; independent unless the ``root``
    of their correlation is given."""
    error, n = np.asarray(error, float), 3000
    root = np.eye(len(error)) if root is None else np.asarray(root, float)
    influence = np.repeat(error[:, None] * root, n, axis=1) / np.sqrt(n)
    return numbers(value, influence, design=(2, 1.0, 2.0, n), **layers)
