"""What a study can tell, what a larger one could, and what would decide on a method that is undecided."""

from dataclasses import replace

from unlearning.comparisons.distances import Read
from unlearning.stats import decide, resolution
from unlearning.stats.resolution import MODELS, PAIRS, SAMPLES, Components, Design

#: How much larger the studies are of which the resolution is foretold.
TIMES = {PAIRS: (2, 4, 8, 16), MODELS: (2, 4), SAMPLES: (2, 4)}
TODAY, NEEDED = "today", "decides_"


def plans(method: str, metric: str, one: Read) -> list[dict]:
    """Half-width and least distance that is told, today and with more pairs, models or samples."""
    parts = components(one)
    designs = [(TODAY, 1.0, parts.design)]
    for what, factors in TIMES.items():
        if _count(parts.design, what):
            designs += [(what, float(times), resolution.planned(parts.design, what=what, times=times))
                        for times in factors]  # fmt: skip
    return [_row(method, metric, one, parts, what, times, design) for what, times, design in designs]


def needed(method: str, metric: str, one: Read) -> list[dict]:
    """The least pairs, and the least models, with which an undecided distance would be decided with power .8; no row
    where it is within its margin, and none for what would not do."""
    if decide.within(inner=one.shown.inner, margin=one.shown.margin):
        return []
    parts, rows = components(one), []
    distance = one.shown.estimate.value
    for what in (PAIRS, MODELS):
        found = resolution.least(of=_widened(parts, one.factor), what=what, distance=distance, margin=one.shown.margin)
        if found:
            count, outcome = found
            times = count / _count(parts.design, what)
            design = replace(parts.design, **{"units" if what == PAIRS else "models": count})
            rows.append({**_row(method, metric, one, parts, NEEDED + what, times, design), "outcome": outcome})
    return rows


def instruction(needs: list[dict], *, unknown: list[str]) -> str:
    """What to do about an undecided method, in a sentence."""
    if unknown:
        return f"nothing to hold against: {', '.join(unknown)}"
    said = []
    for what, noun in ((PAIRS, ""), (MODELS, "models per split")):
        rows = [row for row in needs if row["what"] == NEEDED + what]
        told = [row for row in rows if row["outcome"] == decide.TOLD]
        if rows:
            # One metric that tells is enough; as retrained has to be shown by all of them.
            row = min(told, key=_times) if told else max(rows, key=_times)
            count = row["units"] if what == PAIRS else row["models"]
            said.append(f"{count:g} {noun or row['unit']}")
    return f"to decide: about {' or '.join(said)}" if said else "neither more pairs nor more models would decide"


def components(one: Read) -> Components:
    """Variance components of the distance that is shown."""
    return resolution.components(distances=one.every)[one.which]


def _widened(parts: Components, factor: float) -> Components:
    """The components of a band that holds for several attacks: errors that are ``factor`` times as large."""
    own = {name: getattr(parts, name) * factor**2 for name in ("pair", "pair_noise", "model", "model_noise", "sample")}
    return replace(parts, **own)


def _row(
    method: str, metric: str, one: Read, parts: Components, what: str, times: float, design: Design
) -> dict:  # fmt: skip
    wide = _widened(parts, one.factor)
    return {
        "metric": metric, "method": method, "attack": one.attack, "unit": one.side.own.standard.units, "what": what,
        "times": times, "units": design.units, "models": design.models, "samples": design.samples,
        "half_width": resolution.half_width(of=wide, design=design),
        "least_distance": resolution.least_distance(of=wide, design=design),
        "margin": max(map(abs, one.shown.margin)), "outcome": "", "pair": parts.pair, "pair_noise": parts.pair_noise,
        "model": parts.model, "model_noise": parts.model_noise, "sample": parts.sample,
    }  # fmt: skip


def _count(design: Design, what: str) -> float:
    return {PAIRS: design.units, MODELS: design.models, SAMPLES: design.samples}[what]


def _times(row: dict) -> float:
    return row["times"]
