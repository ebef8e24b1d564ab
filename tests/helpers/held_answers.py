"""Logits in memory that are asked as those in files are."""

import numpy as np
from unlearning_audit import stats
from unlearning_audit.stats import rates


class Held:
    """Answers what `unlearning_audit.evaluation.outputs.Outputs` does, from ``logits`` [models, samples, classes]."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits, self.classes = logits, logits.shape[-1]

    def predicted(self, models: np.ndarray | None = None) -> np.ndarray:
        return rates.predicted(self.logits if models is None else self.logits[models])

    def stacked(self, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> np.ndarray:
        logits = self.logits if models is None else self.logits[models]
        return logits if rows is None else logits[:, rows]

    def phi(self, labels: np.ndarray, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> np.ndarray:
        logits = self.stacked(models, rows)
        return stats.phi(logits=logits, y=np.broadcast_to(labels, logits.shape[:2]))

    def by_model(self, models: np.ndarray | None = None):
        return iter(self.logits if models is None else self.logits[models])
