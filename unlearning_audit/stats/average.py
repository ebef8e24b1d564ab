"""Means over audits that share nothing: other data, other models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unlearning_audit.stats.paired import Design, Distances, Layer


def mean(parts: Sequence[Distances]) -> Distances:
    """The mean of the same K numbers, read in several independent audits.

    Errors add up: of S audits each counts 1/S of its influence and 1/S² of its variances. Degrees of freedom of a layer
    are the fewest of those that know it: a sum of squared half-widths with quantiles of its own for each part holds its
    level (Banerjee 1960), and the fewest give the widest of these. Raises ValueError for none, or for different K.
    """
    if not parts or len({len(part.value) for part in parts}) > 1:
        raise ValueError("a mean needs one audit at least, and equally many numbers in each")
    count = len(parts)
    designs = [part.design for part in parts]
    return Distances(
        np.mean([part.value for part in parts], axis=0),
        np.concatenate([part.influence for part in parts], axis=1) / count,
        _layer([part.models for part in parts]),
        _layer([part.units for part in parts]),
        Design(
            sum(design.units for design in designs),
            float(np.mean([design.splits for design in designs])),
            float(np.mean([design.models for design in designs])),
            sum(design.samples for design in designs),
        ),
    )


def _layer(layers: list[Layer]) -> Layer:
    square = len(layers) ** 2
    return Layer(
        np.sum([layer.between for layer in layers], axis=0) / square,
        np.sum([layer.shared for layer in layers], axis=0) / square,
        min((layer.dof for layer in layers if layer.dof), default=0),
    )
