"""Bytes of a sample's text after zlib, float64 [models, samples]."""

import numpy as np

from unlearning_audit.signals import ArtifactError, Evaluation


def values(evaluation: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the bytes of each compressed text, float64 [models, rows], for the models that ``models`` bool [all
    models] chooses and the samples ``rows`` int64 [rows]; equal for all models. Raises ArtifactError for data that are
    not texts."""
    if evaluation.data.compressed is None:
        raise ArtifactError(f"{evaluation.data_file}: field 'compressed' is missing; only data of text have it")
    return np.tile(evaluation.data.compressed[rows].astype(np.float64), (int(models.sum()), 1))
