"""Means over independent audits, which share neither data nor models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np

from unlearning_audit.stats.paired import Design, Distances, Layer


def mean(parts: Sequence[Distances]) -> Distances:
    """Return the mean of K numbers over several independent audits, with its joint error.

    A unit is a part of an audit that shares nothing with other units but samples. Variances add up: each of S audits
    contributes 1/S of its influence and 1/S² of its variances. The degrees of freedom of models and of units are the
    fewest of all audits in which they are known. A sum of squared half-widths, each with the quantile of its own
    degrees of freedom, holds its level (Banerjee 1960). The fewest degrees of freedom give the widest such sum.

    Parameters
    ----------
    parts : sequence of Distances
        The K numbers of each audit, in one order; at least one audit.

    Returns
    -------
    Distances
        K numbers. Units and samples of its design are those of all audits together; splits and models are means over
        audits.
    """
    count = len(parts)
    units, splits, models, samples = np.transpose([astuple(audit.design) for audit in parts])
    return Distances(
        value=np.mean([audit.value for audit in parts], axis=0),
        influence=np.concatenate([audit.influence for audit in parts], axis=1) / count,  # samples of all audits
        models=_mean_layer([audit.models for audit in parts]),
        units=_mean_layer([audit.units for audit in parts]),
        design=Design(int(units.sum()), float(splits.mean()), float(models.mean()), int(samples.sum())),
    )


def _mean_layer(layers: list[Layer]) -> Layer:
    """Return the covariance of the mean over S independent audits, from the ``layers`` of the audits: their covariances
    over models, or over units.

    The degrees of freedom are the fewest above 0; 0 if no audit knows them. A part that is known in an audit counts as
    estimated.
    """
    square = len(layers) ** 2  # S²
    return Layer(
        between=np.sum([layer.between for layer in layers], axis=0) / square,
        shared=np.sum([layer.shared for layer in layers], axis=0) / square,
        dof=min((layer.dof for layer in layers if layer.dof), default=0),
    )
