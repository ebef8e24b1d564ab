"""What is wrong with pairs of canaries is said of the first that is wrong."""

import numpy as np
import pytest
from unlearning_audit.evaluation.canaries import unpaired

#: Three pairs among eight samples, and two models that each forgot one sample of every pair.
PAIR = np.array([0, 2, -1, 1, 2, 0, -1, 1])
FORGET = np.array([[1, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0]], bool)
HELDOUT = np.array([[0, 0, 0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 0, 0, 1]], bool)


def but(mask, *places):
    """The mask turned over at (model, sample)."""
    changed = mask.copy()
    for place in places:
        changed[place] ^= True
    return changed


@pytest.mark.parametrize(
    ("pair", "forget", "heldout", "problem"),
    [
        (PAIR, FORGET, HELDOUT, ""),
        (np.array([0, -1, 0]), FORGET[:, [0, 2, 5]], HELDOUT[:, [0, 2, 5]], ""),
        (np.full(8, -1), FORGET, HELDOUT, "names no pair; give both samples of a pair the same number"),
        (np.where(np.arange(8) == 7, -1, PAIR), FORGET, HELDOUT, "gives the number 1 to 1 samples; a pair is two"),
        (np.where(np.arange(8) == 2, 2, PAIR), FORGET, HELDOUT, "gives the number 2 to 3 samples; a pair is two"),
        (np.array([0, 2, -1, 1, 2, 1, 0, 1]), FORGET, HELDOUT, "gives the number 1 to 3 samples; a pair is two"),
        (
            PAIR, but(FORGET, (0, 4), (1, 7), (1, 1)), HELDOUT,
            "has pair 2, of which model 0 forgot 2 samples in place of one",
        ),
        (
            PAIR, but(FORGET, (1, 3), (1, 4)), HELDOUT,
            "has pair 1, of which model 1 forgot 0 samples in place of one",
        ),
        (
            PAIR, FORGET, but(HELDOUT, (1, 5)),
            "has pair 0, of which model 1 held out 2 samples in place of one",
        ),
        (PAIR, FORGET, but(HELDOUT, (0, 7)), "has pair 1, of which model 0 held out 0 samples in place of one"),
    ],
)  # fmt: skip
def test_each_model_forgot_one_of_two_and_never_saw_the_other(pair, forget, heldout, problem):
    message = unpaired(pair, forget, heldout)
    assert message.startswith(problem) if problem else message == ""
