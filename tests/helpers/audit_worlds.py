"""Simulated audits of several methods whose true distances from retraining are known."""

from dataclasses import dataclass

import numpy as np
from unlearning_audit.stats import paired


@dataclass(frozen=True)
class World:
    """Effects of single samples in single models, for methods with true distances ``truth``.

    ``pairs`` of two splits with ``models`` each are asked about 2·``asked`` of ``samples``, drawn anew for each pair.
    All effects are standard deviations: of a ``sample`` in all models, of a sample in one pair (``crossed``) and in
    one model (``noise``), of a ``model`` and of a ``pair``. Those of two methods correlate by ``common``; ``skewed``
    ones of samples are exponential. A method that is retraining (truth 0) is so in every pair.
    """

    truth: tuple[float, ...]
    pairs: int = 4
    models: int = 3
    samples: int = 160
    asked: int = 40
    sample: float = 0.3
    crossed: float = 0.2
    noise: float = 0.5
    model: float = 0.0
    pair: float = 0.0
    common: float = 0.5
    skewed: bool = False

    def read(self, rng: np.random.Generator) -> paired.Distances:
        """The distances of one audit."""
        size, truth = 2 * self.asked, np.array(self.truth)[:, None]
        rows = self.pairs * 2 * self.models
        unit = np.repeat(np.arange(self.pairs), 2 * self.models)
        split = np.tile(np.repeat([0, 1], self.models), self.pairs)
        columns = np.argsort(rng.random((self.pairs, self.samples)), axis=1)[:, :size]
        cells = self._draw(rng, self.sample, 1, self.samples, skewed=self.skewed)[:, 0, columns][:, unit]
        cells += self._draw(rng, self.crossed, self.pairs, size)[:, unit] + self._draw(rng, self.noise, rows, size)
        cells += (
            self._draw(rng, self.model, rows, 1)
            + self._draw(rng, self.pair, self.pairs, 1)[:, unit] * (truth != 0)[:, None]
        )
        value = cells.mean(axis=2)
        influence = np.zeros((len(self.truth), rows, self.samples))
        place = np.arange(rows)[:, None], columns[unit]
        influence[:, place[0], place[1]] = (cells - value[:, :, None]) / size
        return paired.distances(value=value + truth, influence=influence, unit=unit, split=split)

    def _draw(self, rng: np.random.Generator, spread: float, *shape: int, skewed: bool = False) -> np.ndarray:
        def draws(*size: int) -> np.ndarray:
            return rng.standard_exponential(size) - 1 if skewed else rng.standard_normal(size)

        individual = draws(len(self.truth), *shape)
        return spread * (np.sqrt(self.common) * draws(*shape) + np.sqrt(1 - self.common) * individual)

    @property
    def error(self) -> float:
        """The true standard error of one number that is not 0."""
        size, rows = 2 * self.asked, self.pairs * 2 * self.models
        sampling = 1 / (self.pairs * size) + (1 - 1 / self.pairs) / self.samples
        per_cell = self.crossed**2 / (self.pairs * size) + self.noise**2 / (rows * size)
        return float(np.sqrt(self.sample**2 * sampling + per_cell + self.model**2 / rows + self.pair**2 / self.pairs))
