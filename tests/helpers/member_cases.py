"""Six samples and who saw them."""

import numpy as np
from unlearning_audit.evaluation.arrays import Membership

SAMPLES = 6


def membership(models, shadow=(), **fields):
    train = np.zeros((models, SAMPLES), bool)
    train[:, :4] = True
    forget, heldout = np.zeros_like(train), np.zeros_like(train)
    forget[:, 1:3], heldout[:, 4] = True, True
    seed = np.arange(models)
    return Membership(
        train=train, forget=forget, heldout=heldout, seed=seed, split=seed % 2, block=seed // 2,
        shadow=np.isin(seed, shadow), **fields,
    )  # fmt: skip
