"""Logits in memory that are asked as those in files are."""

import numpy as np

from unlearning import stats
from unlearning.stats import rates


class Held:
    """Answers the questions of `unlearning.adversary.answers.Answers` from ``logits`` [models, samples, classes]."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits = logits

    def predicted(self, models: np.ndarray | None = None) -> np.ndarray:
        return rates.predicted(self.logits if models is None else self.logits[models])

    def phi(self, labels: np.ndarray, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> np.ndarray:
        own = self.logits if models is None else self.logits[models]
        own = own if rows is None else own[:, rows]
        return stats.phi(logits=own, y=np.broadcast_to(labels, own.shape[:2]))
