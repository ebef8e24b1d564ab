"""`Model`, which a reader returns: one model as a result file describes it, with numbers for each sample."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: The role of a model in the audit. "": the file does not say.
ROLES = NONE, RETRAIN, UNLEARNED, UNKNOWN = "none", "retrain", "unlearned", ""

#: The parts of the data: the two that attacks compare, and two others.
FORGET, HELDOUT, RETAIN, OTHER = "forget", "heldout", "retain", "other"

#: The largest difference between a printed and a recomputed number, absolute, or relative if the number is above 1.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Reading:
    """A number for each sample of one part of the data, such as the probability of its label, as a result file has it.

    Parameters
    ----------
    part
        The part: forget, heldout, retain or other.
    ids
        str [samples]: names of samples. Equal names mean equal samples in all files.
    value
        float64 [samples], without NaN.
    direction
        +1 if a model that remembers more has larger values, −1 if it has smaller values, 0 if neither is so. No verdict
        rests on a reading with 0.
    share
        Whether values lie between 0 and 1.
    """

    part: str
    ids: tuple[str, ...]
    value: np.ndarray
    direction: int = 1
    share: bool = True


@dataclass(frozen=True)
class Agreement:
    """A number that a file prints, beside the same number computed from the file's samples. ``how``: the formula in
    words. ``printed`` is NaN if the file prints no such number; ``recomputed`` is NaN if the file does not contain what
    the number is computed from."""

    quantity: str
    printed: float
    recomputed: float
    how: str = ""

    @property
    def agrees(self) -> bool | None:
        """Return whether the printed and the recomputed number are equal up to `TOLERANCE`, which is relative if the
        absolute printed number is above 1; None if one of the two numbers is missing."""
        if np.isnan(self.printed) or np.isnan(self.recomputed):
            return None
        return bool(abs(self.printed - self.recomputed) <= TOLERANCE * max(1.0, abs(self.printed)))


@dataclass(frozen=True)
class Unread:
    """A result file, or a model in it, that cannot be audited, with the ``sentence`` that says why."""

    file: Path
    sentence: str


def read_all(files: Iterable[Path], read_file: Callable[[Path], "Sequence[Model | Unread]"]) -> "list[Model | Unread]":
    """Read every file by ``read_file``. A file for which it raises ValueError, or KeyError because a field is missing,
    becomes an `Unread`."""
    results: list[Model | Unread] = []
    for path in files:
        try:
            results += read_file(path)
        except (ValueError, KeyError) as error:
            results.append(Unread(path, f"{path}: {error} is missing" if isinstance(error, KeyError) else str(error)))
    return results


def same_file(path: str, file: Path) -> bool:
    """Return whether ``path``, as another computer may have written it, is taken for ``file``: their last two parts, a
    folder and a name, are equal. The folders above may differ."""
    return Path(path).parts[-2:] == file.parts[-2:]


def doubled(ids: Iterable[str]) -> str:
    """Return the first of the names ``ids`` that occurs twice; "" if no name does."""
    return next((name for name, count in Counter(ids).items() if count > 1), "")


def _fits(value: object, samples: int) -> bool:
    """Return whether ``value`` is an array of finite numbers [samples]. ``samples``: the number of samples."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.shape != (samples,):
        return False
    return bool(np.isfinite(value).all())


@dataclass(eq=False)
class Model:
    """One model, as one result file describes it.

    Parameters
    ----------
    file
        The result file.
    role
        What the model is in the audit, one of `ROLES`; "": the file does not say.
    words
        Words that name the model itself, such as its architecture.
    recipe
        Settings of its training, as names tell them, such as lr1e-5.
    method, step
        The unlearning method, and the number of its step.
    task
        What is to be forgotten, as the file calls it.
    ids
        str [samples]: the samples that attacks score.
    forget, heldout
        bool [samples]: which of the samples ``ids`` are to be forgotten, and which the model never saw.
    scores
        Attack → float64 [samples], higher = more like a member.
    readings
        Name → `Reading`.
    agreements
        Numbers that the file prints, beside recomputed ones.
    fair
        Whether forgotten and held-out samples are a random draw, such as by coins.
    retrained_file
        The file of the retrained model to which this file refers.
    entry
        The name of the model in the file, if the file contains several.
    replicate
        Which of several models of one kind it is.
    decided
        The reason for its role, in words for the user.
    left_out
        Content of the file that is not read → why.
    damage
        Why the model cannot be compared, because it diverged; "" if it did not. Of a diverged model, only ``ids`` are
        known of its samples.
    raw
        Data for checks across files, as the reader of the format needs them.
    notes
        Assumptions, in sentences.
    """

    file: Path
    role: str = UNKNOWN
    words: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    method: str = ""
    step: int | None = None
    task: str = ""
    ids: tuple[str, ...] = ()
    forget: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    heldout: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    readings: dict[str, Reading] = field(default_factory=dict)
    agreements: list[Agreement] = field(default_factory=list)
    fair: bool = False
    retrained_file: str = ""
    entry: str = ""
    replicate: str = ""
    decided: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    damage: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def divide(self, forget: Sequence[str], heldout: Sequence[str]) -> None:
        """Set the samples that attacks score and their masks: first the samples to be forgotten, then the held-out
        samples."""
        self.ids = (*forget, *heldout)
        self.forget = np.arange(len(self.ids)) < len(forget)
        self.heldout = ~self.forget

    def problem(self) -> str:
        """Return what is wrong with a model that a reader returned, as the end of a sentence; "" if nothing is
        wrong."""
        if self.role not in ROLES:
            return f"its model has the role {self.role!r}; the role must be one of {', '.join(map(repr, ROLES))}"
        if twice := doubled(self.ids):
            return f"sample {twice} occurs twice; every sample needs its own name"
        for name in (FORGET, HELDOUT):
            mask = getattr(self, name)
            if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (len(self.ids),):
                return f"{name} must be bool, one for each of the {len(self.ids)} samples in ids"
        if (self.forget & self.heldout).any():
            return "some sample is both forgotten and held out"
        for name, score in self.scores.items():
            if not _fits(score, len(self.ids)):
                return f"the scores {name!r} must hold a finite number for each sample; leave out samples without one"
        for name, reading in self.readings.items():
            if not isinstance(reading, Reading) or reading.part not in (FORGET, HELDOUT, RETAIN, OTHER):
                return f"the reading {name!r} must be a Reading of forget, heldout, retain or other"
            if not _fits(reading.value, len(reading.ids)):
                return f"the reading {name!r} must hold a finite number for each sample; leave out samples without one"
            if twice := doubled(reading.ids):
                return f"the reading {name!r} has sample {twice} twice"
            if reading.share and ((reading.value < 0) | (reading.value > 1)).any():
                return f"the reading {name!r} is a share, but has values outside 0 to 1"
        return ""

    @property
    def name(self) -> str:
        """Return the method or, without one, the role, and then recipe and step, such as "npo lr1e-5 step 100"."""
        step = [] if self.step is None else [f"step {self.step}"]
        return " ".join([self.method or self.role or UNLEARNED, *self.recipe, *step])

    @property
    def samples(self) -> dict[str, frozenset[str]]:
        """Return part of the data → its samples for which the model has a score or the value of a reading."""
        parts: dict[str, set[str]] = {}
        for reading in self.readings.values():
            parts.setdefault(reading.part, set()).update(reading.ids)
        for part, mask in ((FORGET, self.forget), (HELDOUT, self.heldout)):
            if mask.any():
                parts.setdefault(part, set()).update(np.array(self.ids)[mask])
        return {part: frozenset(ids) for part, ids in parts.items()}
