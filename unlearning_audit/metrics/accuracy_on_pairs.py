"""Difference between accuracies and those of retrained models, for each pair of swapped splits."""

import numpy as np

from unlearning_audit.metrics import Evaluation, Row, _pairs, accuracy

NEEDS = ("swapped_pairs",)

QUANTITIES = accuracy.QUANTITIES


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows "accuracy_gap" for each pair of splits by itself, with the fields ``pair`` and ``role``.

    The gap is how much more often retrained models are right than audited models. [] if there is only one pair, if
    there are no retrained models, or if all samples have one label.
    """

    def gaps(splits: list[_pairs.SplitModels]) -> list[Row]:
        """Return the rows "accuracy_gap" of the models of some ``splits`` in ``evaluation``, of all pairs or of one."""
        models = np.isin(np.arange(len(evaluation.target)), np.concatenate([split.models for split in splits]))
        return [row for row in accuracy.of_models(evaluation, models) if row.metric == "accuracy_gap"]

    return [row for row in _pairs.by_pair(_pairs.swapped_splits(evaluation.membership), gaps) if row.pair is not None]
