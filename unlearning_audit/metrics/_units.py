"""Independent units among target models, for effects of metrics that evaluate one model at a time."""

import numpy as np

from unlearning_audit.evaluation.arrays import Membership


def of(target: Membership) -> dict[str, np.ndarray]:
    """Return unit and split of each target model; models of one block that keep the same samples are one unit."""
    keys = np.concatenate([target.block[:, None], np.packbits(target.retain, axis=1)], axis=1)
    return {"unit": np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1), "split": target.split}
