"""Mean log p of the label under the adversary's models that never saw a sample, before unlearning: float64 [models,
samples].

If a model is itself one of the adversary's, it does not count. NaN where all other models of the adversary saw the
sample.
"""

import numpy as np

from unlearning_audit.evaluation import signals
from unlearning_audit.signals import Evaluation


def values(evaluation: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean log p of each sample's label over the shadow models that were not trained on it, float64 [models,
    rows], for the models that ``models`` bool [all models] chooses and the samples ``rows`` int64 [rows].

    A shadow model is left out of its own mean; NaN where no other is left. The mean is always computed from models
    before unlearning, so ``files`` is not used.
    """
    shadow = np.flatnonzero(~evaluation.target)
    unseen = ~evaluation.membership.train[np.ix_(shadow, rows)]
    logits = evaluation.outputs(evaluation.originals).stacked(~evaluation.target, rows)
    labels = evaluation.labels_of(~evaluation.target)[..., rows]
    logp = np.where(unseen, signals.per_model(signals.label_logp, logits, labels), 0.0)  # [shadow models, rows]
    itself = np.flatnonzero(models)[:, None] == shadow  # [models, shadow models], True where both are the same model
    # [models, rows]: sums over all shadow models, minus what each model adds to them itself if it is one.
    count = unseen.sum(0) - itself @ unseen.astype(np.int64)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = (logp.sum(0) - itself @ logp) / count
    return mean
