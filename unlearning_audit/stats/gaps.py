"""Differences between every two of J numbers, without a covariance matrix of all differences.

There are K = J·(J − 1)/2 differences. Their errors come from samples and from models, and have rank J at most in each.
So joint draws of all K differences come from draws of 2·J numbers. Time and memory grow as K, where the covariance
matrix of the differences would grow as K².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unlearning_audit import stats
from unlearning_audit.stats import simultaneous
from unlearning_audit.stats.paired import Distances, Spread
from unlearning_audit.stats.shapes import Bool, Float, Int

#: How many differences are computed, and how many draws made, at a time: as many as fit a processor's cache.
AT_A_TIME = 256
#: Up to this count of numbers, which have 300 differences, deviations are drawn from the differences' correlation
#: matrix, which is quick. Audits of few methods thereby keep the ranks of earlier versions.
MOST_CORRELATED = 25


@dataclass(frozen=True)
class Gaps:
    """All differences between two of J numbers.

    Parameters
    ----------
    first, second
        int64 [K]: the indices of the two numbers of each difference, in the order of ``np.triu_indices``.
    value
        float64 [K]: number ``first`` minus number ``second``.
    spread
        The errors of the differences.
    numbers
        The J numbers.
    """

    first: Int[np.ndarray, "K"]
    second: Int[np.ndarray, "K"]
    value: Float[np.ndarray, "K"]
    spread: Spread
    numbers: Distances

    def beyond(self, critical: float) -> Bool[np.ndarray, "2 K"]:
        """Return which differences deviate from 0 by more than ``critical`` standard normal deviations, bool [2, K]:
        upwards and downwards."""
        # Half-widths of intervals with the tail of ``critical``, by t distributions: of each difference the largest of
        # those over samples, over samples and models, and over samples and units.
        half = np.sqrt(self.spread.squared_half_widths(stats.normal_probability(-critical)))
        return np.stack([self.value > half, -self.value > half])

    def draw(self, *, rng: np.random.Generator, draws: int) -> Draws | Deviations:
        """Return draws of joint standard normal deviations of all differences, with the correlation of their errors
        over samples and models.

        For at most `MOST_CORRELATED` numbers, return deviations of all differences; for more, draws of the numbers from
        which these deviations are computed.
        """
        if len(self.numbers.value) > MOST_CORRELATED:
            return self.draw_by_number(rng=rng, draws=draws)
        rows = np.eye(len(self.numbers.value))  # row j of a matrix takes number j
        differences = self.numbers.combined(rows[self.first] - rows[self.second])
        return Deviations(simultaneous.deviations(correlation=differences.correlation, rng=rng, draws=draws))

    def draw_by_number(self, *, rng: np.random.Generator, draws: int) -> Draws:
        """Return ``draws`` draws of the J numbers, over samples and over models, from which joint standard normal
        deviations of their K differences follow."""
        # The covariance of the J numbers over samples, and over models.
        covariances = self.numbers.influence @ self.numbers.influence.T, self.numbers.models.between
        roots = [simultaneous.root(covariance) for covariance in covariances]
        # Of each standard deviation between models, only the share that is not noise of samples counts.
        beyond_noise = self.spread.beyond_noise if self.numbers.models.dof else np.zeros(len(self.value))
        over_samples, over_models = (((root[self.first] - root[self.second]) ** 2).sum(axis=1) for root in roots)
        # Of each difference, float64 [K]; draws of it are divided by its root.
        variance = over_samples + beyond_noise**2 * over_models
        with np.errstate(divide="ignore"):
            scale = np.where(variance > 0, 1 / np.sqrt(variance), 0.0)
        of_samples, of_models = (root @ rng.standard_normal((len(root), draws)) for root in roots)
        return Draws(of_samples, of_models, scale, beyond_noise * scale)


@dataclass(frozen=True)
class Deviations:
    """Draws of the deviations of K differences, float64 [draws, K]."""

    values: Float[np.ndarray, "draws K"]

    def largest(self, family: Bool[np.ndarray, "2 K"]) -> Float[np.ndarray, "draws"]:
        """Return the largest deviation of each draw among some of the differences, float64 [draws].

        Parameters
        ----------
        family
            bool [2, K]: which differences count upwards (row 0) and downwards (row 1). Without any, the result is −inf.
        """
        up, down = family
        highest = self.values[:, up].max(axis=1, initial=-np.inf)
        lowest = self.values[:, down].min(axis=1, initial=np.inf)
        return np.asarray(np.maximum(highest, -lowest))


@dataclass(frozen=True)
class Draws:
    """Draws of J numbers from which deviations of their K differences are computed.

    Parameters
    ----------
    samples, models
        float64 [J, draws]: draws over samples and over models.
    scale, scale_of_models
        float64 [K]: the factors that turn differences between two rows of ``samples``, and of ``models``, into the two
        parts of a standard normal deviation.
    """

    samples: Float[np.ndarray, "J draws"]
    models: Float[np.ndarray, "J draws"]
    scale: Float[np.ndarray, "K"]
    scale_of_models: Float[np.ndarray, "K"]

    def largest(self, family: Bool[np.ndarray, "2 K"]) -> Float[np.ndarray, "draws"]:
        """Return the largest deviation of each draw among some of the differences, float64 [draws].

        Parameters
        ----------
        family
            bool [2, K]: which differences count upwards (row 0) and downwards (row 1). Without any, the result is −inf.
        """
        numbers, draws = self.samples.shape
        largest = np.full(draws, -np.inf)
        for start in range(0, draws, AT_A_TIME):  # some draws at a time
            block = slice(start, start + AT_A_TIME)
            samples, models, end = self.samples[:, block], self.models[:, block], 0
            for number in range(numbers - 1):
                # The differences of this number from all later ones, in the order of ``np.triu_indices``.
                begin, end = end, end + numbers - 1 - number
                up, down = family[:, begin:end]
                gap = (samples[number] - samples[number + 1 :]) * self.scale[begin:end, None]
                gap += (models[number] - models[number + 1 :]) * self.scale_of_models[begin:end, None]
                highest, lowest = gap[up].max(axis=0, initial=-np.inf), gap[down].min(axis=0, initial=np.inf)
                largest[block] = np.maximum(largest[block], np.maximum(highest, -lowest))
        return largest


def between(distances: Distances) -> Gaps:
    """Return all K = J·(J − 1)/2 differences between two of the J numbers of ``distances``, with the errors of each."""
    first, second = np.triu_indices(len(distances.value), 1)
    layers = []
    for layer in (distances.models, distances.units):
        # The variance of first − second: the variances of both minus twice their covariance.
        covariances = (layer.between, layer.shared, layer.of_known)
        variances = [(c[first, first] - c[second, first]) - (c[first, second] - c[second, second]) for c in covariances]
        layers.append((layer.dof, np.maximum(variances, 0.0)))
    sampled, dof = np.empty(len(first)), np.empty(len(first))
    for start in range(0, len(first), AT_A_TIME):  # influences of all differences at once would fill the memory
        block = slice(start, start + AT_A_TIME)
        # 1e9 degrees of freedom stand for inf, where the influences of a difference are all 0.
        influence = distances.influence[first[block]] - distances.influence[second[block]]
        sampled[block], dof[block] = (influence**2).sum(axis=1), np.minimum(stats.squares_dof(influence), 1e9)
    value = distances.value[first] - distances.value[second]
    return Gaps(first, second, value, Spread(sampled, dof, tuple(layers)), distances)
