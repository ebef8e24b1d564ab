"""Distances of methods from retraining and from doing nothing, on the same pairs, models and samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unlearning_audit.evaluation.effects import OF_RETRAINED, OF_SAMPLES, Effect
from unlearning_audit.stats import LEVEL, Estimate, paired, resolution, simultaneous, unpaired
from unlearning_audit.stats.decide import ALPHA, Distance
from unlearning_audit.stats.paired import Distances
from unlearning_audit.stats.ratio import share_closed
from unlearning_audit.stats.resolution import Components
from unlearning_audit.stats.simultaneous import Together
from unlearning_audit.stats.unpaired import Models

#: Method → metric → numbers.
Effects = dict[str, dict[str, Effect]]

NONE, RETRAIN, CONTROL = "none", "retrain", "retrain_control"

#: The reference of a distance where theory gives the value of retraining.
THEORY = "theory"

#: Attacks within this share of a standard error of the largest count with it, so that the last bit of a score decides
#: nothing.
SOFT = 0.25

DISAGREE = (
    "the verdict rests on a test against chance alone, but the interval also covers pairs and models and contains 0"
)
#: Reasons why a number gives no distance, and remarks on how one was computed.
UNVARIED = "rests on one model without effects of its samples, so its uncertainty is unknown"
LONE = "only one model was audited: its variance is taken from retrained models"
GIVEN = "given that retrained models have a standard deviation of"
#: Text before the p-value of an exact test, which the verdict corrects.
EXACT = "exact test of the coins alone, not corrected for methods and metrics: p ="
#: Remark on a utility that is far below that of retrained models, and may be so by chance.
UNSURE = "far worse than retrained models, but these may vary as much themselves"
#: Remark on a number where both sides lie at one end of its range.
SATURATED = "method and retraining lie at the {} of this number's range, where it cannot show that models are alike"
FAR_SIDE = "forgotten samples look less familiar than samples never seen"


@dataclass(frozen=True)
class Side:
    """A method's numbers by one metric, ``audited``, and what they are compared with, ``reference``: the numbers of
    retrained models, or None if theory gives the value of retraining.

    ``source``: what the ``reference`` is: `RETRAIN`, `CONTROL` or `THEORY`; ``spread``: the standard deviation over
    retrained models, if the study gives it and there is a single retrained model; else None.
    """

    audited: Effect
    reference: Effect | None
    source: str
    spread: float | None = None

    @property
    def retrained(self) -> int:
        """Return how many retrained models the numbers are compared with; 0 if theory gives their value."""
        return 0 if self.reference is None else len(self.reference.unit)

    @property
    def paired(self) -> bool:
        """Return whether every audited model has a retrained partner, or needs none because theory gives the value of
        retraining.

        Models that repeat a split and stem from different originals have no partners, because the order in which they
        are listed does not pair them. Nor have models partners if their units or splits are not those of the retrained
        ones, or if the ``spread`` is given.
        """
        if self.reference is None:
            return True
        alike = self.spread is None and self.audited.alike(self.reference)
        return alike and (self.audited.partners or not self.audited.repeats)

    def corresponds(self, side: "Side") -> bool:
        """Return whether the models of another method, ``side``, have the same units and splits as the models of this
        one, so that both methods can be compared jointly.

        The retrained models must correspond too, unless models have partners or theory gives the value of retraining.
        """
        if not self.audited.alike(side.audited) or self.paired != side.paired:
            return False
        return self.reference is None or side.reference is None or self.paired or self.reference.alike(side.reference)

    @property
    def constant(self) -> float:
        """Return the theoretical value of retraining, with the sign of a distance; 0 if there are retrained models to
        compare with."""
        return 0.0 if self.reference is not None else self.audited.rule.direction * self.audited.rule.ideal

    @property
    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest possible distance."""
        low, high = self.audited.rule.lowest, self.audited.rule.highest
        if self.reference is not None:
            return low - high, high - low
        ends = sorted(self.audited.rule.direction * (end - self.audited.rule.ideal) for end in (low, high))
        return ends[0], ends[1]


@dataclass(frozen=True)
class Read:
    """A method's distance from retraining by one metric, as `read` computes it.

    A metric with several attacks has a distance by each of them, and one of these stands for all in tables and
    verdicts. ``side``: the method's numbers, and what they are compared with; ``numbers``: the distances by all
    attacks, or the one distance of a metric without attacks; ``chance``: those distances with the errors that they have
    if the method is retraining; ``together``: intervals and p-values that hold for all of them; ``margin``: the range
    that counts as equivalent, (far, near) around 0; ``place``: the index of the distance that stands for all: the
    largest, or the largest that differs significantly; ``broken``: the loss above which a model is broken; ``differs``:
    whether the distance differs significantly from 0; ``blind`` bool [attacks]: attacks that do not decide equivalence
    (None: all decide); ``outlying``: whether a utility lies outside of retrained models on an unbounded scale.
    """

    side: Side
    metric: str
    numbers: Distances
    chance: Distances
    together: Together
    margin: tuple[float, float]
    place: int
    broken: float
    differs: bool = False
    blind: np.ndarray | None = None
    outlying: bool = True

    @property
    def attack(self) -> str:
        """Return the attack whose distance stands for all; "" for a metric without attacks."""
        return self.side.audited.names[self.place]

    @property
    def exact(self) -> bool:
        """Return whether the p-value is that of an exact test."""
        return self.side.audited.p is not None and self.side.reference is None

    @property
    def disagree(self) -> bool:
        """Return whether the distance of a deciding metric differs from 0 by the test against chance, although its
        interval contains 0."""
        low, high = self._hull(self.together.half, [self.place])
        return self.side.audited.rule.deciding and self.differs and low <= 0 <= high

    @property
    def unrepeated(self) -> bool:
        """Return whether the variation of models is unknown, because neither models that repeat each other nor several
        splits or units show it. It is False for a comparison with theory."""
        return self.side.reference is not None and not (self.numbers.models.dof or self.numbers.units.dof)

    @cached_property
    def saturated(self) -> str:
        """Return a note if the method and retraining both lie within two standard errors of one end of the number's
        range, else "".

        It is also "" for a metric of utility, for a comparison with theory, and where retraining lies at that end by
        design.
        """
        rule, reference = self.side.audited.rule, self.side.reference
        if reference is None or not rule.deciding or rule.chance == OF_RETRAINED:
            return ""
        # One entry if both sides lie at the same end of the range; "" for a side that lies at neither.
        ends = {_end(effect, self.place) for effect in (self.side.audited, reference)}
        return SATURATED.format(*ends) if len(ends) == 1 and "" not in ends else ""

    @cached_property
    def components(self) -> Components:
        """Return the variance components of the distance that stands for all attacks."""
        return resolution.components(distances=self.numbers)[self.place]

    @cached_property
    def components_by_chance(self) -> Components:
        """Return the variance components that the distance which stands for all attacks would have if the method were
        retraining, widened by the factor that a test of several attacks demands."""
        if self.chance is self.numbers:  # `by_chance` returned them unchanged
            variances = self.components
        elif self.side.audited.rule.chance == OF_SAMPLES:  # only the draw of samples varies
            variances = replace(self.components, of_samples=True)
        else:  # two groups of retrained models, or models without partners
            variances = resolution.components(distances=self.chance)[self.place]
        return variances.widened(self.factor_of_test)

    @cached_property
    def distance(self) -> Distance:
        """Return the distance that stands for all attacks, with its intervals, margin and notes, for `decide.classify`.

        Its p-value is that of all attacks together; NaN if the variation of models is unknown. Its lower limit
        ``least`` is that of the audited pairs alone. It is −inf where a loss of utility beyond the limit for broken
        models may be chance, so that the method does not count as broken.
        """
        low, high = self._hull(self.together.half, [self.place])
        lower, _ = self._hull(self.together.alone, [self.place])
        unsure = (self.unrepeated or not self.outlying) and lower > self.broken
        p = np.nan if self.unrepeated else float(self.together.p.min())
        value, design = float(self.numbers.value[self.place]), self.numbers.design
        lone = not self.side.paired and len(self.side.audited.unit) == design.units * design.splits  # one model each
        exact = f"{EXACT} {p:.2g}" * self.exact
        warnings = DISAGREE * self.disagree, UNSURE * unsure
        notes = filter(None, (self.given or LONE * lone, self.saturated, exact, self.numbers.note, *warnings))
        estimate = Estimate(value, low, high, design.samples, "; ".join(notes))
        inner = self._hull(self.together.inner, slice(None) if self.blind is None else ~self.blind)
        two_sided, least = self.side.audited.rule.two_sided, -np.inf if unsure else lower
        return Distance(self.metric, estimate, inner, self.margin, p, two_sided, self.broken, least)

    @property
    def given(self) -> str:
        """Return a clause on the given spread of retrained models on which the distance rests; "" if none is given."""
        return "" if self.side.spread is None else f"{GIVEN} {self.side.spread:.3g}"

    def _hull(self, half: np.ndarray, places: np.ndarray | list[int] | slice) -> tuple[float, float]:
        """Return the smallest interval that contains value ± ``half`` (float64 [K]) of the distances at ``places``
        (indices, or a mask over attacks), cut at the range of possible distances."""
        value, half = self.numbers.value[places], half[places]
        low, high = np.clip([(value - half).min(), (value + half).max()], *self.side.range)
        return float(low), float(high)

    @property
    def factor(self) -> float:
        """Return how many times wider the interval of the distance is, as one of several, than its own would be."""
        return float(self._factors[self.place])

    @property
    def factor_of_largest(self) -> float:
        """Return how many times wider intervals of several distances are than their own, averaged with the `weights` of
        the largest.

        The average makes the factor continuous in the scores.
        """
        return float(np.abs(self.weights) @ self._factors)

    @cached_property
    def _factors(self) -> np.ndarray:
        """Return how many times wider the joint interval of each attack's distance is than its own, float64 [K]; 1
        where its own has no width."""
        alone = self.numbers.half_widths()
        return np.where(alone > 0, self.together.half / np.where(alone > 0, alone, 1.0), 1.0)

    @cached_property
    def factor_of_test(self) -> float:
        """Return how many times further from 0 the distance must lie to be significant than if it were the only one."""
        alone = self.chance.half_widths(units=False)[self.place]
        return float(self.together.alone[self.place] / alone) if alone > 0 else 1.0

    @property
    def weights(self) -> np.ndarray:
        """Return how much each attack's distance counts towards the largest, with its sign: float64 [K], absolute
        values sum to 1.

        Distances within about `SOFT` standard errors of the largest count with it, so that the last bit of a score
        decides nothing.
        """
        size, error = np.abs(self.numbers.value), self.numbers.errors.max()
        weight = np.exp((size - size.max()) / (SOFT * error)) if error > 0 else (size == size.max()) * 1.0
        return np.asarray(np.where(self.numbers.value < 0, -1.0, 1.0) * weight / weight.sum())

    @property
    def largest(self) -> float:
        """Return the distance of the attack whose absolute distance is the largest."""
        return float(self.numbers.value[np.abs(self.numbers.value).argmax()])

    def differing(self, p_holm: float) -> "Read":
        """Return the distance with another attack standing for all: the largest whose number differs significantly from
        0.

        ``p_holm``: the p-value of all attacks together, adjusted over methods and metrics by Holm; if it exceeds α, the
        distance is returned unchanged. Each attack's own p-value is adjusted by the same factor.
        """
        if not p_holm <= ALPHA:
            return self
        significant = self._adjusted(p_holm) <= ALPHA
        place = int(np.where(significant, np.abs(self.numbers.value), -1.0).argmax())
        return replace(self, place=place, differs=True)

    def _adjusted(self, p_holm: float) -> np.ndarray:
        """Return each attack's own p-value, adjusted over methods and metrics, float64 [K]; it may exceed 1, and is
        compared with α only.

        ``p_holm``: the least p-value of all attacks of this method and metric, adjusted so by Holm. The factor by which
        Holm multiplies it depends on other methods and metrics but not on the attack, so it serves all attacks.
        """
        return np.asarray(self.together.p * (p_holm / self.together.p.min()))

    def sighted(self, none: "Read", p_none: float, p_holm: float) -> "Read":
        """Return the distance with ``blind`` set to the attacks that find no difference between doing nothing and
        retraining.

        Equivalence is then shown without these attacks; otherwise the variation of many attacks that find nothing would
        decide. An attack is blind under two conditions: the 1 − 2α intervals of doing nothing and of this method lie
        within twice the margin, and the attack distinguishes neither from retraining. ``none``: the distance of doing
        nothing by this metric; ``p_none`` and ``p_holm``: the adjusted p-values of doing nothing and of this method. If
        no attack is blind or all are, or if the metric is coarse, the distance is returned unchanged.
        """
        far, near = self.margin
        p_of_none, p_values = none._adjusted(p_none), self._adjusted(p_holm)
        blind = np.zeros(len(p_values), bool)
        for attack, name in enumerate(self.side.audited.names):
            if p_values[attack] > ALPHA and name in none.side.audited.names:
                of_none = none.side.audited.names.index(name)
                ends = none._hull(none.together.inner, [of_none]), self._hull(self.together.inner, [attack])
                within = all(2 * far < low and high < 2 * near for low, high in ends)
                blind[attack] = p_of_none[of_none] > ALPHA and within
        partly_blind = blind.any() and not blind.all() and not self.side.audited.rule.coarse
        return replace(self, blind=blind) if partly_blind else self

    def with_coarse_margin(self) -> "Read":
        """Return the distance with a margin at least as wide as the one that its metric declares for being too
        coarse."""
        far, near = self.margin
        wide = self.side.audited.rule.coarse_margin
        return replace(self, margin=(min(far, -wide), max(near, wide)))

    def capped(self, least: float) -> "Read":
        """Return the distance with a margin of at most half of ``least`` on either side of 0.

        ``least``: the lower limit of the interval of the distance between doing nothing and retraining. A method
        within the margin is then closer to retraining than to doing nothing.
        """
        far, near = self.margin  # far < 0 < near
        return replace(self, margin=(max(far, -least / 2), min(near, least / 2)))


def by_chance(side: Side, numbers: Distances) -> Distances:
    """Return the ``numbers`` of a method with the errors that they would have if the method were retraining.

    There are four cases. If theory gives the value of retraining because forgotten samples are a random draw, only this
    draw decides how far retrained models are from that value; its variance is known from many samples, however few the
    models. Models without partners have the spread of retrained models. If the variation of a number by chance is known
    from retrained models only, the errors are √2 times those of the retrained models, as two groups of them differ; a
    method whose own models vary much more does not widen the test. In all other cases the numbers keep their own
    errors.
    """
    rule = side.audited.rule
    if rule.chance == OF_SAMPLES and side.reference is None:
        # The factor makes the variance over samples unbiased, on which this test rests alone.
        return replace(numbers.of_samples(), influence=numbers.influence * _unshrunk(side.audited))
    if side.reference is not None and not side.paired:
        # The second result has the errors that hold if all models are retrained.
        return _differences([(side, np.eye(len(side.audited.names)))])[1]
    if rule.chance == OF_RETRAINED and side.reference is not None:
        # The errors are those of retrained models, widened to the difference of two groups of them.
        alike = np.sqrt(2) * np.eye(len(side.audited.names))
        return replace(paired.distances(**_combined([(side.reference, alike)])), value=numbers.value)
    return numbers


def against(method: str, metric: str, effects: Effects, spread: float | None = None) -> Side | str:
    """Return a method's numbers by one metric with what they are compared with, or a clause that says why they cannot
    be compared.

    The numbers are compared with the value that theory predicts if there is one, else with retrained models. Retraining
    itself is then compared with its control, a set of independently retrained models. The clause is returned in three
    cases: the number is missing; retrained models are missing, or were queried by other attacks or on other samples;
    the numbers do not vary. ``effects``: method → metric → numbers; ``spread``: the known standard deviation over
    retrained models, used only if there is a single one.
    """
    effect = effects[method].get(metric)
    if effect is None:
        return "has no number with an uncertainty"
    if not np.isnan(effect.rule.ideal):
        return Side(effect, None, THEORY) if effect.varies else UNVARIED
    source = CONTROL if method == RETRAIN else RETRAIN
    reference = effects.get(source, {}).get(metric)
    if reference is None:
        return f"there is no {source.replace('_', ' ')} to compare with"
    if effect.names != reference.names or not np.array_equal(effect.index, reference.index):
        return f"{source.replace('_', ' ')} was evaluated by other attacks or on other samples"
    side = Side(effect, reference, source, spread if len(reference.unit) == 1 else None)
    return side if effect.varies or reference.varies or side.spread is not None else UNVARIED


def corresponding(sides: Mapping[str, Side]) -> list[str]:
    """Return the methods, keys of ``sides``, whose models have the same units and splits, so that they can be ranked
    together.

    Of several such sets of methods, return the largest, then the one with most methods besides the references (none,
    retrain and its control), then the first by name. Return [] if ``sides`` is empty.
    """
    sets: list[list[str]] = []
    for method, side in sides.items():
        members = next((members for members in sets if side.corresponds(sides[members[0]])), None)
        if members is None:
            sets.append([method])
        else:
            members.append(method)
    references = {NONE, RETRAIN, CONTROL}
    return min(sets, key=lambda names: (-len(names), -len({*names} - references), sorted(names)), default=[])


def joint(sides: list[tuple[Side, np.ndarray]]) -> Distances | None:
    """Return the distances of several methods from retraining with their joint error; None where their models do not
    correspond.

    ``sides``: for each method its K numbers by one metric, and the weights, float64 [K], with which they are combined
    to its distance.
    """
    if not all(side.corresponds(sides[0][0]) for side, _ in sides):
        return None
    return _differences([(side, weights[None]) for side, weights in sides])[0]  # one combination for each method


def distances_of(side: Side) -> Distances:
    """Return the distances of a method from what it is compared with, one for each of its numbers (``side``), such as
    one per attack.

    They are signed so that models that forgot nothing have a positive distance.
    """
    return _differences([(side, np.eye(len(side.audited.names)))])[0]


def _differences(sides: list[tuple[Side, np.ndarray]]) -> tuple[Distances, Distances]:
    """Return the distances of methods whose models correspond, twice with different errors.

    The first result has the errors that audited and retrained models show. The errors of the second hold if all models
    are retrained. The two results differ only for models without partners. ``sides``: for each method its numbers by
    one metric, and a matrix float64 [distances, numbers], whose rows are the combinations of these numbers that are its
    distances.
    """
    example = sides[0][0]  # of all methods, as their models correspond
    matrices = np.concatenate([matrix for _, matrix in sides])
    # With the sign by which models that forgot nothing have a positive distance.
    signed = [(side, side.audited.rule.direction * matrix) for side, matrix in sides]
    counts = [len(matrix) for _, matrix in signed]
    audited = [(side.audited, matrix) for side, matrix in signed]
    reference = [(side.reference, matrix) for side, matrix in signed if side.reference]
    if example.paired:
        has_reference = np.repeat([side.reference is not None for side, _ in sides], counts)
        rows = np.eye(len(has_reference))
        # The numbers of all audited models come first, then those of retrained models, which are subtracted from them.
        # Where theory takes their place, the constant below is subtracted.
        numbers = paired.distances(**_combined(audited + reference))
        shown = alike = numbers.of(np.concatenate([rows, -rows[:, has_reference]], axis=1))
    else:
        combinations = np.concatenate([matrix for _, matrix in signed])
        # Attacks are assumed independent, which widens intervals that hold for several of them.
        covariance = None if example.spread is None else example.spread**2 * combinations @ combinations.T
        # Methods share the retrained model, but no model of their own.
        of_audited = None if covariance is None else np.diag(np.diag(covariance))
        shown, alike = unpaired.differences(
            audited=Models(**_combined(audited), covariance=of_audited),
            reference=Models(**_combined(reference), covariance=covariance),
        )
    # `Side.constant` has the sign of a distance already, so that it is combined by the matrices without that sign.
    constant = np.repeat([side.constant for side, _ in sides], counts) * matrices.sum(axis=1)
    return shown.minus(constant), alike.minus(constant)


def _combined(effects: Sequence[tuple[Effect, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return "value", "influence" and "imagined" of linear combinations of the numbers of several effects on the same
    models: those of the first effect, then those of the second, and so on. "unit" and "split" are those of the models.

    ``effects``: each effect, with a matrix float64 [combinations, numbers].
    """
    combined = {"unit": effects[0][0].unit, "split": effects[0][0].split}
    for name in ("value", "influence", "imagined"):
        numbers = [np.tensordot(matrix, getattr(effect, name), axes=1) for effect, matrix in effects]
        combined[name] = np.concatenate(numbers)
    return combined


def margin(side: Side, margins: dict[str, float]) -> tuple[float, float]:
    """Return the range of distances that count as equivalent, (far, near) around 0, on the scale of the distance.

    ``margins``: name of a margin → its size. A metric declares the name of its margin, or a size of its own.
    """
    name, scale = side.audited.rule.margin, side.audited.rule.scale
    size = margins[name] if name in margins else float(name)
    if scale == "difference":
        return -size, size
    if scale == "log":
        return -float(np.log(size)), float(np.log(size))
    below, above = 1 / size - 1, size - 1  # from 1, the ratio of retraining
    # If models that forgot nothing have the smaller ratio, distances have the opposite sign.
    return (below, above) if side.audited.rule.direction > 0 else (-above, -below)


def broken(side: Side, margins: dict[str, float]) -> float:
    """Return the loss of utility above which a model counts as broken, from ``margins``; inf where the number does not
    measure utility or no such loss is set."""
    size = margins.get(f"broken_{side.audited.rule.margin}")
    if side.audited.rule.deciding or size is None:
        return float("inf")
    return float(np.log(size)) if side.audited.rule.scale == "log" else size


def _end(effect: Effect, place: int) -> str:
    """Return the end of the possible range, "floor" or "ceiling", within two standard errors of which the mean over
    models of one number lies; "" if neither.

    ``effect``: numbers of one metric; ``place``: the index of the number.
    """
    value, error = effect.value[place], np.sqrt((effect.influence[place].mean(axis=0) ** 2).sum())
    if len(value) > 1:
        error = np.hypot(error, value.std(ddof=1) / np.sqrt(len(value)))
    ends = {"floor": value.mean() - effect.rule.lowest, "ceiling": effect.rule.highest - value.mean()}
    return next((name for name, room in ends.items() if room <= 2 * error), "")


def _unshrunk(effect: Effect) -> float:
    """Return the factor by which influences of samples are multiplied so that the sum of their squares is an unbiased
    variance.

    It replaces the divisor n + 2 of `stats.mean_influence` by n − 1, where n is the number of forgotten, or of
    held-out, samples of a model.
    """
    count = (effect.influence != 0).any(axis=0).sum(axis=1).min() / 2  # half are forgotten
    return float((count + 2) / np.sqrt(count * (count - 1))) if count > 1 else 1.0


def read(
    side: Side, metric: str, *, margins: dict[str, float], rng: np.random.Generator, draws: int,
    level: float = LEVEL, utilities: int = 2,
) -> Read:  # fmt: skip
    """Return a method's distance by one metric; of several attacks the strongest, with intervals that hold for all.

    ``side``: the method's numbers, and what they are compared with; ``margins``: name of a margin, or ``broken_`` and
    that name → size; ``draws``: how often ``rng`` draws the joint deviations; ``level``: the confidence level;
    ``utilities``: the number of metrics of utility, by each of which a model may be broken. A false loss by one of them
    has probability (1 − ``level``)/2, as only one end of an interval counts. With more than two metrics, their level is
    raised so that all together err with probability 1 − ``level`` at most (Bonferroni).
    """
    numbers = distances_of(side)
    chance = by_chance(side, numbers)
    strongest = int(np.abs(numbers.value).argmax())
    errors = None if chance is numbers else chance
    together = simultaneous.together(distances=numbers, rng=rng, draws=draws, chance=errors, level=level)
    # The p-values of an exact test, if there are any, are of the value that theory predicts.
    p = together.p if side.audited.p is None or side.reference is not None else side.audited.p
    together = replace(together, p=np.maximum(p, np.finfo(np.float64).tiny))  # p-values are divided by the least one
    outlying = True
    if not side.audited.rule.deciding:
        level = 1 - (1 - level) * min(1.0, 2 / utilities)
        together = replace(together, alone=chance.half_widths(level=level, units=False))
        outlying = _outlying(side, level)
    limit = broken(side, margins)
    return Read(side, metric, numbers, chance, together, margin(side, margins), strongest, limit, outlying=outlying)


def _outlying(side: Side, level: float) -> bool:
    """Return whether audited models have less utility than retrained ones, by Student's t at ``level`` on an unbounded
    scale, their ``latent`` quality; True also where this test is not needed or cannot be made.

    Accuracy alone does not show the loss. Three models that are right on all samples do not show how such models vary,
    so a fourth model like them would be called broken in up to 13 % of audits. Student's t holds on a scale on which
    models may be normal. The test is not needed if every audited model has a retrained partner (`Side.paired`), because
    differences of models of one kind are symmetrical on any scale.
    """
    audited, reference = side.audited, side.reference
    if reference is None or side.paired or audited.latent is None or reference.latent is None:
        return True
    # The quality of each model replaces its utility. Without columns of samples, only models contribute to the error.
    audited, reference = (
        replace(effect, value=quality[None], influence=effect.influence[..., :0], imagined=effect.imagined[..., :0])
        for effect, quality in ((audited, audited.latent), (reference, reference.latent))
    )
    _, chance = _differences([(Side(audited, reference, side.source), np.eye(1))])  # the one number as it is
    # If both are models of one kind, they do not differ between units, so the variance between units is left out.
    least = chance.value - chance.half_widths(level=level, units=False)
    return bool(least[0] > 0) or not chance.models.dof


def beside_none(method: Read, none: Read) -> Distances | None:
    """Return how far a method and doing nothing (``none``) are from retraining by one metric, with their joint error;
    None where their models do not correspond.

    Both distances are at least 0. Of several attacks, the one with the largest absolute distance counts. Attacks that
    come close to it count in the interval too, so that the interval is continuous in the scores.
    """
    both = joint([(method.side, method.weights), (none.side, none.weights)])
    return None if both is None else replace(both, value=np.abs([method.largest, none.largest]))


def closer(both: Distances, *, factor: float = 1.0, level: float = LEVEL) -> Estimate:
    """Return how much closer to retraining a method is than doing nothing: the paired difference of their distances,
    positive if the method is closer.

    ``both``: the joint distances of the method and of doing nothing, in this order (`beside_none`); ``factor``: how
    many times wider the upper half of the interval is made, because the largest of many distances is large by chance.
    """
    estimate = both.of(np.array([[-1.0, 1.0]])).estimates(level=level)[0]
    return replace(estimate, high=estimate.value + factor * (estimate.high - estimate.value))


def closed(both: Distances, method: Read, none: Read) -> Estimate:
    """Return the share of the distance between doing nothing and retraining that a method removed, at most 1; NaN with
    the reason if doing nothing is not distinguishable.

    ``both``: the joint distances of the method and of doing nothing; ``method`` and ``none``: their distances by one
    metric. A note says if the method lies on the far side of retraining, which means that it went too far.
    """
    significant = none.differs and none.largest > 0
    share = share_closed(distances=both, significant=significant, factor=method.factor_of_largest)
    note = FAR_SIDE if method.side.audited.rule.two_sided and method.largest < 0 and share.value < 1 else ""
    return replace(share, note="; ".join(filter(None, (share.note, note))))
