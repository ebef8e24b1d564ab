"""A source whose rows say which they are."""

import numpy as np
from unlearning_audit.data import Source


def source(n=1000, classes=10, test=200, seed=0) -> Source:
    rng = np.random.default_rng(seed)
    part = np.zeros(n, dtype=np.uint8)
    part[n - test :] = 1
    x = np.arange(n, dtype=np.float32)[:, None] * np.float32([1, -1])
    return Source(x, rng.integers(classes, size=n), part, classes)
