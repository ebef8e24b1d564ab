"""Logits of the two classes from log-probabilities, and memberships of a few models."""

import numpy as np
from unlearning_audit.evaluation.arrays import Membership


def two(logp: np.ndarray) -> np.ndarray:
    """Logits (φ, 0) of passages whose tokens have the mean log-probability ``logp``."""
    phi = logp - np.log(-np.expm1(logp))
    return np.stack([phi, np.zeros_like(phi)], -1)


def member(models=3, samples=20) -> Membership:
    """Four samples forgotten, four held out, eight kept, the last four of the test part."""
    train = np.ones((models, samples), bool)
    forget, heldout = np.zeros_like(train), np.zeros_like(train)
    forget[:, :4], heldout[:, 4:8], train[:, 4:8], train[:, 16:] = True, True, False, False
    number = np.arange(models)
    return Membership(train, forget, heldout, seed=number + 7, split=number % 2, block=number // 2,
                      shadow=np.zeros(models, bool))  # fmt: skip
