"""Write and read checkpoints of long trainings, so that a job that was killed resumes when it runs again."""

import logging
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from unlearning_audit.store.files import ArtifactError, read_verified, replacing, seal, sealed
from unlearning_audit.training.engine import State

#: Seconds of training between two checkpoints of the same models, unless UNLEARNING_CHECKPOINT_SECONDS sets them.
#: A job shorter than that leaves none.
INTERVAL = 600.0

#: Prefix of the names of checkpoint files, which lie beside the job's results.
PREFIX = "checkpoint"


class Checkpoints:
    """The checkpoints of a job's models in its ``folder``.

    A checkpoint holds everything on which the rest of a training depends, at the end of an epoch: weights, buffers and
    the optimiser's state. Sample order and augmentation need no state, because they are keyed by model and epoch.

    Models that are trained together are a group, which is given by their numbers in the stack.

    Parameters
    ----------
    numbers
        For each model of the stack, its number among the job's models.
    interval
        The seconds between checkpoints.
    """

    def __init__(self, folder: str | Path, numbers: Iterable[int], interval: float | None = None) -> None:
        """Set ``interval``; if it is None, to UNLEARNING_CHECKPOINT_SECONDS, or else to `INTERVAL`."""
        self.folder, self.numbers = Path(folder), [int(number) for number in numbers]
        seconds = os.environ.get("UNLEARNING_CHECKPOINT_SECONDS") or INTERVAL
        self.interval = float(seconds) if interval is None else interval
        self._last_begun: dict[tuple[int, ...], float] = {}  # group → when its last checkpoint was begun
        self._start = time.monotonic()

    def due(self, group: Sequence[int], done: bool = False) -> bool:
        """Return whether a checkpoint of the models of a ``group`` is to be written now: the interval has passed since
        their last checkpoint, or since the start of the job if they have none.

        If the training of the group is ``done``, the interval counts from the start of the job in any case. The job may
        still train other groups for long, and if it is killed, it must not train this group again.
        """
        since = self._start if done else self._last_begun.get(tuple(group), self._start)
        return time.monotonic() - since >= self.interval

    def write(self, group: Sequence[int], epoch: int, tensors: State) -> None:
        """Write a checkpoint of the models of a ``group`` after ``epoch`` epochs. If it cannot be written, log that and
        let training continue.

        The next checkpoint is due an interval later in any case. ``tensors``: what the training depends on, by name.
        """
        from safetensors.torch import save_file

        path = self._path(group)
        self._last_begun[tuple(group)] = time.monotonic()
        stored = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        stored |= {"epoch": torch.tensor(epoch), "models": torch.tensor(self._job_numbers(group))}
        try:
            with replacing(path) as temporary:
                save_file(stored, temporary)
            seal(path)
        except ArtifactError as error:
            logging.warning("no checkpoint was written: %s", error)

    def read(self, group: Sequence[int]) -> tuple[int, State] | None:
        """Return the checkpoint of a ``group`` of models: how many epochs they were trained for, and the tensors by
        name (`write`).

        Return None if there is no checkpoint, or if it is unfinished, damaged, or of other models.
        """
        from safetensors.torch import load_file

        path = self._path(group)
        if not path.exists() or not sealed(path):  # the seal is written last
            return None
        try:
            tensors = read_verified(path, lambda: load_file(path))
        except ArtifactError:
            return None
        if tensors.pop("models").tolist() != self._job_numbers(group):
            return None
        return int(tensors.pop("epoch")), tensors

    def _job_numbers(self, group: Sequence[int]) -> list[int]:
        """Return the numbers that the models of a ``group`` have among the job's models."""
        return [self.numbers[model] for model in group]

    def _path(self, group: Sequence[int]) -> Path:
        """Return the path of a group's checkpoint. Its name has the number of the group's first model in the job."""
        return self.folder / f"{PREFIX}-{self._job_numbers(group)[0]}.safetensors"


def remove(folder: str | Path) -> None:
    """Delete the checkpoints and their seals in the ``folder`` of a job that has written its results. Files that a
    killed process left unfinished are deleted too: they lie in folders whose names hold the name of a checkpoint."""
    for path in Path(folder).glob(f"*{PREFIX}-*.safetensors*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
