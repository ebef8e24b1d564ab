"""Power of a study: what it can distinguish, what a larger one could, and what would decide on an inconclusive
method."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from unlearning_audit.comparisons import retrained
from unlearning_audit.comparisons.distances import CONTROL, RETRAIN, Read
from unlearning_audit.evaluation.effects import OF_ITSELF, OF_SAMPLES
from unlearning_audit.evaluation.rows import Failure, Row
from unlearning_audit.plugins import registry
from unlearning_audit.stats import decide, resolution
from unlearning_audit.stats.paired import Design
from unlearning_audit.stats.resolution import MODELS, PAIRS, SAMPLES, Components

#: How many times larger the studies are whose resolution is predicted.
TIMES = {PAIRS: (2, 4, 8, 16), MODELS: (2, 4), SAMPLES: (2, 4)}
#: Entries of the column "what": the row of the study as it is, and the beginning for one that would decide.
TODAY, DECIDES = "today", "decides_"
#: The part of a design that grows where audited models have no partners among retrained ones.
RETRAINED = "retrained"
#: The constant in which a metric names its two quantities that separate sources of randomness, and the unit of these.
SEEDS, TRAINING_SEEDS = "SEEDS", "training seeds"
STEPS = 60  # bisections for the size of a pool
#: Phrases where no larger study is required.
THIS_SIZE, NEITHER = "a study of this size", "neither more pairs nor more models would decide"

#: A function (part, times) → the design of a study with ``times`` as many pairs, models or samples, by ``part``.
Plans = Callable[[str, float], Design]


def plans(method: str, read: Read) -> list[dict[str, Any]]:
    """Return rows of half-width and least detectable distance: for the study as it is, and for larger studies.

    Larger studies have more samples, or more pairs or models where these narrow the interval. A design without samples
    has no larger studies of samples. For models without partners only the row of the present study is given;
    `requirements` gives what more retrained models bring. ``method`` is the name that goes into the rows; ``read`` is
    its distance by one metric.
    """
    design, design_with = read.numbers.design, designs_of(read)
    today = _row_of(method, read, TODAY, 1.0, design)
    if not read.side.paired:
        return [{**today, "half_width": float(read.together.half[read.place]), "least_distance": least_distance(read)}]
    rows = [today]
    for part, factors in TIMES.items():
        if _count(design, part) and (part == SAMPLES or read.side.audited.rule.narrows):
            rows += [_row_of(method, read, part, float(times), design_with(part, times)) for times in factors]
    return rows


def seeds(numbers: Mapping[str, Iterable[Row | Failure]]) -> list[dict[str, Any]]:
    """Return rows of what more training seeds, and more unlearning seeds of each, would bring: half-widths of the
    difference in mean confidence from retraining, for every method with separate spreads over both.

    ``numbers``: method → metric rows. A metric takes part if its file names its two spreads in ``SEEDS``: rows of
    standard deviations over originals, and over models of one original. Let σ_retrained be the latter of these two
    spreads by retrained models, each of which is trained anew. Then se² = σ²_training/p + (σ²_unlearning +
    σ²_retrained)/(p·m) for p originals, each with m models, and as many retrained ones. Retraining and its control, and
    methods without both spreads, are skipped; so are all methods if the spread of retrained models is not known.
    """
    plans = []
    spreads = {
        method: {row.metric: row for row in rows if isinstance(row, Row) and np.isfinite(row.value)}
        for method, rows in numbers.items()
    }
    for metric in registry.defining("metrics", SEEDS):
        training, unlearning = registry.declared("metrics", metric, constant_name=SEEDS)
        of_retrained = spreads.get(RETRAIN, {}).get(unlearning)
        for method, spread in spreads.items():
            if method in (RETRAIN, CONTROL) or of_retrained is None or not spread.keys() >= {training, unlearning}:
                continue
            # ``n`` of the spread over training seeds counts originals, that of the other one counts models.
            originals, of_models = spread[training].n, spread[unlearning].value ** 2 + of_retrained.value**2
            today = Design(originals, 1.0, spread[unlearning].n / originals, 0)
            parts = Components(spread[training].value ** 2, 0.0, of_models, 0.0, 0.0, today, 1.0)
            place = {"metric": metric, "method": method, "attack": "", "unit": TRAINING_SEEDS}
            plans.append(_row(place, parts, TODAY, 1.0, today))
            for part in (PAIRS, MODELS):
                designs = [(float(k), resolution.planned(today, dimension=part, times=k)) for k in TIMES[part]]
                plans += [_row(place, parts, part, times, design) for times, design in designs]
    return plans


def requirements(method: str, read: Read) -> list[dict[str, Any]]:
    """Return rows of the fewest pairs, and the fewest models, with which an inconclusive distance would be decided with
    power .8.

    The estimate is not taken for the true distance. Instead a row says what shows equivalence if the method is
    retraining, or what detects the distance if it is the lower or the upper limit of its interval (``assumed``). For
    models without partners, rows give the fewest retrained models. An outcome that no size would show has no row; a
    metric whose interval does not narrow has none at all. ``method`` is the name that goes into the rows;
    ``read`` is its distance by one metric.
    """
    if not read.side.audited.rule.narrows:
        return []
    design, rows, design_with = read.numbers.design, [], designs_of(read)
    if not read.side.paired:
        reference, today = retrained.Reference.of(read), read.side.retrained
        return [
            {**_row_of(method, read, DECIDES + RETRAINED, count / today, design), "models": count,
             "half_width": np.nan, "least_distance": reference.least_distance(count), "outcome": outcome,
             "assumed": distance}
            for count, outcome, distance in retrained.deciding_counts(read)
        ]  # fmt: skip
    decision = partial(
        resolution.decides, of=read.components.widened(read.factor), margin=read.distance.margin,
        chance=read.components_by_chance,
    )  # fmt: skip
    limits = {read.distance.estimate.low, read.distance.estimate.high}
    truths = [(0.0, decide.EQUIVALENT), *((limit, decide.DISTINGUISHABLE) for limit in sorted(limits))]
    for part in (PAIRS, MODELS):
        for truth, outcome in truths:
            # The defaults hold the values that the loops have now.
            def decided(times: float, part: str = part, truth: float = truth, outcome: str = outcome) -> bool:
                """Return whether a study with ``times`` as many of ``part`` would have the ``outcome`` if the distance
                is ``truth``."""
                return decision(design=design_with(part, times), distance=truth) == outcome

            count = _least(decided, max(round(_count(design, part)), 1))
            if count:
                times = count / _count(design, part)
                row = _row_of(method, read, DECIDES + part, times, design_with(part, times))
                rows.append({**row, "outcome": outcome, "assumed": truth})
    return rows


def least_distance(read: Read) -> float:
    """Return the least true distance from retraining that this study would detect with power .8, on the metric's scale.

    ``read``: a method's distance by the metric; of several attacks, the one that stands for all counts. inf if no two
    models show how such models vary.
    """
    if not read.side.paired:
        return np.inf if read.unrepeated else retrained.Reference.of(read).least_distance(retrained.present(read))
    design, chance = read.numbers.design, read.components_by_chance
    return resolution.least_distance(of=read.components, design=design, chance=chance)


def foretold(rows: list[dict[str, Any]], *, pairs: float, models: float) -> dict[str, Any]:
    """Predict the row that `plans` would return for a study with ``pairs`` times as many units and ``models`` times as
    many models.

    ``rows``: the rows of `plans` for one method by one metric, each column → value. The row of the present study is
    returned unchanged if ``rows`` has none with more pairs, because the interval does not narrow then.
    """
    today = next(row for row in rows if row["what"] == TODAY)
    if not any(row["what"] == PAIRS for row in rows):
        return today  # it does not narrow
    design = Design(  # a pair has two splits
        round(today["units"]), 2.0 if today["unit"] == "pairs" else 1.0, today["models"], round(today["samples"])
    )
    numbers = {name: today[name] for name in resolution.COMPONENTS}
    parts = Components(**numbers, design=design, events=float(max(design.samples, 1)))
    # More pairs bring as many distinct samples as the rows say; fewer bring as many fewer.
    sizes = sorted((row["times"], row["samples"]) for row in rows if row["what"] in (TODAY, PAIRS))
    samples = np.interp(np.log(pairs), np.log([times for times, _ in sizes]), [count for _, count in sizes])
    units, per_split = max(round(design.units * pairs), 1), max(design.models * models, 1.0)
    planned = replace(design, units=units, models=per_split, samples=max(round(samples * min(pairs, 1.0)), 2))
    forecast = {**today, "units": planned.units, "models": planned.models, "samples": planned.samples}
    chance = replace(parts, of_samples=True) if today["chance"] == OF_SAMPLES else None
    for name, predicted in (
        ("half_width", partial(resolution.half_width, of=parts)),
        ("least_distance", partial(resolution.least_distance, of=parts, chance=chance)),
    ):
        # The number in the row of today holds for several attacks at once, so that it is scaled by what is predicted.
        of_today = predicted(design=design)
        forecast[name] = today[name] * predicted(design=planned) / of_today if of_today > 0 else today[name]
    return forecast


def _least(enough: Callable[[float], bool], today: int) -> int:
    """Return the least whole number, not below ``today``, for which ``enough(number / today)`` holds; 0 if it exceeds
    `resolution.MOST` times ``today``. Where ``enough`` holds for a number, it holds for all larger ones."""
    high = today
    while not enough(high / today):
        high *= 2
        if high > resolution.MOST * today:
            return 0
    # high // 2 was not enough and high is; bisect_left returns high if nothing between them is.
    return today if high == today else bisect_left(range(high), True, high // 2 + 1, key=lambda n: enough(n / today))


def designs_of(read: Read) -> Plans:
    """Return a function (part, times) → the design of a study with ``times`` as many pairs, models or samples as the
    one in which the distance ``read`` was measured.

    More pairs bring more distinct samples, until all samples of the pool are used. With a single unit the pool is not
    known, and the number of samples stays the same.
    """
    design = read.numbers.design
    effect = read.side.audited
    queried = (effect.influence != 0).any(axis=0)  # [models, samples]
    per_unit = float(np.mean([queried[effect.unit == unit].any(axis=0).sum() for unit in np.unique(effect.unit)]))
    pool = pool_size(units=design.units, per_unit=per_unit, distinct=design.samples)

    def planned(part: str, times: float) -> Design:
        """Return the design with ``times`` as many of ``part``."""
        larger = resolution.planned(design, dimension=part, times=times)
        if part != PAIRS or not design.samples or design.units < 2:
            return larger
        # The expected number of different samples, if each unit draws its own from the pool.
        samples = larger.units * per_unit if np.isinf(pool) else pool * (1 - (1 - per_unit / pool) ** larger.units)
        return replace(larger, samples=max(round(samples), design.samples))

    return planned


def pool_size(*, units: int, per_unit: float, distinct: int) -> float:
    """Return the size N of the pool from which samples are drawn, by distinct = N·(1 − (1 − per_unit/N)^units).

    Each of the ``units`` draws ``per_unit`` samples anew, and ``distinct`` different ones were drawn. inf where no
    sample was drawn twice.
    """
    if distinct >= units * per_unit * (1 - 1e-9):
        return np.inf
    low, high = float(distinct), 1e12
    for _ in range(STEPS):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if middle * (1 - (1 - per_unit / middle) ** units) < distinct else (low, middle)
    return float(np.sqrt(low * high))


def instruction(needs: list[dict[str, Any]], *, metrics: Collection[str], unknown: list[str]) -> str:
    """Return a sentence on which study size would decide on a method that is inconclusive by some ``metrics``.

    ``needs``: rows of `requirements`; ``unknown``: metrics that cannot be compared with anything, which the sentence
    names instead if there are any. If a study of the present size may decide, or no size would, the sentence says so.
    """
    if unknown:
        return f"nothing to compare with by {', '.join(unknown)}"
    if any(row["unit"] == "pairs" for row in needs):  # each block is a pair then, also to metrics that count blocks
        needs = [{**row, "unit": "pairs"} if row["unit"] == "blocks" else row for row in needs]
    showing = [row for row in needs if row["outcome"] == decide.EQUIVALENT]
    finding = [row for row in needs if row["outcome"] == decide.DISTINGUISHABLE]
    of_larger, of_today = [], []  # clauses on larger studies, and on one of this size, which count without the former
    if counts := _counts(showing, metrics, by_all=True):
        if any(row["times"] > 1 for row in showing):
            of_larger.append(f"if the method is like retraining, {counts} show it with power 0.8")
        else:
            of_today.append(f"if the method is like retraining, {THIS_SIZE} shows it with power 0.8")
    for word, end in (("upper", max), ("lower", min)):
        found_by = {row["metric"] for row in finding}
        # The limit of each metric's interval on this side, and the rows that assume it.
        ends = {m: end(row["assumed"] for row in finding if row["metric"] == m) for m in metrics if m in found_by}
        at_end = [row for row in finding if row["assumed"] == ends[row["metric"]]]
        if any(row["times"] <= 1 for row in at_end):
            of_today.append(f"if its distance is the {word} limit of the interval, {THIS_SIZE} finds it")
        elif counts := _counts(at_end, set(ends), by_all=False):
            of_larger.append(f"if its distance is the {word} limit of the interval, {counts} find it")
    return "; ".join(of_larger or of_today) or NEITHER


def _counts(rows: list[dict[str, Any]], metrics: Collection[str], *, by_all: bool) -> str:
    """Return a phrase such as "12 pairs or 40 models per split": the size that decides by all ``metrics``, or, if
    ``by_all`` is false, by the one that needs least; "" if there is none.

    ``rows``: rows of `requirements` with one outcome.
    """
    clauses = []
    for part in (PAIRS, MODELS, RETRAINED):
        of_part = [row for row in rows if row["what"] == DECIDES + part]
        if of_part and (not by_all or {row["metric"] for row in of_part} == set(metrics)):
            clauses.append(count((max if by_all else min)(of_part, key=itemgetter("times"))))
    return " or ".join(clauses)


def count(row: dict[str, Any]) -> str:
    """Return the size that a row of `requirements` demands as a phrase, such as "12 pairs"."""
    noun = {DECIDES + MODELS: "models per split", DECIDES + RETRAINED: "retrained models"}.get(row["what"], "")
    if noun:
        return f"{row['models']:g} {noun}"
    return f"{row['units']:g} {row['unit'] if row['units'] != 1 else row['unit'].removesuffix('s')}"


def _row_of(method: str, read: Read, part: str, times: float, design: Design) -> dict[str, Any]:
    """Return the row of one ``design`` for a method's distance, ``read``, that stands for all attacks. The design has
    ``times`` as much of ``part`` (pairs, models or samples) as the study."""
    rule = read.side.audited.rule
    place = {"metric": read.metric, "method": method, "attack": read.attack, "unit": rule.units}
    how: dict[str, Any] = {"factor": read.factor, "chance": read.components_by_chance, "of": rule.chance}
    return {**_row(place, read.components, part, times, design, **how), "margin": max(map(abs, read.margin))}


def _row(
    place: dict[str, str], parts: Components, part: str, times: float, design: Design, *,
    factor: float = 1.0, chance: Components | None = None, of: str = OF_ITSELF,
) -> dict[str, Any]:  # fmt: skip
    """Return the row of one ``design``: its size, half-width (``factor`` times that of a single number), least distance
    and variance components, ``parts``.

    ``place``: metric, method, attack and unit of the row; ``part`` and ``times`` are as in `_row_of`; ``chance``: the
    variance components if the method were retraining, and ``of`` what the number varies by then (`effects.CHANCES`).
    """
    return {
        **place, "what": part, "times": times, "units": design.units, "models": design.models,
        "samples": design.samples, "half_width": resolution.half_width(of=parts.widened(factor), design=design),
        "least_distance": resolution.least_distance(of=parts, design=design, chance=chance),
        "margin": np.nan, "outcome": "", "assumed": np.nan, **parts.variances, "chance": of,
    }  # fmt: skip


def _count(design: Design, part: str) -> float:
    """Return the number of pairs, models or samples (``part``) of a design."""
    return {PAIRS: design.units, MODELS: design.models, SAMPLES: design.samples}[part]
