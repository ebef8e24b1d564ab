"""What a reader returns: one model as a result file describes it, sample by sample."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: What a model is to the audit. "": the file does not say.
ROLES = NONE, RETRAIN, UNLEARNED, UNKNOWN = "none", "retrain", "unlearned", ""

#: The two sides of an attack, and what else readings are about.
FORGET, HELDOUT, RETAIN, OTHER = "forget", "heldout", "retain", "other"

#: How far a number that was recomputed may lie from that in the file, absolute or relative to it if it is above 1.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Reading:
    """One number for each sample of one part of the data.

    ``part``: one of forget, heldout, retain, other. ``ids`` [samples]: equal texts name equal samples in all files.
    ``value`` float64 [samples], without NaN. ``near``: +1 if a model that remembers more reads higher, −1 if lower,
    0 if neither: then no verdict rests on it.
    ``share``: whether values lie between 0 and 1.
    """

    part: str
    ids: tuple[str, ...]
    value: np.ndarray
    near: int = 1
    share: bool = True


@dataclass(frozen=True)
class Agreement:
    """A number that a file prints, beside what its samples give. ``how``: the formula that gave it, in words.
    ``printed`` is NaN where the file prints none; ``recomputed`` is NaN where the file does not hold its parts."""

    quantity: str
    printed: float
    recomputed: float
    how: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether both are the same to `TOLERANCE`; None where one is not there."""
        if np.isnan(self.printed) or np.isnan(self.recomputed):
            return None
        return bool(abs(self.printed - self.recomputed) <= TOLERANCE * max(1.0, abs(self.printed)))


@dataclass(frozen=True)
class Unread:
    """A result file of the format that cannot be audited, or a model of it, with the ``sentence`` that says why."""

    file: Path
    sentence: str


def read_all(files: Iterable[Path], read_file: Callable[[Path], "Sequence[Model | Unread]"]) -> "list[Model | Unread]":
    """What ``read_file`` returns for every file, and `Unread` for one of which it raises ValueError."""
    results: list[Model | Unread] = []
    for path in files:
        try:
            results += read_file(path)
        except ValueError as error:
            results.append(Unread(path, str(error)))
    return results


def same_file(path: str, file: Path) -> bool:
    """Whether the last two parts of both are the same."""
    return Path(path).parts[-2:] == file.parts[-2:]


def _doubled(ids: tuple[str, ...]) -> str:
    return next((name for name, count in Counter(ids).items() if count > 1), "")


def _unfit(value: object, samples: int) -> str:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.shape != (samples,):
        return f"must be numbers, one for each of {samples} samples"
    return "" if np.isfinite(value).all() else "have values that are NaN or infinite; leave these samples out"


@dataclass(eq=False)
class Model:
    """One model, as one result file describes it.

    ``file``: where it stands. ``role``: one of `ROLES`. ``words``: what names the model itself, such as its
    architecture; ``recipe``: settings it was trained with; ``method`` and ``step`` of unlearning; ``task``: what is to
    be forgotten, as the file calls it. ``ids`` and ``forget`` bool [samples], ``heldout`` bool [samples]: the samples
    that attacks score and their sides; ``scores``: attack → float64 [samples], higher = more like a member.
    ``readings``: name → `Reading`. ``fair``: whether forgotten and held-out samples are a fair draw, such as by coins.
    ``entry``: under which name it stands in the file; ``replicate``: which of several models of one kind it is;
    ``decided``: what its role rests on; ``above``: those of ``words`` that name a folder above the model's own.
    ``yardstick``: the file of the retrained model that this file names. ``left_out``: what of the file is not read →
    why. ``damage``: why the model cannot be compared, because it diverged; then ``ids`` alone are known of its samples.
    ``raw``: what checks across files need. ``notes``: what was assumed, in sentences.
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
    yardstick: str = ""
    entry: str = ""
    replicate: str = ""
    decided: str = ""
    above: frozenset[str] = frozenset()
    left_out: dict[str, str] = field(default_factory=dict)
    damage: str = ""
    raw: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def problem(self) -> str:
        """What is wrong with what a reader returned, in a sentence; empty if nothing is."""
        if self.role not in ROLES:
            return f"its model has the role {self.role!r}, which must be one of {', '.join(map(repr, ROLES))}"
        if doubled := _doubled(self.ids):
            return f"sample {doubled} is there twice; every sample needs a name of its own"
        for name in (FORGET, HELDOUT):
            mask = getattr(self, name)
            if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (len(self.ids),):
                return f"{name} must be bool, one for each of the {len(self.ids)} samples in ids"
        if (self.forget & self.heldout).any():
            return "some sample is both forgotten and held out"
        for name, score in self.scores.items():
            if why := _unfit(score, len(self.ids)):
                return f"the scores {name!r} {why}"
        for name, reading in self.readings.items():
            if not isinstance(reading, Reading) or reading.part not in (FORGET, HELDOUT, RETAIN, OTHER):
                return f"the reading {name!r} must be a Reading of forget, heldout, retain or other"
            if why := _unfit(reading.value, len(reading.ids)):
                return f"the reading {name!r} {why}"
            if doubled := _doubled(reading.ids):
                return f"the reading {name!r} has sample {doubled} twice"
            if reading.share and ((reading.value < 0) | (reading.value > 1)).any():
                return f"the reading {name!r} is a share, and has values outside 0 to 1"
        return ""

    @property
    def name(self) -> str:
        """Role or method, with recipe and step."""
        base = self.method or {NONE: "none", RETRAIN: "retrain"}.get(self.role, "unlearned")
        return " ".join([base, *self.recipe, *([f"step {self.step}"] if self.step is not None else [])])

    @property
    def samples(self) -> dict[str, frozenset[str]]:
        """Part → the samples that something is read of."""
        parts: dict[str, set[str]] = {}
        for reading in self.readings.values():
            parts.setdefault(reading.part, set()).update(reading.ids)
        for part, rows in ((FORGET, self.forget), (HELDOUT, self.heldout)):
            if rows.any():
                parts.setdefault(part, set()).update(np.array(self.ids)[rows])
        return {part: frozenset(ids) for part, ids in parts.items()}
