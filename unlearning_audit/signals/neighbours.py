"""Mean log p over the scored tokens of a sample's neighbours, texts that differ from it in a few tokens: float64
[models, samples, views].

Data without neighbours give their paraphrases instead. NaN where a sample has fewer views than others.
"""

import numpy as np

from unlearning_audit.evaluation.cohort import views_logp
from unlearning_audit.signals import ArtifactError, Evaluation


def values(evaluation: Evaluation, files: list[str], models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean log p of each neighbour of the samples ``rows`` int64 [rows] by the models of ``files`` that
    ``models`` bool [all models] chooses: float64 [models, rows, views], NaN where a sample has fewer. Neighbours are
    the views of that kind or, if the data have none, the paraphrases. Raises ArtifactError if a sample has no
    neighbour."""
    tables = [evaluation.data.views(kind)[rows] for kind in ("neighbour", "paraphrase")]
    views = next((table for table in tables if table.shape[1]), None)
    if views is None or (views < 0).all(1).any():
        raise ArtifactError(f"{evaluation.data_file}: some samples have no neighbours; set neighbours: 4 under data")
    return views_logp(evaluation.outputs(files).stacked(models), views)
