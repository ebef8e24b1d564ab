"""How far methods are from retraining and from doing nothing, by the same pairs, models and samples."""

from dataclasses import dataclass, replace

import numpy as np

from unlearning.artifacts.contributions import OF_ITSELF, OF_RETRAINED, OF_SAMPLES, Contribution
from unlearning.stats import LEVEL, Estimate, paired, simultaneous
from unlearning.stats.decide import ALPHA, BROKEN, Distance
from unlearning.stats.paired import Distances
from unlearning.stats.ratio import share_closed
from unlearning.stats.simultaneous import Together

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
    """A method's distance from retraining by one metric: ``every`` of its numbers, the same with the errors that they
    have by ``chance`` if it is retraining, what holds for them ``together``, ``which`` of them speaks for all, the
    ``margin``, and whether that number ``tells``."""

    side: Side
    metric: str
    every: Distances
    chance: Distances
    together: Together
    margin: tuple[float, float]
    which: int
    tells: bool = False

    @property
    def attack(self) -> str:
        """The attack that speaks for all, "" where there is none."""
        return self.side.own.names[self.which]

    @property
    def alone(self) -> bool:
        """Whether the interval is that of the test: the distance tells, and how far others may differ hides it."""
        bar = 0.0 if self.side.own.standard.deciding else self.broken
        return self.tells and bool(abs(self.every.value[self.which]) - self.together.half[self.which] <= bar)

    @property
    def shown(self) -> Distance:
        """The distance as a decision takes it; ``p``, that of all numbers together."""
        half = (self.together.alone if self.alone else self.together.half)[self.which]
        value, design = float(self.every.value[self.which]), self.every.design
        standard = self.side.own.standard
        note = alone_note(self.every, standard.units, standard.chance) if self.alone else self.every.note
        estimate = Estimate(value, float(value - half), float(value + half), design.samples, note)
        far, p = self.side.own.standard.far, float(self.together.p.min())
        return Distance(self.metric, estimate, self.together.inner, self.margin, p, far, self.broken)

    @property
    def broken(self) -> float:
        """How much worth a model may lose before it counts as broken."""
        return BROKEN[self.side.own.standard.scale]

    @property
    def factor(self) -> float:
        """How much wider the interval is than that of this number alone."""
        own = self.every.half_widths()[self.which]
        return float(self.together.half[self.which] / own) if own > 0 else 1.0

    @property
    def factor_of_test(self) -> float:
        """How much further from 0 this number must lie to be told than if there were no other."""
        own = self.chance.half_widths(units=False)[self.which]
        return float(self.together.alone[self.which] / own) if own > 0 else 1.0

    def telling(self, p_holm: float) -> "Read":
        """The same, told by the largest of the numbers that tell, if ``p_holm`` ≤ α: the p of all numbers together,
        adjusted over methods and metrics. A number's own p is adjusted by as much."""
        if not p_holm <= ALPHA:
            return self
        own = self.together.p * (p_holm / self.together.p.min())
        which = int(np.where(own <= ALPHA, np.abs(self.every.value), -1.0).argmax())
        return replace(self, which=which, tells=True)


def alone_note(numbers: Distances, units: str, chance: str = OF_ITSELF) -> str:
    """What an interval of these units alone says, or that of a test by ``chance``."""
    if chance == OF_RETRAINED:
        return "interval by how retrained models differ; the method's own may differ more"
    return f"interval of these {numbers.design.units} {units}; it does not cover how others differ"


def by_chance(side: Side, numbers: Distances) -> Distances:
    """The ``numbers`` of a side with the errors that they have if the method is retraining.

    Of retrained models that know nothing of a fair draw of sides, only the draw decides how far they are from 0: its
    variance is known from many samples, however few and different the models. Two groups of retrained models differ by
    √2 of what one varies; a method whose own models differ much more has no claim to that doubt.
    """
    standard = side.own.standard
    if standard.chance == OF_SAMPLES and side.other is None:
        drawn = numbers.of_samples()
        return replace(drawn, influence=drawn.influence * _unshrunk(side.own))
    if standard.chance == OF_RETRAINED and side.other is not None:
        count = len(side.own.names)
        retrained = _stack([(side.other, k) for k in range(count)]).of(np.sqrt(2) * np.eye(count))
        return replace(retrained, value=numbers.value)
    return numbers


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


def _unshrunk(own: Contribution) -> float:
    """What influences have to be multiplied by so that their squares sum to an unbiased variance: n − 1 in place of the
    n + 2 of `stats.mean_influence`."""
    count = (own.influence != 0).any(axis=0).sum(axis=1).min() / 2  # on either side
    return float((count + 2) / np.sqrt(count * (count - 1))) if count > 1 else 1.0


def read(side: Side, metric: str, *, margins: dict[str, float], rng: np.random.Generator, draws: int) -> Read:
    """A method's distance by one metric; of several attacks the strongest, with a band that holds for all. A loss of
    worth tells where it is above what counts as broken."""
    numbers = every(side)
    chance = by_chance(side, numbers)
    which = int(np.abs(numbers.value).argmax())
    own = None if chance is numbers else chance
    both = simultaneous.together(distances=numbers, rng=rng, draws=draws, chance=own)
    found = Read(side, metric, numbers, chance, both, margin(side, margins), which)
    lost = not side.own.standard.deciding and numbers.value[which] - both.alone[which] > found.broken
    return replace(found, tells=bool(lost))


def beside_none(own: Read, none: Read) -> Distances | None:
    """The distances of a method and of none by one number, the attack that finds most in either; None where the two
    do not share their models and samples."""
    if not own.side.own.alike(none.side.own):
        return None
    which = int(np.maximum(np.abs(own.every.value), np.abs(none.every.value)).argmax())
    return joint([(own.side, which), (none.side, which)])


def closer(both: Distances, units: str, *, level: float = LEVEL) -> Estimate:
    """How much closer to retraining a method is than none: |distance of none| − |distance of the method|, paired.

    That a method is like none is refuted by samples and models, as that it is like retraining; where only they refute
    it, the interval is of these units alone.
    """
    signs = np.where(both.value < 0, -1.0, 1.0)
    one = both.of(np.array([[-signs[0], signs[1]]]))
    wide, alone = (one.half_widths(level=level, units=among)[0] for among in (True, False))
    if alone < abs(one.value[0]) <= wide:
        return one.estimates(level=level, units=False, note=alone_note(one, units))[0]
    return one.estimates(level=level)[0]


def closed(both: Distances, units: str) -> Estimate:
    """The share closed; of these units alone where only for them doing nothing is told from retraining."""
    found = share_closed(distances=both)
    if np.isnan(found.value):
        some = share_closed(distances=both, units=False)
        if not np.isnan(some.value):
            return replace(some, note="; ".join(filter(None, (some.note, "share" + alone_note(both, units)[8:]))))
    return found
