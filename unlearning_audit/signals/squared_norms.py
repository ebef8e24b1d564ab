"""Squared norms of gradients, ‖∂ log p_y/∂θ‖²: float64 [models, samples] for attacks, and of each model's forgotten
samples for metrics."""

from typing import Any

import numpy as np

from unlearning_audit.evaluation.cohort import DECLARE
from unlearning_audit.evaluation.signal_files import Gradients
from unlearning_audit.signals import ArtifactError, Evaluation, Membership, ModelStack


def settings(kind: str) -> dict[str, Any]:
    """Return the settings of this signal for a ``kind`` of reader. "attacks" need all rows, because they learn from
    rows that no model forgot. For metrics the forgotten rows are enough."""
    return {"rows": "all" if kind == "attacks" else "forgotten"}


def read(stack: ModelStack, member: Membership, rows: np.ndarray, settings: dict[str, Any]) -> Gradients:
    """Return two squared norms for the models in ``stack``: those of the gradients of single samples, and that of the
    mean gradient of the forgotten samples.

    Parameters
    ----------
    member
        The memberships of the models.
    rows
        Not used.
    settings
        The entry ``rows`` says of which single samples: "all", or "forgotten", the samples that each model forgets.
    """
    from unlearning_audit.training.streams import Rows

    forget = Rows.where(member.forget)
    queried = Rows.where(np.ones(member.forget.shape, bool)) if settings["rows"] == "all" else forget
    of_samples = stack.squared_norms(queried).double().cpu().numpy()
    gradients = stack.gradient(forget).values()
    # Squared norms of each tensor of weights, [models], whose sum is that of the mean gradient.
    of_tensors = [gradient.double().square().flatten(1).sum(1).cpu().numpy() for gradient in gradients]
    # ``start`` is the first tensor, as a sum that starts at the int 0 has no shape.
    return Gradients(of_samples, sum(of_tensors[1:], start=of_tensors[0]))


def values(evaluation: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the squared norms of the gradients of single samples, float64 [models, rows], for the models of ``files``
    that ``models`` bool [all models] chooses and the samples ``rows`` int64 [rows].

    Raises ArtifactError if they were not computed for all samples.
    """
    gradients = evaluation.outputs(files).gradients
    if gradients is None or gradients.squared_norms.shape[1] != len(evaluation.data.y):
        raise ArtifactError(f"{files[0]}: no squared_norms of all samples were read of these models; {DECLARE}")
    return np.asarray(gradients.squared_norms[models][:, rows])
