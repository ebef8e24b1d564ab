"""Keyed random generators: every draw has its own key, and no stream is shared.

A model's initial weights, sample order and noise depend only on its seed, the purpose and the epoch. So they are equal
in every batch, at every width and in any order of work.
"""

import hashlib

import numpy as np


def seed_of(*parts: int | str) -> int:
    """Return a 63-bit integer that is a function of ``parts`` (BLAKE2b)."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(*parts: int | str) -> np.random.Generator:
    """Return a counter-based NumPy generator (Philox) whose key is a function of ``parts``."""
    return np.random.Generator(np.random.Philox(key=seed_of(*parts)))
