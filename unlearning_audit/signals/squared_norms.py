"""‖∂ log p_y/∂θ‖² of samples: float64 [models, samples] for attacks, and of what each model forgot for metrics."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.arrays import ArtifactError, Membership
from unlearning_audit.evaluation.cohort import DECLARE
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.readings import Gradients
from unlearning_audit.training.lazy import Bank


def settings(kind: str) -> dict[str, Any]:
    """Attacks learn from rows that no model forgot."""
    return {"rows": "all" if kind == "attacks" else "forgotten"}


def read(bank: Bank, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Gradients:
    """Of all samples or of forgotten ones, and that of the mean gradient of the latter."""
    from unlearning_audit.training.streams import Rows

    forget = Rows.where(member.forget)
    asked = Rows.where(np.ones(member.forget.shape, bool)) if settings["rows"] == "all" else forget
    parts = [gradient.double().square().flatten(1).sum(1).cpu().numpy() for gradient in bank.gradient(forget).values()]
    return Gradients(bank.squared_norms(asked).double().cpu().numpy(), sum(parts[1:], parts[0]))


def values(case: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Raises ArtifactError where they were not read of all samples."""
    gradients = case.answers(files).gradients
    if gradients is None or gradients.squared_norms.shape[1] != len(case.data.y):
        raise ArtifactError(f"{files[0]}: no squared_norms of all samples were read of these models; {DECLARE}")
    norms: np.ndarray = gradients.squared_norms[models][:, rows]
    return norms
