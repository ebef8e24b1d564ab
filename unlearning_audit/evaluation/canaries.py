"""Check that pairs of canaries fit an audit in one run."""

import numpy as np


def pairs_problem(pair: np.ndarray, forget: np.ndarray, heldout: np.ndarray) -> str:
    """Return what is wrong with pairs of canaries, or "".

    Of each pair, a model must have forgotten one sample, and the other must be held out.

    Parameters
    ----------
    pair
        int64 [samples]: the number of the pair, −1 for samples that are not canaries.
    forget, heldout
        bool [models, samples].
    """
    number, count = np.unique(pair[pair >= 0], return_counts=True)
    if not len(number):
        return "names no pair; give both samples of a pair the same number from 0 on, all others -1"
    if (count != 2).any():
        first = int((count != 2).argmax())
        return f"gives the number {number[first]} to {count[first]} samples; a pair is two"
    # The two samples of each pair, [pairs, 2]. Sorted by number, samples that are not canaries (−1) come first.
    samples = np.argsort(pair, kind="stable")[-2 * len(number) :].reshape(-1, 2)
    for verb, mask in (("forgot", forget), ("held out", heldout)):
        counts = mask[:, samples].sum(axis=2)  # [models, pairs]
        if (counts != 1).any():
            model, wrong = (int(i) for i in np.argwhere(counts != 1)[0])
            found = counts[model, wrong]
            return f"has pair {number[wrong]}, of which model {model} {verb} {found} samples in place of one"
    return ""
