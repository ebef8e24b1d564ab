"""Logistic regression with equal weight for members and non-members, in NumPy (scikit-learn is slow to import)."""

from dataclasses import dataclass

import numpy as np

from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.shadow import Shadow

#: A standard deviation is due to rounding if it is at most this share of 1 plus the largest value.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Logistic:
    """A fitted classifier.

    Parameters
    ----------
    weight
        float64 [features], in the units of the features.
    intercept
        The intercept.
    """

    weight: np.ndarray
    intercept: float

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """Return log P(member | x) / P(non-member | x) at equal priors, float64 [rows], for ``x`` [rows, features]."""
        return np.asarray(x @ self.weight + self.intercept)


def score(
    features: signals.Statistic, logits: np.ndarray, y: np.ndarray, shadow: Shadow
) -> tuple[np.ndarray, np.ndarray]:
    """Return score and decision of an attack that learns membership from ``features(logits [n, classes], y [n])``,
    float64 [n, features].

    The score is the log-odds of membership at equal priors, float64 [models, samples]; the decision is whether it
    exceeds 0. Raises ValueError if logits, labels or the shadow models have a wrong shape or values.
    """
    rows = signals.statistics(features, shadow, classes=logits.shape[-1])
    model = fit(rows.value, rows.member)
    value = signals.per_model(lambda z, label: model.log_odds(features(z, label)), logits, y)
    return value, value > 0


def fit(x: np.ndarray, member: np.ndarray, *, ridge: float = 1.0) -> Logistic:
    """Fit f(x) = w·x + b by minimising Σ s_i log(1 + exp(−t_i f(x_i))) + ½ ridge |w|² by Newton's method.
    Deterministic.

    The sign t is 1 for members, else −1. The weights s give members and non-members n/2 each, where n is the number of
    rows, as ``class_weight="balanced"`` of scikit-learn. The features are standardised first. The intercept b is not
    penalised.

    Parameters
    ----------
    x
        float64 [rows, features].
    member
        bool [rows]: which rows are members.
    ridge
        The strength of the penalty, 1/C of scikit-learn.

    Raises
    ------
    ValueError
        Without members, or without non-members.
    """
    n, members = len(member), int(member.sum())
    if members in (0, n):
        raise ValueError("a logistic regression needs members and non-members")
    # The weights s: those of members sum to n/2, and so do those of non-members.
    weight = np.where(member, n / (2 * members), n / (2 * (n - members)))
    # Standardise the features; one that does not vary keeps its scale. The last column of the design is the
    # intercept's.
    centre, deviation = x.mean(axis=0), x.std(axis=0)
    largest = np.maximum(x.max(axis=0), -x.min(axis=0))
    scale = np.where(deviation > ROUNDING * (1 + largest), deviation, 1.0)
    design = np.column_stack([(x - centre) / scale, np.ones(n)])
    penalty = np.append(np.full(x.shape[1], ridge), 0.0)
    sign = np.where(member, 1.0, -1.0)

    def loss(beta: np.ndarray) -> float:
        """Return the penalised loss of ``beta`` float64 [features + 1], standardised weights and then the intercept.

        Each row of the ``design`` has a ``weight``, and a ``sign`` that says whether it is a member; each entry of
        ``beta`` has a ``penalty``.
        """
        return float(weight @ np.logaddexp(0.0, -sign * (design @ beta)) + 0.5 * penalty @ beta**2)

    # Newton's method from 0: each step solves Hessian · step = gradient.
    beta = np.zeros(design.shape[1])
    value = loss(beta)
    for _ in range(100):
        p = 0.5 * (1.0 + np.tanh(0.5 * (design @ beta)))  # sigmoid(f): the probability of a member
        gradient = design.T @ (weight * (p - member)) + penalty * beta
        # the last term keeps the intercept's row solvable where all probabilities are 0 or 1
        hessian = (design.T * (weight * p * (1.0 - p))) @ design + np.diag(penalty + 1e-12 * n)
        step = np.linalg.solve(hessian, gradient)
        if step @ gradient <= 1e-14 * n:  # Newton's decrement: the loss can fall by at most half of it
            break
        # Halve the step until the loss does not rise. If it does not fall either, the minimum is reached.
        shrink = 1.0
        while (candidate := loss(beta - shrink * step)) > value and shrink > 1e-10:
            shrink *= 0.5
        if candidate >= value:
            break
        beta, value = beta - shrink * step, candidate
    # Back to the units of the features.
    return Logistic(weight=beta[:-1] / scale, intercept=float(beta[-1] - beta[:-1] @ (centre / scale)))
