"""φ of the same models before unlearning, float64 [models, samples].

An attack that reads it runs in the form `BOTH` only. It also finds forgotten samples of retrained models, because the
models before unlearning reveal them.
"""

import numpy as np

from unlearning_audit.signals import Evaluation


def values(evaluation: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return φ of the label before unlearning, float64 [models, rows], for the models that ``models`` bool [all models]
    chooses and the samples ``rows`` int64 [rows]. For imported models, it is φ of the original models with the same
    forget sets. ``files`` is not used."""
    if evaluation.imported:
        before = evaluation.phi_before()
        assert not isinstance(before, str)  # it is text if φ is missing, and then attacks that need it are not run
        return np.asarray(before[models][:, rows])
    return evaluation.outputs(evaluation.originals).phi(evaluation.labels_of(models)[..., rows], models, rows)
