"""Efficacy by epistemic uncertainty on swapped pairs."""

import numpy as np

from unlearning_audit.metrics import Evaluation, Row, _pairs, efficacy

#: The metric reads norms of gradients, which are stored beside the logits.
NEEDS = ("swapped_pairs", "squared_norms")


QUANTITIES = efficacy.QUANTITIES


def rows(evaluation: Evaluation) -> list[Row]:
    """Return rows of information, efficacy and its upper bound: the mean, the standard deviation ("…_sd") and the
    median ("…_median") over all splits, with intervals over splits; then over the splits of each swapped pair (field
    ``pair``) if there are several pairs.

    ``n`` counts splits. Efficacy depends more on the forget samples, which models of one split share, than on initial
    weights. So a split counts once, by the median of its models. Values of single models are not kept.
    """
    squared_norms, squared_norm_of_mean = evaluation.gradients

    def of_split(split: _pairs.SplitModels) -> dict[str, float]:
        """Return the medians over the models of one split, from ``squared_norms`` and ``squared_norm_of_mean`` of their
        gradients: name of the row → value."""
        rows = efficacy.evaluate(squared_norms[split.models], squared_norm_of_mean[split.models])
        return {row.metric: row.value for row in rows if row.metric.endswith("_median")}

    def of_splits(splits: list[_pairs.SplitModels]) -> list[Row]:
        """Return the rows for some ``splits``, those of all pairs or of one pair; each split counts by its
        medians (`of_split`)."""
        medians = [of_split(split) for split in splits]  # all have the same names
        by_name = {name.removesuffix("_median"): np.array([of_one[name] for of_one in medians]) for name in medians[0]}
        return [row for row in efficacy.rows_over_models(by_name) if row.model is None]  # no rows of single splits

    return _pairs.by_pair(_pairs.swapped_splits(evaluation.membership), of_splits)
