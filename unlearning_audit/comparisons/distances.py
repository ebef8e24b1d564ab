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

#: In a soft maximum of distances, attacks within this share of a standard error of the largest distance count with it,
#: so that the last bit of a score decides nothing.
SOFT = 0.25

#: Remark on a distance for which `Read.disagree` is true.
DISAGREE = (
    "the verdict rests on a test against chance alone, but the interval also covers pairs and models and contains 0"
)
#: Reasons why a number gives no distance, and remarks on how one was computed.
UNVARIED = "rests on one model without effects of its samples, so its uncertainty is unknown"
LONE = "only one model of each split was audited: its variance is taken from retrained models"
GIVEN = "given that retrained models have a standard deviation of"
#: Text before the p-value of an exact test, which the verdict corrects.
EXACT = "exact test of the coins alone, not corrected for methods and metrics: p ="
#: Remark on a utility that is far below that of retrained models, and may be so by chance.
UNSURE = "far worse than retrained models, but these may vary as much themselves"
#: Remark on a number where the method and retraining both lie at one end of its range.
SATURATED = "method and retraining lie at the {} of this number's range, where it cannot show that models are alike"
#: Remark on a method that went too far.
FAR_SIDE = "forgotten samples look less familiar than samples never seen"


@dataclass(frozen=True)
class Contrast:
    """A method's numbers by one metric, ``audited``, and what they are compared with, ``reference``: the numbers of
    retrained models, or None if theory gives the value of retraining.

    Parameters
    ----------
    source
        What the ``reference`` is: `RETRAIN`, `CONTROL` or `THEORY`.
    spread
        The standard deviation over retrained models, if the study gives it and there is a single retrained model; else
        None.
    """

    audited: Effect
    reference: Effect | None
    source: str
    spread: float | None = None

    @property
    def retrained_count(self) -> int:
        """Return how many retrained models the numbers are compared with; 0 if theory gives their value."""
        return 0 if self.reference is None else len(self.reference.unit)

    @property
    def paired(self) -> bool:
        """Return whether every audited model has a retrained partner, or needs none because theory gives the value of
        retraining.

        Models have no partners if their units or splits are not those of the retrained models, or if the ``spread`` is
        given. Nor have they if several models of one split stem from different originals (``Effect.partners``), because
        the order in which these models are listed does not pair them.
        """
        if self.reference is None:
            return True
        alike = self.spread is None and self.audited.alike(self.reference)
        return alike and (self.audited.partners or not self.audited.repeats)

    def corresponds(self, contrast: "Contrast") -> bool:
        """Return whether both methods can be compared jointly: the models of ``contrast``, the other method, have the
        attacks, samples, units and splits that the models of this method have.

        Either every model of both methods has a retrained partner, or needs none because theory gives the value of
        retraining; or this holds for neither method. In the latter case, the retrained models of both must match, too.
        """
        if not self.audited.alike(contrast.audited) or self.paired != contrast.paired:
            return False
        # Partners of models that are alike are alike, too. Without partners, both methods have retrained models.
        return self.paired or bool(self.reference and contrast.reference and self.reference.alike(contrast.reference))

    @property
    def constant(self) -> float:
        """Return the theoretical value of retraining, with the sign of a distance; 0 if there are retrained models to
        compare with."""
        return 0.0 if self.reference is not None else self.audited.rule.direction * self.audited.rule.ideal

    @property
    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest possible distance, from the possible values of the number."""
        low, high = self.audited.rule.lowest, self.audited.rule.highest
        if self.reference is not None:  # retrained models may have any of these values
            return low - high, high - low
        # Theory gives the value of retraining, ``ideal``. A direction of −1 turns the range round.
        least, most = sorted(self.audited.rule.direction * (end - self.audited.rule.ideal) for end in (low, high))
        return least, most


@dataclass(frozen=True)
class Read:
    """A method's distance from retraining by one metric, as `read` computes it.

    A metric with several attacks has a distance by each of them, and one of these stands for all in tables and
    verdicts.

    Parameters
    ----------
    contrast
        The method's numbers, and what they are compared with.
    numbers
        K distances: one by each attack, or the one of a metric without attacks.
    chance
        The ``numbers`` with the errors that they would have if the method were retraining (`with_errors_by_chance`).
    together
        Intervals and p-values that hold for all ``numbers``.
    margin
        The range that counts as equivalent, (far, near) around 0.
    chosen
        The index of the distance that stands for all: the largest, or the largest that differs significantly.
    breaking_loss
        The loss of utility above which a model is broken; inf for a metric that decides verdicts.
    differs
        Whether the distance differs significantly from 0. `with_significant_attack` sets it; False for a utility.
    blind
        bool [K]: attacks that do not decide equivalence (None: all decide).
    outlying
        Whether a utility lies below that of retrained models on an unbounded scale (`_outlying`); True where this is
        not tested, as for a metric that decides verdicts.
    """

    contrast: Contrast
    metric: str
    numbers: Distances
    chance: Distances
    together: Together
    margin: tuple[float, float]
    chosen: int
    breaking_loss: float
    differs: bool = False
    blind: np.ndarray | None = None
    outlying: bool = True

    @property
    def attack(self) -> str:
        """Return the attack whose distance stands for all; "" for a metric without attacks."""
        return self.contrast.audited.names[self.chosen]

    @property
    def exact(self) -> bool:
        """Return whether the p-value is that of an exact test of the value that theory predicts."""
        return self.contrast.audited.p is not None and self.contrast.reference is None

    @property
    def disagree(self) -> bool:
        """Return whether the distance of a deciding metric differs from 0 by the test against chance, although its
        interval contains 0."""
        low, high = self._hull(self.together.joint_half, [self.chosen])
        return self.contrast.audited.rule.deciding and self.differs and low <= 0 <= high

    @property
    def variation_unknown(self) -> bool:
        """Return whether the variation of models is unknown, because neither models that repeat each other nor several
        splits or units show it. Return False for a comparison with theory."""
        return self.contrast.reference is not None and not (self.numbers.models.dof or self.numbers.units.dof)

    @cached_property
    def saturated(self) -> str:
        """Return a note if the method and retraining both lie within two standard errors of one end of the number's
        range, else "".

        Return "", too, for a metric of utility, for a comparison with theory, and where retraining lies at that end by
        design, as its ``chance`` `OF_RETRAINED` says.
        """
        rule, reference = self.contrast.audited.rule, self.contrast.reference
        if reference is None or not rule.deciding or rule.chance == OF_RETRAINED:
            return ""
        # One entry if the method and retraining lie at the same end of the range; "" for one that lies at neither end.
        ends = {_nearby_end(effect, self.chosen) for effect in (self.contrast.audited, reference)}
        return SATURATED.format(*ends) if len(ends) == 1 and "" not in ends else ""

    @cached_property
    def components(self) -> Components:
        """Return the variance components of the distance that stands for all attacks."""
        return resolution.components(distances=self.numbers)[self.chosen]

    @cached_property
    def components_by_chance(self) -> Components:
        """Return the variance components that the distance which stands for all attacks would have if the method were
        retraining, widened by the factor that a test of several attacks demands."""
        if self.chance is self.numbers:  # `with_errors_by_chance` returned the numbers unchanged
            variances = self.components
        elif self.contrast.audited.rule.chance == OF_SAMPLES:  # only the draw of samples varies
            variances = replace(self.components, of_samples=True)
        else:  # two groups of retrained models, or models without partners
            variances = resolution.components(distances=self.chance)[self.chosen]
        return variances.widened(self.widening_of_test)

    @cached_property
    def distance(self) -> Distance:
        """Return the distance that stands for all attacks, for verdicts (`decide.classify`).

        The distance has three intervals, all cut at the possible range. The first interval, of ``estimate``, is
        printed: it covers other pairs and models, and holds for all attacks at once. The second interval, ``inner``, is
        for the test of equivalence; it contains the 1 − 2α intervals of all attacks that are not blind. The third
        interval covers the audited pairs only. Its ``lower_limit`` is for the test of broken models; it is −inf if the
        loss may be chance. ``p`` is the p-value of all attacks together; NaN if the variation of models is
        unknown.
        """
        value, samples = float(self.numbers.value[self.chosen]), self.numbers.design.samples
        estimate = Estimate(value, *self._hull(self.together.joint_half, [self.chosen]), n=samples, note=self._note)
        return Distance(
            self.metric, estimate, margin=self.margin, two_sided=self.contrast.audited.rule.two_sided,
            inner=self._hull(self.together.inner_half, slice(None) if self.blind is None else ~self.blind),
            p=np.nan if self.variation_unknown else float(self.together.p.min()), breaking_loss=self.breaking_loss,
            lower_limit=-np.inf if self._loss_may_be_chance else self._lower_limit,
        )  # fmt: skip

    @property
    def _lower_limit(self) -> float:
        """Return the lower limit of the distance that stands for all attacks. The limit holds for the audited pairs
        only, not for other pairs of splits."""
        return self._hull(self.together.null_half, [self.chosen])[0]  # [0]: the lower limit, [1]: the upper one

    @property
    def _loss_may_be_chance(self) -> bool:
        """Return whether the lower limit of the loss of utility lies above ``breaking_loss``, but may do so by chance.

        It may do so if the variation of models is unknown, or if they do not lie below retrained ones (``outlying``).
        The result is False for a metric that decides verdicts, because its ``breaking_loss`` is inf.
        """
        return self._lower_limit > self.breaking_loss and (self.variation_unknown or not self.outlying)

    @property
    def _note(self) -> str:
        """Return the remarks on the distance, joined by semicolons; "" if there are none."""
        alone = not (self.contrast.paired or self.contrast.audited.repeats)
        remarks = (
            self.spread_note or (LONE if alone else ""), self.saturated,
            f"{EXACT} {self.together.p.min():.2g}" if self.exact else "", self.numbers.note,
            DISAGREE if self.disagree else "", UNSURE if self._loss_may_be_chance else "",
        )  # fmt: skip
        return "; ".join(filter(None, remarks))

    @property
    def spread_note(self) -> str:
        """Return a clause on the spread of retrained models that the study gives and on which the distance rests; "" if
        the distance rests on no given spread."""
        return "" if self.contrast.spread is None else f"{GIVEN} {self.contrast.spread:.3g}"

    def _hull(self, half_widths: np.ndarray, attacks: np.ndarray | list[int] | slice) -> tuple[float, float]:
        """Return the smallest interval that contains value ± half-width of the distances by some ``attacks``, cut at
        the range of possible distances.

        Parameters
        ----------
        half_widths
            float64 [K]: the half-widths of all attacks.
        attacks
            Which attacks: indices, a slice or a mask.
        """
        value, half = self.numbers.value[attacks], half_widths[attacks]
        low, high = np.clip([(value - half).min(), (value + half).max()], *self.contrast.range)
        return float(low), float(high)

    @property
    def widening(self) -> float:
        """Return how many times wider the interval of the distance that stands for all attacks is, because it holds for
        all attacks at once, than the interval of that distance alone."""
        return float(self._widenings[self.chosen])

    @property
    def mean_widening(self) -> float:
        """Return how many times wider joint intervals are than the intervals of single attacks, averaged over attacks
        with their `weights`.

        The average makes the factor continuous in the scores of attacks.
        """
        return float(np.abs(self.weights) @ self._widenings)

    @cached_property
    def _widenings(self) -> np.ndarray:
        """Return how many times wider the joint interval of each attack's distance is than its own, float64 [K]; 1
        where its own has no width."""
        own_half = self.numbers.half_widths()
        return np.where(own_half > 0, self.together.joint_half / np.where(own_half > 0, own_half, 1.0), 1.0)

    @cached_property
    def widening_of_test(self) -> float:
        """Return how many times further from 0 the distance that stands for all attacks must lie to be significant than
        if there were no other attack; 1 where its own interval has no width."""
        own_half = self.chance.half_widths(units=False)[self.chosen]
        return float(self.together.null_half[self.chosen] / own_half) if own_half > 0 else 1.0

    @property
    def weights(self) -> np.ndarray:
        """Return how much each attack counts in a soft maximum of the absolute distances, with the sign of its
        distance: float64 [K], absolute values sum to 1.

        Distances within about `SOFT` standard errors of the largest count with it, so that the last bit of a score
        decides nothing. Without errors, only the largest count.
        """
        size, error = np.abs(self.numbers.value), self.numbers.errors.max()
        weight = np.exp((size - size.max()) / (SOFT * error)) if error > 0 else (size == size.max()) * 1.0
        return np.asarray(np.where(self.numbers.value < 0, -1.0, 1.0) * weight / weight.sum())

    @property
    def largest(self) -> float:
        """Return the distance of the attack whose absolute distance is the largest."""
        return float(self.numbers.value[np.abs(self.numbers.value).argmax()])

    def with_significant_attack(self, p_holm: float) -> "Read":
        """Return the distance with another attack in place of the one that stands for all: of the attacks that differ
        significantly from retraining, the one with the largest absolute distance; ``differs`` is then true.

        The p-value of each attack is adjusted by one factor for all (`_adjusted_p_values`).

        Parameters
        ----------
        p_holm
            The p-value of all attacks together, adjusted over methods and metrics; if it exceeds α, or is NaN, the
            distance is returned unchanged.
        """
        if not p_holm <= ALPHA:
            return self
        significant = self._adjusted_p_values(p_holm) <= ALPHA
        chosen = int(np.where(significant, np.abs(self.numbers.value), -1.0).argmax())
        return replace(self, chosen=chosen, differs=True)

    def _adjusted_p_values(self, p_holm: float) -> np.ndarray:
        """Return each attack's own p-value, adjusted over methods and metrics, float64 [K]. The values may exceed 1,
        and are compared with α only.

        ``p_holm``: the least p-value of the attacks, after the correction over methods and metrics. This multiplies it
        by a factor that does not depend on the attack, so all attacks are multiplied by that factor.
        """
        return np.asarray(self.together.p * (p_holm / self.together.p.min()))

    def with_blind_attacks(self, none: "Read", p_none: float, p_holm: float) -> "Read":
        """Return the distance with ``blind`` set to the blind attacks, which the test of equivalence leaves out.

        If blind attacks counted, the variation of many attacks that find nothing would decide that test. By a blind
        attack, neither doing nothing nor this method differs significantly from retraining, and the 1 − 2α intervals of
        both distances lie within twice the margin. If no attack is blind or every attack is blind, or if the metric is
        coarse, the distance is returned unchanged.

        Parameters
        ----------
        none
            The distance of doing nothing by this metric.
        p_none, p_holm
            The adjusted p-values of doing nothing and of this method.
        """
        far, near = self.margin  # far < 0 < near
        p_of_none, p_of_method = none._adjusted_p_values(p_none), self._adjusted_p_values(p_holm)
        blind, names_of_none = np.zeros(len(p_of_method), bool), none.contrast.audited.names
        for attack, name in enumerate(self.contrast.audited.names):
            if p_of_method[attack] > ALPHA and name in names_of_none:
                same = names_of_none.index(name)  # the same attack among those of doing nothing
                intervals = none._hull(none.together.inner_half, [same]), self._hull(self.together.inner_half, [attack])
                within = all(2 * far < low and high < 2 * near for low, high in intervals)
                blind[attack] = p_of_none[same] > ALPHA and within
        partly_blind = blind.any() and not blind.all() and not self.contrast.audited.rule.coarse
        return replace(self, blind=blind) if partly_blind else self

    def with_coarse_margin(self) -> "Read":
        """Return the distance with a margin that is at least ``coarse_margin`` wide on either side of 0: the margin
        that a metric declares for studies in which it is too coarse for its usual one."""
        far, near = self.margin  # far < 0 < near
        wide = self.contrast.audited.rule.coarse_margin
        return replace(self, margin=(min(far, -wide), max(near, wide)))

    def with_capped_margin(self, lower_limit: float) -> "Read":
        """Return the distance with a margin of at most half of ``lower_limit`` on either side of 0.

        With such a margin, a method within it is closer to retraining than to doing nothing.

        Parameters
        ----------
        lower_limit
            The lower limit of the interval of the distance between doing nothing and retraining.
        """
        far, near = self.margin  # far < 0 < near
        return replace(self, margin=(max(far, -lower_limit / 2), min(near, lower_limit / 2)))


def with_errors_by_chance(contrast: Contrast, numbers: Distances) -> Distances:
    """Return the ``numbers``, distances of a method, with the errors that they would have if the method were
    retraining.

    There are three cases:

    * Theory gives the value of retraining because forgotten samples are a random draw. Only this draw decides how far
      retrained models are from that value. The variance of the draw is known from many samples, however few the models.
    * Models have no retrained partners, or the metric says that its number varies as groups of retrained models do
      (`OF_RETRAINED`). The errors are those of two groups of models of one kind.
    * In all other cases the numbers keep their own errors, and ``numbers`` itself is returned.
    """
    rule = contrast.audited.rule
    each_attack = np.eye(len(contrast.audited.names))  # row k takes the number of attack k
    if rule.chance == OF_SAMPLES and contrast.reference is None:
        # The factor makes the variance over samples unbiased, on which this test rests alone.
        return replace(numbers.of_samples(), influence=numbers.influence * _unbiased_factor(contrast.audited))
    if contrast.reference is not None and (rule.chance == OF_RETRAINED or not contrast.paired):
        return _differences([(contrast, each_attack)], pairs=False)[1]  # [1]: with the errors if all are retrained
    return numbers


def contrast_or_reason(method: str, metric: str, effects: Effects, spread: float | None = None) -> Contrast | str:
    """Return a method's numbers by one metric with what they are compared with, or the reason why they cannot be
    compared, a clause.

    The numbers are compared with the value that theory predicts if there is one, else with retrained models. Retraining
    itself is then compared with its control, a set of independently retrained models. A reason is returned in three
    cases: the number is missing; retrained models are missing, or were queried by other attacks or on other samples; or
    neither models nor samples show how the numbers vary.

    Parameters
    ----------
    effects
        Method → metric → numbers.
    spread
        The known standard deviation over retrained models, used only if there is a single one.
    """
    effect = effects[method].get(metric)
    if effect is None:
        return "has no number with an uncertainty"
    if not np.isnan(effect.rule.ideal):
        return Contrast(effect, reference=None, source=THEORY) if effect.varies else UNVARIED
    source = CONTROL if method == RETRAIN else RETRAIN
    reference = effects.get(source, {}).get(metric)
    if reference is None:
        return f"there is no {source.replace('_', ' ')} to compare with"
    if effect.names != reference.names or not np.array_equal(effect.index, reference.index):
        return f"{source.replace('_', ' ')} was evaluated by other attacks or on other samples"
    contrast = Contrast(effect, reference, source, spread if len(reference.unit) == 1 else None)
    return contrast if effect.varies or reference.varies or contrast.spread is not None else UNVARIED


def corresponding(contrasts: Mapping[str, Contrast]) -> list[str]:
    """Return the methods, keys of ``contrasts``, whose models correspond to each other (`Contrast.corresponds`), so
    that they can be ranked together.

    Of several such sets of methods, return the largest; of equally large ones the set with most methods besides the
    references (none, retrain and its control); of these the first by name. Return [] if ``contrasts`` is empty.
    """
    sets: list[list[str]] = []
    for method, contrast in contrasts.items():
        # One member of a set stands for all, whose models correspond. None: a method that corresponds to no set so far.
        joined = next((methods for methods in sets if contrast.corresponds(contrasts[methods[0]])), None)
        if joined is None:
            sets.append([method])
        else:
            joined.append(method)
    references = {NONE, RETRAIN, CONTROL}
    return min(sets, key=lambda names: (-len(names), -len({*names} - references), sorted(names)), default=[])


def joint(contrasts: list[tuple[Contrast, np.ndarray]]) -> Distances | None:
    """Return the distances of several methods from retraining with their joint error; None where their models do not
    correspond.

    Parameters
    ----------
    contrasts
        For each method its K numbers by one metric, and the weights, float64 [K], with which they are combined to its
        distance.
    """
    first, _weights = contrasts[0]
    if not all(contrast.corresponds(first) for contrast, _weights in contrasts):
        return None
    # Each method has one distance, so its matrix has one row, the weights.
    shown, _if_retrained = _differences([(contrast, weights[None]) for contrast, weights in contrasts])
    return shown


def distances_of(contrast: Contrast) -> Distances:
    """Return the distances of a method from what it is compared with: one for each of the numbers in ``contrast``, such
    as one per attack.

    Distances are signed so that models that forgot nothing have a positive distance.
    """
    # Row k of the identity matrix takes number k alone.
    shown, _if_retrained = _differences([(contrast, np.eye(len(contrast.audited.names)))])
    return shown


def _differences(
    contrasts: list[tuple[Contrast, np.ndarray]], *, pairs: bool | None = None
) -> tuple[Distances, Distances]:
    """Return the distances of methods whose models correspond, twice with different errors: first with the errors that
    audited and retrained models show, then with the errors that hold if all models are retrained. The two errors differ
    only for models without partners.

    Parameters
    ----------
    contrasts
        For each method its numbers by one metric, and a matrix float64 [distances, numbers]. Each row of the matrix
        weights these numbers, and their weighted sum is one of the method's distances.
    pairs
        Whether audited models and their retrained partners are compared as pairs; by default they are where models have
        partners (`Contrast.paired`).
    """
    first, _matrix = contrasts[0]  # whether models have partners, and a given spread, are the same for all methods
    matrices = np.concatenate([matrix for _, matrix in contrasts])
    # The sign of the metric makes the distance of models that forgot nothing positive.
    signed = [(contrast, contrast.audited.rule.direction * matrix) for contrast, matrix in contrasts]
    counts = [len(matrix) for _, matrix in signed]
    audited = [(contrast.audited, matrix) for contrast, matrix in signed]
    reference = [(contrast.reference, matrix) for contrast, matrix in signed if contrast.reference]
    if first.paired if pairs is None else pairs:
        has_reference = np.repeat([contrast.reference is not None for contrast, _ in contrasts], counts)
        rows = np.eye(len(has_reference))
        # The numbers of all audited models come first, then those of retrained models, which are subtracted from them.
        # Methods that are compared with theory have no retrained models: the constant below is subtracted instead.
        numbers = paired.distances(**_combined(audited + reference))
        shown = if_retrained = numbers.combined(np.concatenate([rows, -rows[:, has_reference]], axis=1))
    else:
        combinations = np.concatenate([matrix for _, matrix in signed])
        # Attacks are assumed independent, which widens intervals that hold for several of them.
        covariance = None if first.spread is None else first.spread**2 * combinations @ combinations.T
        # Methods share the retrained model, but no audited model, so audited models of different methods do not covary.
        of_audited = None if covariance is None else np.diag(np.diag(covariance))
        shown, if_retrained = unpaired.differences(
            audited=Models(**_combined(audited), covariance=of_audited),
            reference=Models(**_combined(reference), covariance=covariance),
        )
    # `Contrast.constant` has the sign of a distance already, so the matrices without that sign are used.
    constant = np.repeat([contrast.constant for contrast, _ in contrasts], counts) * matrices.sum(axis=1)
    return shown.minus(constant), if_retrained.minus(constant)


def _combined(effects: Sequence[tuple[Effect, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the fields of an `Effect` that `paired.distances` and `unpaired.Models` need, for linear combinations of
    the numbers of several effects on the same models.

    "value", "influence" and "imagined" have the combinations of the first effect, then those of the second, and so on.
    "unit" and "split" are those of the models. Each effect has imaginary samples of its own, which are 0 in those of
    other effects, so that they do not cancel in differences between effects that agree on all samples.

    Parameters
    ----------
    effects
        Each effect, with a matrix float64 [combinations, numbers], whose rows weight the numbers.
    """
    first, _matrix = effects[0]  # all effects are of models with the same units and splits
    combined = {"unit": first.unit, "split": first.split}
    for name in ("value", "influence"):
        numbers = [np.tensordot(matrix, getattr(effect, name), axes=1) for effect, matrix in effects]
        combined[name] = np.concatenate(numbers)
    distinct = {id(effect): effect for effect, _matrix in effects}.values()  # retrained models serve several methods
    imagined = [
        np.concatenate([np.tensordot(matrix, own.imagined * (own is effect), axes=1) for own in distinct], axis=2)
        for effect, matrix in effects
    ]
    return combined | {"imagined": np.concatenate(imagined)}


def margin(contrast: Contrast, margins: dict[str, float]) -> tuple[float, float]:
    """Return the range of distances that count as equivalent: (far, near), far < 0 < near.

    A metric declares the name of its margin, or a size as text. The size is a difference, or a factor by which the
    number may be larger or smaller (scales "log" and "ratio").

    Parameters
    ----------
    margins
        Name of a margin → its size.

    Raises
    ------
    ValueError
        If the metric's margin is neither a name in ``margins`` nor a number.
    """
    name, scale = contrast.audited.rule.margin, contrast.audited.rule.scale
    try:
        size = margins[name] if name in margins else float(name)
    except ValueError:
        known = f"neither a number nor one of the study's margins: {', '.join(margins)}"
        raise ValueError(f"the margin {name!r} of a metric is {known}") from None
    if scale == "difference":
        return -size, size
    if scale == "log":
        return -float(np.log(size)), float(np.log(size))
    # The scale is "ratio": retraining has the ratio 1, and ratios from 1/size to size count as equivalent.
    below, above = 1 / size - 1, size - 1
    # If models that forgot nothing have the smaller ratio, distances have the opposite sign.
    return (below, above) if contrast.audited.rule.direction > 0 else (-above, -below)


def breaking_loss(contrast: Contrast, margins: dict[str, float]) -> float:
    """Return the loss of utility above which a model counts as broken; inf where the number does not measure utility or
    no such loss is set.

    Parameters
    ----------
    margins
        Name of a margin, or ``broken_`` and that name → size. The loss stands under the name with ``broken_``; on a
        scale of logarithms it is the factor by which the number grows.
    """
    rule = contrast.audited.rule
    size = margins.get(f"broken_{rule.margin}")
    if rule.deciding or size is None:  # deciding metrics do not measure utility
        return float("inf")
    return float(np.log(size)) if rule.scale == "log" else size


def _nearby_end(effect: Effect, number: int) -> str:
    """Return "floor" or "ceiling" if the mean over models of one number lies within two standard errors of the smallest
    or of the largest possible value; else "".

    Parameters
    ----------
    effect
        Numbers of one metric.
    number
        The index of the number.
    """
    value = effect.value[number]  # [models]
    error = np.sqrt((effect.influence[number].mean(axis=0) ** 2).sum())  # over samples
    if len(value) > 1:  # and over models
        error = np.hypot(error, value.std(ddof=1) / np.sqrt(len(value)))
    distances = {"floor": value.mean() - effect.rule.lowest, "ceiling": effect.rule.highest - value.mean()}
    return next((end for end, distance in distances.items() if distance <= 2 * error), "")


def _unbiased_factor(effect: Effect) -> float:
    """Return the factor by which influences of samples are multiplied so that the sum of their squares is an unbiased
    variance; 1 for fewer than two samples.

    The divisor of that sum, which is (n + 2)² in `stats.mean_influence`, becomes n·(n − 1). Here n counts the forgotten
    samples of a model, or its held-out ones: half of the samples with an influence, in the model with fewest of them.
    """
    queried = (effect.influence != 0).any(axis=0)  # [models, samples]: forgotten and held-out ones, equally many
    n = queried.sum(axis=1).min() / 2
    return float((n + 2) / np.sqrt(n * (n - 1))) if n > 1 else 1.0


def read(
    contrast: Contrast,
    metric: str,
    *,
    margins: dict[str, float],
    rng: np.random.Generator,
    draws: int,
    level: float = LEVEL,
    utility_count: int = 2,
) -> Read:
    """Return a method's distance by one metric; of several attacks the strongest, with the largest absolute distance,
    and intervals that hold for all.

    A metric of utility shows a false loss with probability (1 − ``level``)/2, as only one end of its interval counts.
    With more than two metrics of utility, the level of each is raised so that all together err with probability 1 −
    ``level`` at most (Bonferroni).

    Parameters
    ----------
    contrast
        The method's numbers, and what they are compared with.
    margins
        Name of a margin, or ``broken_`` and that name → size.
    draws
        How often ``rng`` draws the joint deviations.
    level
        The confidence level.
    utility_count
        The number of metrics of utility, by each of which a model may be broken.
    """
    numbers = distances_of(contrast)
    chance = with_errors_by_chance(contrast, numbers)
    strongest = int(np.abs(numbers.value).argmax())
    errors = None if chance is numbers else chance  # None: the same errors, which are drawn once
    together = simultaneous.together(distances=numbers, rng=rng, draws=draws, chance=errors, level=level)
    # An exact test, if there is one, is of the value that theory predicts. Its p-values replace the others.
    p = together.p if contrast.audited.p is None or contrast.reference is not None else contrast.audited.p
    together = replace(together, p=np.maximum(p, np.finfo(np.float64).tiny))  # above 0, because they are divisors
    outlying = True
    if not contrast.audited.rule.deciding:  # a metric of utility
        level = 1 - (1 - level) * min(1.0, 2 / utility_count)
        together = replace(together, null_half=chance.half_widths(level=level, units=False))
        outlying = _outlying(contrast, level)
    limit = breaking_loss(contrast, margins)
    return Read(
        contrast, metric, numbers, chance, together, margin(contrast, margins), strongest, limit, outlying=outlying
    )


def _outlying(contrast: Contrast, level: float) -> bool:
    """Return whether audited models have less utility than retrained ones, by Student's t at ``level`` on an unbounded
    scale, their ``latent`` quality.

    Accuracy alone does not show the loss. Three models that are right on all samples do not show how such models vary,
    so a fourth model like them would be called broken in up to 13 % of audits. Student's t holds on a scale on which
    models may be normal. Return True also where the test is not needed or cannot be made. It is not needed if every
    audited model has a retrained partner (`Contrast.paired`), because differences of models of one kind are symmetrical
    on any scale. It cannot be made if the quality or the variation of models is unknown.
    """
    audited, reference = contrast.audited, contrast.reference
    if reference is None or contrast.paired or audited.latent is None or reference.latent is None:
        return True
    # The quality of each model replaces its utility. Without columns of samples, only models contribute to the error.
    audited, reference = (
        replace(effect, value=quality[None], influence=effect.influence[..., :0], imagined=effect.imagined[..., :0])
        for effect, quality in ((audited, audited.latent), (reference, reference.latent))
    )
    # np.eye(1): there is one number, and its weight is 1.
    _shown, if_retrained = _differences([(Contrast(audited, reference, contrast.source), np.eye(1))])
    # If both are models of one kind, they do not differ between units, so the variance between units is left out.
    lower_limit = if_retrained.value - if_retrained.half_widths(level=level, units=False)
    return bool(lower_limit[0] > 0) or not if_retrained.models.dof


def beside_none(method: Read, none: Read) -> Distances | None:
    """Return how far a method and doing nothing (``none``) are from retraining by one metric, with their joint error;
    None where the models of the two do not correspond.

    The distances are absolute. Of several attacks, the one with the largest absolute distance counts. The errors are
    the errors of a mean over attacks with the weights `Read.weights`, so that the interval is continuous in the scores.
    """
    both = joint([(method.contrast, method.weights), (none.contrast, none.weights)])
    return None if both is None else replace(both, value=np.abs([method.largest, none.largest]))


def closer(both: Distances, *, factor: float = 1.0, level: float = LEVEL) -> Estimate:
    """Return how much closer to retraining a method is than doing nothing: the distance of doing nothing minus that of
    the method, with the interval of a paired difference.

    Parameters
    ----------
    both
        The joint distances of the method and of doing nothing, in this order (`beside_none`).
    factor
        How many times wider the upper half of an interval of the method's distance is made, because the largest of many
        distances is large by chance. Of the interval here, the part 1/√2 is due to that distance, as `share_closed`
        counts where both distances are equal. So this interval excludes 0 where that of the share excludes it.
    """
    # One combination of the two distances, so one estimate: minus that of the method, plus that of doing nothing.
    estimate = both.combined(np.array([[-1.0, 1.0]])).estimates(level=level)[0]
    return replace(estimate, high=estimate.value + (1 + (factor - 1) / np.sqrt(2)) * (estimate.high - estimate.value))


def traces_removed(both: Distances, method: Read, none: Read) -> Estimate:
    """Return the share of the distance between doing nothing and retraining that a method removed, at most 1; NaN with
    the reason if doing nothing is not distinguishable.

    A note says if the method lies on the far side of retraining, which means that it went too far, where the metric can
    show this (``two_sided``) and the share is known.

    Parameters
    ----------
    both
        The joint distances of the method and of doing nothing.
    method, none
        The distances of the method and of doing nothing by one metric.
    """
    significant = none.differs and none.largest > 0
    share = share_closed(distances=both, significant=significant, factor=method.mean_widening)
    if not method.differs and not np.isnan(share.high):
        share = replace(share, high=1.0)  # a method that may be retraining may have removed all
    far = method.contrast.audited.rule.two_sided and method.largest < 0 and share.value < 1  # the last is False for NaN
    return replace(share, note="; ".join(filter(None, (share.note, FAR_SIDE if far else ""))))
