"""Intervals, ROC curves, crossed variances, jackknife, simultaneous bands and ranks, on plain arrays.

The functions that most metrics and attacks use can be imported from here; import the others from their files.
"""

from unlearning_audit.stats.estimates import LEVEL, Estimate, empty, without_interval
from unlearning_audit.stats.intervals import (
    clopper_pearson,
    mean_influence,
    mean_interval,
    normal_probability,
    normal_quantile,
    quantile_interval,
    sd_interval,
    squares_dof,
    t_quantile,
    widened_rate,
)
from unlearning_audit.stats.logits import phi
from unlearning_audit.stats.ranks import kendall, spearman
from unlearning_audit.stats.roc import auc, best_threshold, cut_at_fpr, placements, unresolved

__all__ = [
    "LEVEL", "Estimate", "auc", "best_threshold", "clopper_pearson", "cut_at_fpr", "empty", "kendall", "mean_influence",
    "mean_interval", "normal_probability", "normal_quantile", "phi", "placements", "quantile_interval", "sd_interval",
    "spearman", "squares_dof", "t_quantile", "unresolved", "widened_rate", "without_interval",
]  # fmt: skip
