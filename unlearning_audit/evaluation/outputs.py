"""Logits of all models of one population, which stay in their files until they are needed."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation import signal_files
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.signal_files import BySample, Gradients
from unlearning_audit.stats import rates


class Outputs:
    """Logits of all models: batches stacked along the models, samples in the order of the data.

    Parameters
    ----------
    files
        The files of logits, one for each batch.
    batches
        The memberships of each batch, in the order of ``files``.
    data
        The samples.
    data_file
        The file of the samples, for messages.
    signals
        For each batch, the files that hold other signals of its models, such as gradients or tokens.

    Raises
    ------
    ArtifactError
        If files do not fit the memberships, each other, or the data.
    NoAnswerError
        If there are no logits.
    """

    def __init__(
        self, files: list[str], batches: list[Membership], data: Data, data_file: str, signals: list[list[str]]
    ) -> None:
        """Open all files and check them; the logits are not read yet."""
        self._parts, self._places = [], []
        self._cache: dict[tuple[Any, ...], np.ndarray] = {}
        self._signals: dict[str, BySample] = {}
        self._signal_files = signals
        for path, membership in zip(files, batches, strict=True):
            part = Logits.open(path, len(membership.seed))
            self._places.append(_places(path, part, data, data_file))
            self._parts.append(part)
        self._size, self.classes = len(data.y), self._parts[0].logits.shape[2]

    def __len__(self) -> int:
        """Return the number of models."""
        return sum(len(part.logits) for part in self._parts)

    def by_model(self, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Yield the logits of one model after the other, each float32 [rows, classes]. Only one model is in memory at a
        time.

        Parameters
        ----------
        models
            bool [models]: the chosen models; None: all.
        rows
            bool [samples] or int64 [rows]: the chosen samples; None: all.
        """
        start = 0
        rows = np.flatnonzero(rows) if rows is not None and rows.dtype == bool else rows
        all_or_rows = slice(None) if rows is None else rows
        # ``part``: the logits of one batch of models. ``place``: the row of each sample in its file; None if the file
        # has the order of the samples.
        for part, place in zip(self._parts, self._places, strict=True):
            end = start + len(part.logits)
            chosen = np.arange(len(part.logits)) if models is None else np.flatnonzero(models[start:end])
            rows_of_file = rows if place is None else place[all_or_rows]
            for model in chosen.tolist():
                logits = part.logits[model]
                yield np.array(logits) if rows_of_file is None else np.asarray(logits[rows_of_file])
            start = end

    def stacked(self, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the logits of several models, float32 [chosen models, rows, classes]. The array is cached: do not
        change it.

        Parameters
        ----------
        models
            bool [models]: the chosen models; None: all.
        rows
            bool [samples] or int64 [rows]: the chosen samples; None: all.
        """
        return self._cached(self._stack, models, rows)

    def _cached(self, compute: Callable[..., np.ndarray], *arrays: np.ndarray | None) -> np.ndarray:
        """Return ``compute(*arrays)`` from the cache, or compute it and cache it.

        A mask that selects everything counts as None, which also means everything.
        """
        arrays = tuple(None if a is not None and a.dtype == bool and a.all() else a for a in arrays)
        # The content is the key, because arrays cannot be keys of a dict.
        contents = (None if array is None else (array.shape, array.dtype.kind, array.tobytes()) for array in arrays)
        key = compute.__name__, *contents
        if key not in self._cache:
            self._cache[key] = compute(*arrays)
        return self._cache[key]

    def _stack(self, models: np.ndarray | None, rows: np.ndarray | None) -> np.ndarray:
        """Compute `stacked`: the logits of several models in one array."""
        logits = list(self.by_model(models, rows))
        count = self._size if rows is None else len(np.arange(self._size)[rows])  # rows is a mask, or a list of rows
        return np.stack(logits) if logits else np.zeros((0, count, self.classes), np.float32)

    @property
    def logits(self) -> np.ndarray:
        """Return all logits, float32 [models, samples, classes]."""
        return self.stacked()

    def predicted(self, models: np.ndarray | None = None) -> np.ndarray:
        """Return the class that each model predicts for every sample, int64 [chosen models, samples]. The array is
        cached.

        ``models`` bool [models]: the chosen models; None: all.
        """
        return self._cached(self._predicted, models)

    def _predicted(self, models: np.ndarray | None) -> np.ndarray:
        """Compute `predicted`, one model after the other."""
        predictions = [rates.predicted(logits) for logits in self.by_model(models)]
        return np.stack(predictions) if predictions else np.zeros((0, self._size), np.int64)

    def phi(self, labels: np.ndarray, models: np.ndarray | None = None, rows: np.ndarray | None = None) -> np.ndarray:
        """Return φ = log(p/(1 − p)) of ``labels``, float64 [chosen models, rows]. The array is cached.

        Parameters
        ----------
        labels
            int64 [rows] or [chosen models, rows].
        models
            bool [models]: the chosen models; None: all.
        rows
            bool [samples] or int64 [rows]: the chosen samples; None: all.
        """
        return self._cached(self._phi, labels, models, rows)

    def _phi(self, labels: np.ndarray, models: np.ndarray | None, rows: np.ndarray | None) -> np.ndarray:
        """Compute `phi`, one model after the other."""
        count = len(self) if models is None else int(models.sum())
        by_model = np.broadcast_to(labels, (count, labels.shape[-1]))
        pairs = zip(self.by_model(models, rows), by_model, strict=True)
        values = [stats.phi(logits=logits, y=y) for logits, y in pairs]
        return np.stack(values) if values else np.zeros(by_model.shape)

    @cached_property
    def _signals_by_batch(self) -> list[dict[str, Any]]:
        """Read the signal files of every batch: for each batch, the name of a signal → its `signal_files.BySample`, and
        "gradients" → `signal_files.Gradients`, which has no name of its own."""
        batches = []
        for files, of_batch in zip(self._signal_files, self._parts, strict=True):
            signals = [signal_files.read(path, models=len(of_batch.logits)) for path in files]
            batches.append({part.signal if isinstance(part, BySample) else "gradients": part for part in signals})
        return batches

    @cached_property
    def gradients(self) -> Gradients | None:
        """Return the gradient norms of all batches, joined; None if a batch has none."""
        if any("gradients" not in batch for batch in self._signals_by_batch):
            return None
        return Gradients.concatenate([batch["gradients"] for batch in self._signals_by_batch])

    def of_signal(self, name: str) -> BySample | None:
        """Return the signal ``name`` of all models, on the samples that any batch has; None if a batch does not have
        the signal. A value is NaN where a batch does not have the sample. The signal is cached."""
        if any(name not in batch for batch in self._signals_by_batch):
            return None
        if name in self._signals:
            return self._signals[name]
        parts = [batch[name] for batch in self._signals_by_batch]
        index, values = np.unique(np.concatenate([part.index for part in parts])), []
        for part in parts:
            padded = np.full((len(part.values), len(index), *part.values.shape[2:]), np.nan, part.values.dtype)
            padded[:, np.searchsorted(index, part.index)] = part.values
            values.append(padded)
        self._signals[name] = BySample(parts[0].signal, np.concatenate(values), index)
        return self._signals[name]

    def by_sample(self, name: str, models: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return the signal ``name`` of some models on some samples, float64 [chosen models, rows, …]; NaN where a
        sample has no value. Return None if the signal was not computed.

        Parameters
        ----------
        models
            bool [models]: the chosen models.
        rows
            int64 [rows]: the samples.
        """
        signal = self.of_signal(name)
        if signal is None:
            return None
        column_of = np.full(self._size, -1)  # sample → its column in the values; −1 if they lack the sample
        column_of[signal.index] = np.arange(len(signal.index))
        chosen, columns = signal.values[models], column_of[rows]
        by_row = np.full((len(chosen), len(rows), *chosen.shape[2:]), np.nan)
        by_row[:, columns >= 0] = chosen[:, columns[columns >= 0]]
        return by_row


def _places(path: str, stored: Logits, data: Data, data_file: str) -> np.ndarray | None:
    """Return the row of every sample in the file ``path`` of logits, int64 [samples]; None if the rows are in the order
    of the samples.

    Raises ArtifactError unless ``stored``, the content of the file, has every sample of ``data`` once, with its label,
    and as many classes at least. The data came from ``data_file``.
    """
    samples, place = np.arange(len(data.y)), None
    if not np.array_equal(stored.index, samples):
        place = np.argsort(stored.index, kind="stable")  # which is fast for an index of two ascending parts
        if not np.array_equal(stored.index[place], samples):
            raise ArtifactError(f"{path}: field 'index' does not match {data_file}; delete it and run again")
    if not np.array_equal(stored.y, data.y[stored.index]):
        raise ArtifactError(f"{path}: field 'y' does not match {data_file}; delete it and run again")
    if stored.logits.shape[2] < data.classes:
        problem = f"has {stored.logits.shape[2]} classes, but {data_file} has {data.classes}"
        raise ArtifactError(f"{path}: field 'logits' {problem}; delete it and run again")
    return place
