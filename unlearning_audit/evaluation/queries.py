"""Draw the samples on which expensive signals of models are computed."""

from collections.abc import Mapping

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.randomness.keyed import generator


def draw(member: Membership, purpose: str, roles: Mapping[str, tuple[np.ndarray, int | None]]) -> np.ndarray:
    """Return the sample numbers of each model in ascending order, int64 [models, rows], filled with −1.

    The draw depends on the model's seed, the role's name and the ``purpose`` alone. So a model and the one retrained in
    its place get the same samples.

    Parameters
    ----------
    roles
        Name → which samples have this role, bool [models, samples], and how many are drawn at most (None: all).
    """
    sampled = []
    for number, seed in enumerate(member.seed.tolist()):
        samples = []
        for name, (mask, most) in roles.items():
            rows = np.flatnonzero(mask[number])
            samples.append(rows if most is None else generator(purpose, name, seed).permutation(rows)[:most])
        sampled.append(np.sort(np.concatenate(samples)))
    width = max(map(len, sampled), default=0)
    padded = [np.pad(samples, (0, width - len(samples)), constant_values=-1) for samples in sampled]
    return np.array(padded, np.int64).reshape(len(sampled), width)
