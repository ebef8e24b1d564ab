"""Pairs of canaries: whether they are what a one-run audit needs."""

import numpy as np


def unpaired(pair: np.ndarray, forget: np.ndarray, heldout: np.ndarray) -> str:
    """What is wrong with canaries of which each model should have forgotten one of two and never seen the other; "" if
    nothing is. ``pair`` int64 [samples], −1 where a sample is none; the others bool [models, samples]."""
    number, count = np.unique(pair[pair >= 0], return_counts=True)
    if not len(number):
        return "names no pair; give both samples of a pair the same number from 0 on, all others -1"
    if (count != 2).any():
        wrong = int((count != 2).argmax())
        return f"gives the number {number[wrong]} to {count[wrong]} samples; a pair is two"
    both = np.argsort(pair, kind="stable")[-2 * len(number) :].reshape(-1, 2)
    for name, mask in (("forgot", forget), ("held out", heldout)):
        members = mask[:, both].sum(axis=2)
        if (members != 1).any():
            model, wrong = (int(i) for i in np.argwhere(members != 1)[0])
            count = members[model, wrong]
            return f"has pair {number[wrong]}, of which model {model} {name} {count} samples in place of one"
    return ""
