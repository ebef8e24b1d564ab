"""Accuracy on what models keep, were asked to forget, never saw, and on the test part."""

import numpy as np

from unlearning.case import Case
from unlearning.metrics import _rates, row
from unlearning.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def rows(case: Case, settings: dict) -> list[dict]:
    """`evaluate` on the target models of a case; the test part is read with clean labels."""
    target = case.membership[case.target]
    test = case.data.part == 1
    found = evaluate(
        logits=case.unlearned[case.target],
        y=case.labels_of(case.target),
        train=target.train,
        forget=target.forget,
        heldout=target.heldout,
        split=target.split,
        block=target.block,
        test=test if test.any() else None,
        test_y=case.data.y_clean,
    )
    return [row for row in found if row["n"]]


def evaluate(
    *,
    logits: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    forget: np.ndarray,
    heldout: np.ndarray,
    split: np.ndarray,
    block: np.ndarray,
    test: np.ndarray | None = None,
    test_y: np.ndarray | None = None,
) -> list[dict]:
    """Rows "accuracy" with setting "role=retain", "role=forget", "role=heldout" and "role=test".

    ``logits`` float [models, samples, classes]; ``y`` int [samples] or [models, samples], the labels that models
    were trained with; ``train``, ``forget``, ``heldout`` bool [models, samples]; ``split`` and ``block`` int
    [models]; ``test`` bool [samples] or None; ``test_y`` int [samples], true labels for the test part (default:
    ``y``). Accuracy is the mean over models of each model's share of right predictions (a NaN logit is wrong);
    its interval covers samples, the same ones in all models together, and models. Raises ValueError for shapes
    that do not fit.
    """
    guess = _rates.predicted(logits)
    for name, mask in (("train", train), ("forget", forget), ("heldout", heldout)):
        if mask.shape != guess.shape:
            raise ValueError(f"{name} must be [models, samples] = {guess.shape} like the logits, not {mask.shape}")
    right = guess == _rates.per_model(y, guess.shape, "y")
    roles = {"retain": (right, train & ~forget), "forget": (right, forget), "heldout": (right, heldout)}
    if test is not None:
        true = right if test_y is None else guess == _rates.per_model(test_y, guess.shape, "test_y")
        roles["test"] = true, _rates.per_model(test, guess.shape, "test")
    return [
        row(
            metric="accuracy",
            setting=f"role={name}",
            estimate=_rates.rate(hit=hit, rows=rows, split=split, block=block),
        )
        for name, (hit, rows) in roles.items()
    ]
