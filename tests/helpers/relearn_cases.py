"""Models that were taught once more, with known chances to be right."""

import numpy as np
from unlearning_audit.evaluation.arrays import Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.signal_files import Relearned

from ruli_cases import data, swapped_pairs

STEPS = np.array([0, 1, 2, 4, 8])


def members() -> Membership:
    """Two swapped pairs of three models a split."""
    return Membership.concatenate(swapped_pairs(shadows=0))


def store(path, member, chance, seed=0, shift=0.0):
    """Models that are right about what they forgot with the ``chance`` [points] of each step, phi at ``shift``."""
    rng = np.random.default_rng(seed)
    index = np.flatnonzero((member.forget | member.heldout).any(axis=0))
    forget = member.forget[:, index]
    taught = forget & (np.cumsum(forget, axis=1) % 2 == 0)
    shape = len(forget), len(STEPS), len(index)
    right = rng.random(shape) < np.asarray(chance)[None, :, None]
    phi = rng.standard_normal(shape).astype(np.float32) + np.float32(shift)
    Relearned(STEPS, phi, right, taught, index).write(path)
    return str(path)


def evaluation(tmp_path, member, relearned, compared) -> Evaluation:
    """A case of models whose originals are right about all samples."""
    data().write(tmp_path / "data.npz")
    member.write(tmp_path / "splits.npz")
    y = data().y
    logits = np.tile(9 * np.eye(2, dtype=np.float32)[y], (len(member.seed), 1, 1))
    Logits(logits, np.arange(len(y)), y).write(tmp_path / "original.npz")
    whole, splits, original = (str(tmp_path / f"{name}.npz") for name in ("data", "splits", "original"))
    others = compared and [compared]
    return Evaluation(
        whole, [splits], [original], [original], relearned_files=[relearned], compared_relearned_files=others
    )


def linear():
    from torch import nn  # slow to import, and not needed by tests of metrics

    model = nn.Sequential(nn.Linear(6, 2))
    model.head = "0"
    return model
