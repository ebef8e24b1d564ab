"""Verdicts on all methods of one scenario, with error rates: distances, classes, ranks, and what would decide."""

from dataclasses import dataclass, replace

import numpy as np

from unlearning.artifacts.contributions import Contribution
from unlearning.comparisons import distances, planning
from unlearning.comparisons.distances import CONTROL, NONE, RETRAIN, Read
from unlearning.randomness.keyed import generator
from unlearning.stats import decide, empty, rank_sets

NOTHING = empty(n=0, note="")


@dataclass(frozen=True)
class Found:
    """The rows of the four tables, with the columns of `unlearning.artifacts.verdicts`."""

    verdicts: list[dict]
    distances: list[dict]
    ranks: list[dict]
    resolution: list[dict]


@dataclass
class _Judged:
    """All that is known of one method: its distances by metric, why others are missing, which of all metrics are
    worths that a method must keep, why it failed."""

    reads: dict[str, Read]
    missing: dict[str, str]
    worths: set[str]
    failed: str
    p_holm: dict[str, float]

    def of(self, deciding: bool) -> dict[str, Read]:
        """The distances that decide, or those of what a method must keep."""
        return {name: one for name, one in self.reads.items() if one.side.own.standard.deciding == deciding}


def compare(
    found: dict[str, dict[str, Contribution]],
    failed: dict[str, str],
    *,
    margins: dict[str, float],
    draws: int,
    seed: int,
) -> Found:
    """Compare all methods of one scenario.

    ``found``: method → metric → contribution; ``failed``: why there is nothing of a method, by method; ``margins`` by
    the names that standards give; ``draws`` behind every joint interval. p-values are adjusted by Holm over methods
    and deciding metrics, references included (`decide.family`).
    """
    judged = {
        method: _judged(method, found, failed.get(method, ""), margins=margins, draws=draws, seed=seed)
        for method in found
    }
    _adjust(judged)
    rows = [row for method in found for row in _distances(method, judged)]
    beside = {(row["method"], row["metric"]): row for row in rows}
    verdicts, needs = [], []
    for method, own in judged.items():
        row, more = _verdict(method, own, beside)
        verdicts.append(row)
        needs += more
    return Found(verdicts, rows, _ranks(judged, draws=draws, seed=seed), [*_plans(judged), *needs])


def _judged(method: str, found: dict, failed: str, *, margins: dict[str, float], draws: int, seed: int) -> _Judged:
    reads, missing = {}, {}
    metrics = {name: one.standard.deciding for own in found.values() for name, one in own.items()}
    for metric in metrics:
        side = distances.against(method, metric, found)
        if isinstance(side, str):
            missing[metric] = side
            continue
        rng = generator(seed, "comparisons", metric)
        reads[metric] = distances.read(side, metric, margins=margins, rng=rng, draws=draws)
    return _Judged(reads, missing, {name for name, decides in metrics.items() if not decides}, failed, {})


def _adjust(judged: dict[str, _Judged]) -> None:
    keys = [(method, metric) for method, own in judged.items() for metric in own.of(True)]
    adjusted = decide.family(
        p=np.array([judged[method].reads[metric].shown.p for method, metric in keys]),
        nothing=np.array([method == NONE for method, _ in keys], dtype=bool),
        retrained=np.array([method in (RETRAIN, CONTROL) for method, _ in keys], dtype=bool),
    )
    for (method, metric), p in zip(keys, adjusted.tolist(), strict=True):
        own = judged[method]
        own.p_holm[metric], own.reads[metric] = p, own.reads[metric].telling(p)


def _distances(method: str, judged: dict[str, _Judged]) -> list[dict]:
    """One row for each metric that a method has a distance by."""
    rows, none = [], judged.get(NONE)
    for metric, one in judged[method].reads.items():
        standard, shown, design = one.side.own.standard, one.shown, one.every.design
        to_none, closed = NOTHING, NOTHING
        if standard.deciding and method != NONE and none and metric in none.reads:
            both = distances.beside_none(one, none.reads[metric])
            if both is not None:
                to_none, closed = distances.closer(both, standard.units), distances.closed(both, standard.units)
        rows.append({
            "method": method, "metric": metric, "attack": one.attack, "deciding": int(standard.deciding),
            "from": one.side.source, "distance": shown.estimate.value, "ci_low": shown.estimate.low,
            "ci_high": shown.estimate.high, "alone": int(one.alone),
            "inner_low": shown.inner[0], "inner_high": shown.inner[1],
            "margin_far": shown.margin[0], "margin_near": shown.margin[1], "scale": standard.scale, "p": shown.p,
            "p_holm": judged[method].p_holm.get(metric, np.nan), "closer": to_none.value, "closer_low": to_none.low,
            "closer_high": to_none.high, "against_none": decide.against_none(closer=to_none),
            "share_closed": closed.value, "share_low": closed.low, "share_high": closed.high,
            "units": design.units, "models": design.models, "samples": design.samples,
            "note": "; ".join(dict.fromkeys(filter(None, (shown.estimate.note, closed.note)))),
        })  # fmt: skip
    return rows


def _verdict(method: str, own: _Judged, beside: dict[tuple[str, str], dict]) -> tuple[dict, list[dict]]:
    """The line of one method, and what would decide on it where it is undecided."""
    empty_row = dict.fromkeys(("distance", "ci_low", "ci_high", "margin", "p_holm", "share_closed", "share_low",
                               "share_high"), np.nan)  # fmt: skip
    nothing = {"method": method, "told_by": "", **empty_row, "against_none": ""}
    if own.failed:
        return {**nothing, "verdict": decide.FAILED, "note": own.failed}, []
    deciding, worth = own.of(True), own.of(False)
    if not deciding:
        why = "; ".join(dict.fromkeys(own.missing.values())) or "no metric decides"
        return {**nothing, "verdict": decide.UNDECIDED, "note": f"no distance: {why}"}, []
    # What is unknown cannot be shown to be within a margin; retraining is worth what it is.
    unknown = [
        decide.Distance(metric, replace(NOTHING, note=why), (np.nan, np.nan), (-1.0, 1.0))
        for metric, why in own.missing.items()
        if not (method == RETRAIN and metric in own.worths)
    ]
    names, shown = list(deciding), [one.shown for one in deciding.values()]
    p = [own.p_holm[name] for name in names]
    decision = decide.classify(deciding=shown, p_holm=p, utility=[*(one.shown for one in worth.values()), *unknown])
    metric = names[decision.shown]
    row, one, note = beside[method, metric], deciding[metric], [decision.note]
    needs = []
    if decision.verdict == decide.UNDECIDED:
        still = {k: r for k, r in own.reads.items() if not decide.within(inner=r.shown.inner, margin=r.shown.margin)}
        needs = [need for name, read in still.items() for need in planning.needed(method, name, read)]
        why = [f"{d.metric} ({d.estimate.note})" for d in unknown]
        note.append(planning.instruction(needs, metrics=still, unknown=why))
    told = decision.verdict in (decide.TOLD, decide.OVER) or decision.p_holm <= decide.ALPHA
    ends = row["ci_low"], row["ci_high"]
    if decision.verdict == decide.AS_RETRAINED:
        ends = row["inner_low"], row["inner_high"]
        note.append(decide.INNER)
    note += [row["note"]]
    same = ("distance", "against_none", "share_closed", "share_low", "share_high")
    return {
        "method": method, "verdict": decision.verdict, "told_by": _named(metric, one) if told else "",
        **{name: row[name] for name in same}, "ci_low": ends[0], "ci_high": ends[1],
        "margin": max(map(abs, one.shown.margin)), "p_holm": decision.p_holm, "note": "; ".join(filter(None, note)),
    }, needs  # fmt: skip


def _named(metric: str, one: Read) -> str:
    return " ".join(filter(None, (metric, one.attack)))


def _ranks(judged: dict[str, _Judged], *, draws: int, seed: int) -> list[dict]:
    """For each deciding metric the ranks that every method may have; 1 = closest to retraining."""
    rows = []
    for metric in dict.fromkeys(name for own in judged.values() for name in own.of(True)):
        reads = {method: own.reads[metric] for method, own in judged.items() if metric in own.reads}
        first = next(iter(reads.values()))
        reads = {method: one for method, one in reads.items() if one.side.own.alike(first.side.own)}
        if len(reads) < 2:
            continue
        together = distances.joint([(one.side, one.which) for one in reads.values()])
        nearness = together.of(np.diag(np.where(together.value < 0, 1.0, -1.0)))
        rng = generator(seed, "comparisons", "ranks", metric)
        best, worst = rank_sets.rank_sets(distances=nearness, rng=rng, draws=draws)
        rows += [
            {"metric": metric, "method": method, "distance": value, "best": int(low), "worst": int(high),
             "methods": len(reads)}
            for method, value, low, high in zip(reads, together.value.tolist(), best, worst, strict=True)
        ]  # fmt: skip
    return rows


def _plans(judged: dict[str, _Judged]) -> list[dict]:
    return [row for method, own in judged.items() for name, one in own.reads.items()
            for row in planning.plans(method, name, one)]  # fmt: skip
