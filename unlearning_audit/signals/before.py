"""φ of the same models before unlearning, float64 [models, samples]. An attack that reads it is asked in the form
`BOTH` alone: what it finds of retrained models, too, is what the models before unlearning tell."""

import numpy as np

from unlearning_audit.evaluation.evaluation import Evaluation


def values(case: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of imported models those that have the same forget sets."""
    if case.imported:
        before = case.before()
        assert not isinstance(before, str)  # else nobody asks
        chosen: np.ndarray = before[models][:, rows]
        return chosen
    return case.answers(case.originals).phi(case.labels_of(models)[..., rows], models, rows)
