"""Keyed random generators: every draw belongs to one key, never to a shared stream.

A model's initial weights, sample order and noise depend on (its seed, the purpose, the epoch) alone, so
they are the same in every batch, at every width and in any order of work.
"""

import hashlib

import numpy as np


def seed_of(*parts: int | str) -> int:
    """A 63-bit integer that is a function of ``parts`` (BLAKE2b)."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(*parts: int | str) -> np.random.Generator:
    """A counter-based NumPy generator for exactly this purpose."""
    return np.random.Generator(np.random.Philox(key=seed_of(*parts)))
