"""Check that pairs of canaries fit an audit in one run."""

import numpy as np


def unpaired(pair: np.ndarray, forget: np.ndarray, heldout: np.ndarray) -> str:
    """Return what is wrong with pairs of canaries, or "". Each model must have forgotten one of each pair, and the
    other must be held out.

    ``pair`` int64 [samples], the number of the pair, −1 for samples that are not canaries; ``forget`` and ``heldout``
    bool [models, samples].
    """
    number, count = np.unique(pair[pair >= 0], return_counts=True)
    if not len(number):
        return "names no pair; give both samples of a pair the same number from 0 on, all others -1"
    if (count != 2).any():
        wrong = int((count != 2).argmax())
        return f"gives the number {number[wrong]} to {count[wrong]} samples; a pair is two"
    samples = np.argsort(pair, kind="stable")[-2 * len(number) :].reshape(-1, 2)  # of each pair; all −1 come before
    for verb, mask in (("forgot", forget), ("held out", heldout)):
        counts = mask[:, samples].sum(axis=2)  # of every model and pair
        if (counts != 1).any():
            model, wrong = (int(i) for i in np.argwhere(counts != 1)[0])
            found = counts[model, wrong]
            return f"has pair {number[wrong]}, of which model {model} {verb} {found} samples in place of one"
    return ""
