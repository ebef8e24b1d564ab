"""Logits of the two classes from log-probabilities."""

import numpy as np


def two(logp: np.ndarray) -> np.ndarray:
    """Logits (φ, 0) of passages whose tokens have the mean log-probability ``logp``."""
    phi = logp - np.log(-np.expm1(logp))
    return np.stack([phi, np.zeros_like(phi)], -1)
