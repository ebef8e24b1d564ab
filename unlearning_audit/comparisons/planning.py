"""Power of a study: what it can distinguish, what a larger one could, and what would decide on an inconclusive
method."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from scipy import special

from unlearning_audit import stats
from unlearning_audit.comparisons.distances import CONTROL, RETRAIN, Read
from unlearning_audit.evaluation.effects import OF_ITSELF, OF_SAMPLES
from unlearning_audit.evaluation.rows import Failure, Row
from unlearning_audit.plugins import registry
from unlearning_audit.stats import LEVEL, decide, resolution
from unlearning_audit.stats.paired import Design
from unlearning_audit.stats.resolution import MODELS, PAIRS, POWER, SAMPLES, Components
from unlearning_audit.stats.unpaired import KNOWN

#: How many times larger the studies are whose resolution is predicted.
TIMES = {PAIRS: (2, 4, 8, 16), MODELS: (2, 4), SAMPLES: (2, 4)}
#: Entries of the column "what": the row of the study as it is, and the beginning for one that would decide.
TODAY, DECIDES = "today", "decides_"
#: The part of a design that grows where audited models have no partners among retrained ones.
RETRAINED = "retrained"
#: The largest number of retrained models that is considered.
MOST_RETRAINED = 256
#: The constant in which a metric names its two quantities that separate sources of randomness, and the unit of these.
SEEDS, TRAINING_SEEDS = "SEEDS", "training seeds"
STEPS = 60  # bisections for the size of a pool
#: Phrases where no larger study is required.
THIS_SIZE, NEITHER = "a study of this size", "neither more pairs nor more models would decide"

#: A function (part, times) → the design of a study with ``times`` as many pairs, models or samples, by ``part``.
DesignOf = Callable[[str, float], Design]


@dataclass(frozen=True)
class Reference:
    """The variances of a distance between audited and retrained models without partners.

    Audited models are compared with the variation between retrained ones (`unlearning_audit.stats.unpaired`). With m
    audited and n retrained models the error of a distance is s·√(1/m + 1/n), or that over samples if this is larger. A
    distance is tested by Student's t with n − 1 degrees of freedom.

    Parameters
    ----------
    sampled
        The variance over samples.
    spread
        The variance of one model.
    audited
        The number of audited models.
    widening
        How many times wider intervals are than those of one number alone, because they hold for several attacks.
    known
        Whether the spread is given for a single retrained model. With more retrained models it is estimated.
    """

    sampled: float
    spread: float
    audited: int
    widening: float
    known: bool = False

    @classmethod
    def from_read(cls, read: Read) -> "Reference":
        """Return the variances of ``read``, the distance that stands for all attacks of a metric."""
        audited, retrained = len(read.contrast.audited.unit), read.contrast.retrained_count
        # The variance of a difference of two means, over models that are alike, gives that of one model. Row 0 of the
        # ``variances`` is the variance between models.
        spread = float(read.chance.models.variances[0][read.chosen]) / (1 / audited + 1 / retrained)
        return cls(float(read.numbers.sampled[read.chosen]), spread, audited, read.widening, bool(read.spread_note))

    def _dof(self, retrained: int) -> int:
        """Return the degrees of freedom of the variance between this number of ``retrained`` models; `KNOWN`,
        practically infinitely many, for a single model of known spread."""
        return KNOWN if self.known and retrained == 1 else retrained - 1

    def least_distance(self, retrained: int) -> float:
        """Return the least distance that is detected with `POWER` by this number of ``retrained`` models: at least two,
        or one of known spread."""
        return self._detectable(retrained, self._dof(retrained), tail=(1 - LEVEL) / 2, power=POWER)

    def room_needed(self, retrained: int) -> float:
        """Return how far inside its margin a distance must lie to be shown equivalent with `POWER` by this number of
        ``retrained`` models.

        Equivalence is shown by two one-sided tests, each of which gets half of the missing power.
        """
        # A single audited model is assumed to vary as retrained ones.
        dof = self._dof(retrained) if self.audited == 1 else min(self._dof(retrained), self.audited - 1)
        return self._detectable(retrained, dof, tail=1 - LEVEL, power=(1 + POWER) / 2)

    def _detectable(self, retrained: int, dof: int, *, tail: float, power: float) -> float:
        """Return how far from 0, or from a margin, the true distance must lie for its interval to exclude that point
        with probability ``power``.

        The larger of two results is returned. The first is by the variation of models, whose estimate with ``dof``
        degrees of freedom varies too (noncentral t); the second is by the variation of samples.

        Parameters
        ----------
        retrained
            The number of retrained models.
        tail
            The probability outside one end of the interval.
        """
        quantile = self.widening * float(stats.t_quantile(p=1 - tail, dof=dof))
        # Both in standard errors; the first is the noncentrality with which t exceeds the quantile with ``power``.
        by_models = float(special.nctdtrinc(dof, 1 - power, quantile))
        by_samples = float(self.widening * stats.normal_quantile(1 - tail) + stats.normal_quantile(power))
        error_of_models = np.sqrt(self.spread * (1 / self.audited + 1 / retrained))
        return max(by_models * float(error_of_models), by_samples * float(np.sqrt(self.sampled)))


def retrained_today(read: Read) -> int:
    """Return how many retrained models the study has, but at least 2, or at least 1 if the spread of a single one is
    given.

    A single retrained model of unknown spread does not show how models vary. In this case the audited models show it.
    """
    return max(read.contrast.retrained_count, 1 if read.spread_note else 2)


def resolution_rows(method: str, read: Read) -> list[dict[str, Any]]:
    """Return rows of half-width and least detectable distance: for the study as it is, and for larger studies.

    Larger studies have more samples, or more pairs or models where these narrow the interval, each by the factors in
    `TIMES`. A design without samples has no larger studies of samples. For models without partners only the row of the
    present study is given, with the half-width of its interval; `requirements` gives what more retrained models bring.

    Parameters
    ----------
    method
        The name that goes into the rows.
    read
        The method's distance by one metric.
    """
    design, design_with = read.numbers.design, designs_of(read)
    today = _row_of_distance(method, read, TODAY, 1.0, design)
    if not read.contrast.paired:
        half_width = float(read.together.joint_half[read.chosen])
        return [{**today, "half_width": half_width, "least_distance": least_distance(read)}]
    rows = [today]
    for part, factors in TIMES.items():
        if _size(design, part) and (part == SAMPLES or read.contrast.audited.rule.narrows):
            rows += [_row_of_distance(method, read, part, float(times), design_with(part, times)) for times in factors]
    return rows


def seed_rows(numbers: Mapping[str, Iterable[Row | Failure]]) -> list[dict[str, Any]]:
    """Return rows of what more training seeds, and more unlearning seeds of each, would bring: half-widths of the
    difference in mean confidence from retraining, for every method with one spread over training seeds and one over
    unlearning seeds.

    A metric takes part if its file names its two spreads in ``SEEDS``: rows of standard deviations over originals, and
    over models of one original. Let σ_retrained be the spread over models of one original by retrained models, each of
    which is trained anew. Then se² = σ²_training/p + (σ²_unlearning + σ²_retrained)/(p·m) for p originals, each with m
    models, and as many retrained ones. Retraining and its control, and methods without both spreads, are skipped; so
    are all methods if the spread of retrained models is not known.

    Parameters
    ----------
    numbers
        Method → metric rows.
    """
    plans = []
    rows_of_method = {
        method: {row.metric: row for row in rows if isinstance(row, Row) and np.isfinite(row.value)}
        for method, rows in numbers.items()
    }
    for metric in registry.defining("metrics", SEEDS):
        training, unlearning = registry.declared("metrics", metric, constant_name=SEEDS)  # names of the two spreads
        of_retrained = rows_of_method.get(RETRAIN, {}).get(unlearning)
        for method, spreads in rows_of_method.items():
            if method in (RETRAIN, CONTROL) or of_retrained is None or not spreads.keys() >= {training, unlearning}:
                continue
            # ``n`` of the spread over training seeds counts originals, ``n`` of the one over unlearning seeds models.
            originals, models = spreads[training].n, spreads[unlearning].n
            today = Design(units=originals, splits=1.0, models=models / originals, samples=0)
            pair, model = spreads[training].value ** 2, spreads[unlearning].value ** 2 + of_retrained.value**2
            # There is no noise of samples: the variances of pairs and of models are the only components.
            components = Components(pair, 0.0, model, 0.0, sample=0.0, design=today, dof_samples=1.0)
            place = {"metric": metric, "method": method, "attack": "", "unit": TRAINING_SEEDS}
            plans.append(_row(place, components, TODAY, 1.0, today))
            for part in (PAIRS, MODELS):
                designs = {times: resolution.planned(today, dimension=part, times=times) for times in TIMES[part]}
                plans += [_row(place, components, part, float(times), design) for times, design in designs.items()]
    return plans


def requirements(method: str, read: Read) -> list[dict[str, Any]]:
    """Return rows of the fewest pairs, and the fewest models, with which an inconclusive distance would be decided with
    power .8.

    The true distance is not known, so there are rows for three assumed distances: for 0, with which equivalence is to
    be shown, and for the lower and the upper limit of the interval, with which the distance is to be detected. For
    models without partners, rows give the fewest retrained models. An outcome that not even `resolution.MOST` times as
    many would show, or `MOST_RETRAINED` retrained models, has no row; a metric whose interval does not narrow has none.

    Parameters
    ----------
    method
        The name that goes into the rows.
    read
        The method's distance by one metric.
    """
    if not read.contrast.audited.rule.narrows:
        return []
    if read.contrast.paired:
        return [row for part in (PAIRS, MODELS) for row in _requirements_of_part(method, read, part)]
    reference, design, today = Reference.from_read(read), read.numbers.design, read.contrast.retrained_count
    needed = {decide.EQUIVALENT: reference.room_needed, decide.DISTINGUISHABLE: reference.least_distance}
    rows = []
    for count, outcome, assumed in deciding_counts(read, needed, retrained_today(read), MOST_RETRAINED):
        row = _row_of_distance(method, read, DECIDES + RETRAINED, count / today, design)
        sizes = {"models": count, "half_width": np.nan, "least_distance": reference.least_distance(count)}
        rows.append({**row, **sizes, "outcome": outcome, "assumed": assumed})
    return rows


def _requirements_of_part(method: str, read: Read, part: str) -> list[dict[str, Any]]:
    """Return the rows of `requirements` for models with partners, if the number of ``part``, pairs or models, grows."""
    size, design_with, chance = _size(read.numbers.design, part), designs_of(read), read.components_by_chance
    today, components = max(round(size), 1), read.components.widened(read.widening)

    def room_needed(count: int) -> float:
        """Return how far inside its margin a distance must lie to be shown equivalent by ``count`` of ``part``, of
        which the study has ``today``. ``components`` are the variances, ``design_with`` gives the larger design."""
        return resolution.room_needed(components=components, design=design_with(part, count / today))

    def least_distance(count: int) -> float:
        """Return the least distance that is detected by ``count`` of ``part``, of which the study has ``today``.
        ``components`` and ``chance`` are the variances of the distance as it is and of a distance of 0."""
        return resolution.least_distance(components=components, design=design_with(part, count / today), chance=chance)

    needed, rows = {decide.EQUIVALENT: room_needed, decide.DISTINGUISHABLE: least_distance}, []
    for count, outcome, assumed in deciding_counts(read, needed, today, resolution.MOST * today):
        row = _row_of_distance(method, read, DECIDES + part, count / size, design_with(part, count / size))
        rows.append({**row, "outcome": outcome, "assumed": assumed})
    return rows


def deciding_counts(
    read: Read, needed: Mapping[str, Callable[[int], float]], today: int, most: int
) -> list[tuple[int, str, float]]:
    """Return (count, outcome, assumed distance) for the fewest pairs or models that decide an inconclusive distance,
    ``read``, with power .8.

    There are up to three entries. The first count shows equivalence if the method is retraining. The second and the
    third count detect the distance if it is at the lower or at the upper limit of its interval. An outcome that no
    count up to ``most`` gives is left out.

    Parameters
    ----------
    needed
        Outcome → a function of the count. It tells how far a distance must lie from the end that its interval must
        exclude, the margin for "equivalent" and 0 for "distinguishable". From ``today`` + 1 on, it does not grow.
    today
        The smallest count.
    """
    estimate, (far, near), plans = read.distance.estimate, read.margin, []  # far < 0 < near
    # Each question: how far the assumed distance lies from the end to be excluded, the outcome, the assumed distance.
    questions = [(min(-far, near), decide.EQUIVALENT, 0.0)]
    questions += [(abs(limit), decide.DISTINGUISHABLE, limit) for limit in sorted({estimate.low, estimate.high})]
    for available, outcome, assumed in questions:
        low = high = today
        while needed[outcome](high) > available and high < most:
            low, high = high + 1, min(2 * high, most)
        if needed[outcome](high) <= available:
            # The counts below low are not enough, and high is. The first that is enough, whose key is True, is sought
            # between them.
            count = bisect_left(range(high), True, lo=low, key=lambda number: needed[outcome](number) <= available)
            plans.append((count, outcome, assumed))
    return plans


def least_distance(read: Read) -> float:
    """Return the least true distance from retraining that this study would detect with power .8, on the metric's scale.

    For models without partners, the result is inf if it is unknown how models vary.

    Parameters
    ----------
    read
        A method's distance by the metric; of several attacks, the one that stands for all counts.
    """
    if not read.contrast.paired:
        reference, models = Reference.from_read(read), retrained_today(read)
        return np.inf if read.variation_unknown else reference.least_distance(models)
    design, chance = read.numbers.design, read.components_by_chance
    return resolution.least_distance(components=read.components, design=design, chance=chance)


def forecast(rows: list[dict[str, Any]], *, pairs: float, models: float) -> dict[str, Any]:
    """Predict what `resolution_rows` would return as its first row, that of the present study, if the study had another
    size.

    The row of the present study is returned unchanged if ``rows`` has none with more pairs, because the interval does
    not narrow then.

    Parameters
    ----------
    rows
        The rows of `resolution_rows` for one method by one metric, each column → value.
    pairs, models
        How many times as many units, and models per split, the other study has.
    """
    today = next(row for row in rows if row["what"] == TODAY)
    if not any(row["what"] == PAIRS for row in rows):
        return today
    splits = 2.0 if today["unit"] == "pairs" else 1.0
    design = Design(round(today["units"]), splits, today["models"], round(today["samples"]))
    variances = {name: today[name] for name in resolution.COMPONENTS}
    components = Components(**variances, design=design, dof_samples=float(max(design.samples, 1)))
    # More pairs bring as many distinct samples as the rows say, interpolated in the logarithm of the number of pairs.
    # Fewer pairs bring samples in proportion.
    sizes = sorted((row["times"], row["samples"]) for row in rows if row["what"] in (TODAY, PAIRS))
    samples = np.interp(np.log(pairs), np.log([times for times, _ in sizes]), [count for _, count in sizes])
    units, per_split = max(round(design.units * pairs), 1), max(design.models * models, 1.0)
    planned = replace(design, units=units, models=per_split, samples=max(round(samples * min(pairs, 1.0)), 2))
    row = {**today, "units": planned.units, "models": planned.models, "samples": planned.samples}
    chance = replace(components, of_samples=True) if today["chance"] == OF_SAMPLES else None
    for name, prediction in (
        ("half_width", partial(resolution.half_width, components=components)),
        ("least_distance", partial(resolution.least_distance, components=components, chance=chance)),
    ):
        # Today's number holds for several attacks at once and the prediction for one, so only their ratio is used.
        of_today = prediction(design=design)
        row[name] = today[name] * prediction(design=planned) / of_today if of_today > 0 else today[name]
    return row


def designs_of(read: Read) -> DesignOf:
    """Return a function (part, times) → the design of a study with ``times`` as many pairs, models or samples as the
    one in which the distance ``read`` was measured.

    More pairs bring more distinct samples, until all samples of the pool are used, or without limit if no sample was
    drawn twice. With a single unit the pool is not known, and the number of samples stays the same.
    """
    design, effect = read.numbers.design, read.contrast.audited
    queried = (effect.influence != 0).any(axis=0)  # [models, samples]
    counts = [queried[effect.unit == unit].any(axis=0).sum() for unit in np.unique(effect.unit)]
    per_unit = float(np.mean(counts))  # samples that a unit draws
    pool = pool_size(units=design.units, per_unit=per_unit, distinct=design.samples)

    def planned(part: str, times: float) -> Design:
        """Return the design with ``times`` as many of ``part`` as ``design``, the study's, has. A unit draws
        ``per_unit`` samples from a pool of ``pool`` samples."""
        larger = resolution.planned(design, dimension=part, times=times)
        if part != PAIRS or not design.samples or design.units < 2:
            return larger
        # The expected number of different samples, if each unit draws its own from the pool.
        samples = larger.units * per_unit if np.isinf(pool) else pool * (1 - (1 - per_unit / pool) ** larger.units)
        return replace(larger, samples=max(round(samples), design.samples))

    return planned


def pool_size(*, units: int, per_unit: float, distinct: int) -> float:
    """Return the size N of the pool from which samples are drawn; inf where no sample was drawn twice.

    Each of the ``units`` draws ``per_unit`` samples anew, and ``distinct`` different ones were drawn. N is the solution
    of distinct = N·(1 − (1 − per_unit/N)^units), whose right side is the expected number of different samples.
    """
    if distinct >= units * per_unit * (1 - 1e-9):  # no sample was drawn twice, in spite of rounding
        return np.inf
    low, high = float(distinct), 1e12
    for _ in range(STEPS):  # bisection of the logarithm of N
        middle = np.sqrt(low * high)
        expected = middle * (1 - (1 - per_unit / middle) ** units)
        low, high = (middle, high) if expected < distinct else (low, middle)
    return float(np.sqrt(low * high))


def instruction(needs: list[dict[str, Any]], *, metrics: Collection[str], unknown: list[str]) -> str:
    """Return a sentence on which study size would decide on a method that is inconclusive by some ``metrics``.

    The sentence has a clause for each assumption on the true distance: that the method is like retraining, or that the
    distance is the upper or the lower limit of its interval. If larger studies decide under some assumptions, only
    these are named; else those under which a study of the present size may decide; else the sentence is `NEITHER`,
    that no larger study decides.

    Parameters
    ----------
    needs
        Rows of `requirements`.
    unknown
        Metrics that cannot be shown to be within their margin, each with the reason: "auc (there is no retrain to
        compare with)". If this is not empty, the sentence names these metrics, and no study size.
    """
    if unknown:
        return f"nothing to compare with by {', '.join(unknown)}"
    if any(row["unit"] == "pairs" for row in needs):  # each block is a pair then, also to metrics that count blocks
        needs = [{**row, "unit": "pairs"} if row["unit"] == "blocks" else row for row in needs]
    showing = [row for row in needs if row["outcome"] == decide.EQUIVALENT]
    finding = [row for row in needs if row["outcome"] == decide.DISTINGUISHABLE]
    of_larger, of_today = [], []  # clauses on larger studies, and on one of this size
    if sizes := _sizes_phrase(showing, metrics, by_all=True):
        if any(row["times"] > 1 for row in showing):
            of_larger.append(f"if the method is like retraining, {sizes} show it with power 0.8")
        else:
            of_today.append(f"if the method is like retraining, {THIS_SIZE} shows it with power 0.8")
    found_by = {row["metric"] for row in finding}
    for word, choose in (("upper", max), ("lower", min)):
        # The limit of each metric's interval on this side, and the rows that assume it.
        limits = {m: choose(row["assumed"] for row in finding if row["metric"] == m) for m in found_by}
        at_limit = [row for row in finding if row["assumed"] == limits[row["metric"]]]
        if any(row["times"] <= 1 for row in at_limit):
            of_today.append(f"if its distance is the {word} limit of the interval, {THIS_SIZE} finds it")
        elif sizes := _sizes_phrase(at_limit, found_by, by_all=False):
            of_larger.append(f"if its distance is the {word} limit of the interval, {sizes} find it")
    return "; ".join(of_larger or of_today) or NEITHER


def _sizes_phrase(rows: list[dict[str, Any]], metrics: Collection[str], *, by_all: bool) -> str:
    """Return a phrase such as "12 pairs or 40 models per split": the sizes that decide by all ``metrics``, or, if
    ``by_all`` is false, by the metric that needs least; "" if there are none.

    With ``by_all``, pairs, models or retrained models are left out unless each metric has such a row.

    Parameters
    ----------
    rows
        Rows of `requirements` with one outcome.
    """
    clauses, choose = [], max if by_all else min
    for part in (PAIRS, MODELS, RETRAINED):
        of_part = [row for row in rows if row["what"] == DECIDES + part]
        if of_part and (not by_all or {row["metric"] for row in of_part} == set(metrics)):
            clauses.append(size_phrase(choose(of_part, key=itemgetter("times"))))
    return " or ".join(clauses)


def size_phrase(row: dict[str, Any]) -> str:
    """Return the size that a row of `requirements` demands as a phrase, such as "12 pairs"."""
    noun = {DECIDES + MODELS: "models per split", DECIDES + RETRAINED: "retrained models"}.get(row["what"], "")
    if noun:
        return f"{row['models']:g} {noun}"
    unit = row["unit"].removesuffix("s") if row["units"] == 1 else row["unit"]
    return f"{row['units']:g} {unit}"


def _row_of_distance(method: str, read: Read, part: str, times: float, design: Design) -> dict[str, Any]:
    """Return the row of one ``design`` for a method's distance, ``read``, with the margin of its metric. The design has
    ``times`` as much of ``part`` (pairs, models or samples) as the study."""
    rule, chance = read.contrast.audited.rule, read.components_by_chance
    place = {"metric": read.metric, "method": method, "attack": read.attack, "unit": rule.units}
    row = _row(place, read.components, part, times, design, factor=read.widening, chance=chance, varies_by=rule.chance)
    return {**row, "margin": max(map(abs, read.margin))}


def _row(
    place: dict[str, str],
    components: Components,
    part: str,
    times: float,
    design: Design,
    *,
    factor: float = 1.0,
    chance: Components | None = None,
    varies_by: str = OF_ITSELF,
) -> dict[str, Any]:
    """Return the row of one ``design``: its size, the half-width of its interval, the least distance that it detects,
    and the variance ``components``.

    Parameters
    ----------
    place
        Metric, method, attack and unit of the row.
    part, times
        The design has ``times`` as much of ``part`` as the study.
    factor
        How many times wider the interval is because it holds for several attacks at once.
    chance
        The variance components if the method were retraining, widened already as a test of several attacks demands;
        None for a number without attacks: ``components``.
    varies_by
        By what the number varies if the method is retraining, for the column "chance": one of `effects.CHANCES`.
    """
    half_width = resolution.half_width(components=components.widened(factor), design=design)
    return {
        **place, "what": part, "times": times, "units": design.units, "models": design.models,
        "samples": design.samples, "half_width": half_width,
        # Not widened: beside ``chance``, they give the error of one distance.
        "least_distance": resolution.least_distance(components=components, design=design, chance=chance),
        **components.variances, "chance": varies_by,
    }  # fmt: skip


def _size(design: Design, part: str) -> float:
    """Return the number of pairs, models or samples (``part``) of a design."""
    return {PAIRS: design.units, MODELS: design.models, SAMPLES: design.samples}[part]
