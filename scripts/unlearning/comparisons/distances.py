"""How far methods are from retraining and from doing nothing, by the same pairs, models and samples."""

from dataclasses import dataclass

import numpy as np

from unlearning.artifacts.contributions import Contribution
from unlearning.stats import LEVEL, Estimate, paired, simultaneous
from unlearning.stats.decide import ALPHA, Distance
from unlearning.stats.paired import Distances

NONE, RETRAIN, CONTROL = "none", "retrain", "retrain_control"

#: What a distance is measured from where theory knows.
THEORY = "theory"


@dataclass(frozen=True)
class Side:
    """A method's numbers by one metric, and what they are held against: ``other`` is None where theory knows."""

    own: Contribution
    other: Contribution | None
    source: str

    def stacked(self, which: list[int]) -> list[tuple[Contribution, int]]:
        """The numbers ``which`` of the method, then those of the other side."""
        both = [self.own] if self.other is None else [self.own, self.other]
        return [(one, k) for one in both for k in which]

    @property
    def weights(self) -> list[float]:
        """How the method's number and the other's make a distance that is above 0 where doing nothing lies."""
        near = float(self.own.standard.near)
        return [near] if self.other is None else [near, -near]

    @property
    def constant(self) -> float:
        """What theory says of the distance's other side, oriented."""
        return 0.0 if self.other is not None else self.own.standard.near * self.own.standard.ideal


@dataclass(frozen=True)
class Read:
    """A method's distance from retraining by one metric: ``shown`` for the decision, ``which`` of several attacks it
    is, ``all`` of them together, and how much wider its interval is for that (``factor``)."""

    side: Side
    shown: Distance
    which: int
    every: Distances
    factor: float

    @property
    def attack(self) -> str:
        """The attack that finds most, "" where there is none."""
        return self.side.own.names[self.which]


def against(method: str, metric: str, found: dict[str, dict[str, Contribution]]) -> Side | str:
    """What a method's number is held against: theory, retrained models, or for these the control; else why nothing."""
    own = found[method].get(metric)
    if own is None:
        return "has no number with its parts"
    if not np.isnan(own.standard.ideal):
        return Side(own, None, THEORY)
    source = CONTROL if method == RETRAIN else RETRAIN
    other = found.get(source, {}).get(metric)
    if other is None:
        return f"there is no {source.replace('_', ' ')} to measure it from"
    if not own.alike(other):
        return f"{source.replace('_', ' ')} has other models or samples, so no difference can be paired"
    return Side(own, other, source)


def joint(sides: list[tuple[Side, int]]) -> Distances:
    """The distances of several methods from retraining, each by one of its numbers, read together."""
    parts, rows, constants = [], [], []
    for side, which in sides:
        own = side.stacked([which])
        rows.append((len(parts), side.weights))
        parts += own
        constants.append(side.constant)
    matrix = np.zeros((len(sides), len(parts)))
    for row, (start, weights) in zip(matrix, rows, strict=True):
        row[start : start + len(weights)] = weights
    return _stack(parts).of(matrix).minus(np.array(constants))


def every(side: Side) -> Distances:
    """The distances by all of a method's numbers."""
    count = len(side.own.names)
    rows = np.concatenate([weight * np.eye(count) for weight in side.weights], axis=1)
    return _stack(side.stacked(list(range(count)))).of(rows).minus(side.constant)


def _stack(parts: list[tuple[Contribution, int]]) -> Distances:
    first = parts[0][0]
    value, influence, imagined = (
        np.stack([getattr(one, name)[k] for one, k in parts]) for name in ("value", "influence", "imagined")
    )
    return paired.distances(
        value=value, influence=influence, imagined=imagined, unit=first.unit, split=first.split
    )  # fmt: skip


def margin(side: Side, margins: dict[str, float]) -> tuple[float, float]:
    """What still counts as retrained, (far, near) around 0, on the scale of the distance."""
    size, scale = margins[side.own.standard.margin], side.own.standard.scale
    if scale == "difference":
        return -size, size
    if scale == "log":
        return -float(np.log(size)), float(np.log(size))
    below, above = 1 / size - 1, size - 1  # of a ratio that is 1
    return (below, above) if side.own.standard.near > 0 else (-above, -below)


def read(side: Side, metric: str, *, margins: dict[str, float], rng: np.random.Generator, draws: int) -> Read:
    """A method's distance by one metric; of several attacks the strongest, with a band that holds for all."""
    numbers, standard = every(side), side.own.standard
    ends, tails = margin(side, margins), 1 - 2 * ALPHA
    if len(numbers.value) > 1:
        best = simultaneous.strongest(distances=numbers, rng=rng, draws=draws)
        own = numbers.half_widths()[best.which]
        shown = Distance(metric, best.estimate, best.inner, ends, best.p, standard.far)
        factor = (best.estimate.high - best.estimate.value) / own if own > 0 else 1.0
        return Read(side, shown, best.which, numbers, float(factor))
    (estimate,), (inner,) = numbers.estimates(), numbers.estimates(level=tails)
    p = float(numbers.p_values()[0])
    return Read(side, Distance(metric, estimate, (inner.low, inner.high), ends, p, standard.far), 0, numbers, 1.0)


def beside_none(own: Read, none: Read) -> Distances | None:
    """The distances of a method and of none by one number, the attack that finds most in either; None where the two
    do not share their models and samples."""
    if not own.side.own.alike(none.side.own):
        return None
    which = int(np.maximum(np.abs(own.every.value), np.abs(none.every.value)).argmax())
    return joint([(own.side, which), (none.side, which)])


def closer(both: Distances, *, level: float = LEVEL) -> Estimate:
    """How much closer to retraining a method is than none: |distance of none| − |distance of the method|, paired."""
    signs = np.where(both.value < 0, -1.0, 1.0)
    return both.of(np.array([[-signs[0], signs[1]]])).estimates(level=level)[0]
