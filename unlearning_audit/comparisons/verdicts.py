"""Verdicts on all methods of one scenario, with error rates: distances, classes, ranks, and what would decide."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unlearning_audit.comparisons import distances, planning, sensitivity
from unlearning_audit.comparisons.distances import CONTROL, NONE, RETRAIN, Effects, Read
from unlearning_audit.comparisons.sensitivity import Sensitivity
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import Estimate, decide, empty, rank_sets

#: An estimate without a value, for cells that do not apply.
NOTHING = empty(n=0, note="")
NO_SHARE = "the share of traces removed is not computed, because the method's models do not correspond to those of none"
NOT_BETTER = "not shown to be closer to retraining than {}, which changes the weights at random by the same size"


@dataclass(frozen=True)
class Judgement:
    """The rows of one scenario in the tables of verdicts, distances, ranks and resolution, each column → value.

    `unlearning_audit.evaluation.verdicts` declares the columns.
    """

    verdicts: list[dict[str, Any]]
    distances: list[dict[str, Any]]
    ranks: list[dict[str, Any]]
    resolution: list[dict[str, Any]]


@dataclass
class _Judged:
    """The distances of one method by all metrics, and what was decided on them.

    ``reads``: metric → distance; ``missing``: metric → why there is no distance; ``utilities``: the metrics that
    measure utility; ``failed``: why the method failed, or ""; ``p_holm``: deciding metric → adjusted p-value.
    """

    reads: dict[str, Read]
    missing: dict[str, str]
    utilities: set[str]
    failed: str
    p_holm: dict[str, float]

    def of(self, deciding: bool) -> dict[str, Read]:
        """Return metric → distance, for the deciding metrics, or for those of utility if ``deciding`` is false."""
        return {name: read for name, read in self.reads.items() if read.side.audited.rule.deciding == deciding}


def compare(
    effects: Effects,
    failed: dict[str, str],
    *,
    margins: dict[str, float],
    draws: int,
    seed: int,
    accuracies: Mapping[str, Estimate] | None = None,
    alpha: float = decide.ALPHA,
    damaged: Collection[str] = (),
    spreads: Mapping[str, float] | None = None,
    shams: Mapping[str, str | None] | None = None,
) -> Judgement:
    """Compare all methods of one scenario; return the rows of verdicts, distances, ranks and resolution.

    p-values are adjusted by Holm over methods and deciding metrics, references included (`decide.family`). Margins are
    reduced where doing nothing leaves less than twice as much.

    Parameters
    ----------
    effects : dict
        Method → metric → the parts of its number.
    failed : dict
        Method → why it has no results.
    margins : dict
        Name of a margin, which metrics declare, → its size.
    draws : int
        Bootstrap draws behind every joint interval.
    seed : int
        The seed of these draws.
    accuracies : mapping, optional
        Role of samples → accuracy of the models before unlearning, for the sentence on what to change.
    alpha : float
        The level of this analysis, below α if there are several interim ones.
    damaged : collection of str
        Methods among the failed ones whose models diverged. Their verdict is *broken*.
    spreads : mapping, optional
        Name of a metric, of its margin, or `decide.EVERY` → known standard deviation over retrained models.
    shams : mapping, optional
        Each sham (a random change of the weights) → the method whose change it matches in size, used only for a remark
        on that method. Shams have no rows, and their tests are not counted.

    Returns
    -------
    Judgement
    """
    how, shams = {"margins": margins, "draws": draws, "level": 1 - alpha}, shams or {}
    with_shams = {m: _judged(m, effects, failed.get(m, ""), spreads or {}, seed, how) for m in effects}
    judged = {method: judgement for method, judgement in with_shams.items() if method not in shams}
    # Each of the next steps changes what is ``judged``: p-values, margins, or the attacks that count.
    _adjust(judged, decide.ALPHA / alpha)
    state = _assessed(judged, accuracies or {})
    _without_blind(judged)
    coarse = _with_coarse_margins(judged, _coarse(judged), state.least)
    rows = [row for method in judged for row in _distances(method, judged)]
    row_of = {(row["method"], row["metric"]): row for row in rows}
    verdicts, needs = [], []
    for method, judgement in judged.items():
        row, needs_of_method = _verdict(method, judgement, row_of, state, coarse)
        if method in damaged:
            row["verdict"] = decide.BROKEN
        verdicts.append(row)
        needs += needs_of_method
    for sham, like in shams.items():
        for row in verdicts:
            if like and row["method"] == like and not _better(judged[like], with_shams[sham]):
                row["note"] = _clauses(row["note"], NOT_BETTER.format(sham))
    useless = {row["method"] for row in verdicts if row["verdict"] in (decide.BROKEN, decide.FAILED)}
    ranks = _ranks(judged, useless, draws=draws, seed=seed)
    plans = [planning.plans(m, read) for m, judgement in judged.items() for read in judgement.reads.values()]
    return Judgement(verdicts, rows, ranks, [*itertools.chain(*plans), *needs])


def _better(method: _Judged, sham: _Judged) -> bool:
    """Return whether a method is shown to be closer to retraining than its sham (a random change of the weights by the
    same size) by any deciding metric, adjusted by Bonferroni.

    Return True if no metric compares the two, because nothing can be shown then.
    """
    reads, reads_of_sham = method.of(deciding=True), sham.of(deciding=True)
    pairs = [distances.beside_none(read, reads_of_sham[m]) for m, read in reads.items() if m in reads_of_sham]
    joint = [pair for pair in pairs if pair is not None]
    level = 1 - decide.ALPHA / max(len(joint), 1)
    return not joint or any(distances.closer(pair, level=level).low > 0 for pair in joint)


def _judged(
    method: str, effects: Effects, failed: str, spreads: Mapping[str, float], seed: int, how: dict[str, Any]
) -> _Judged:
    """Compute the distances of one ``method`` by all metrics that any method has.

    ``effects``: method → metric → numbers; ``failed``: why this method failed, or ""; ``spreads``: name of a metric, of
    its margin, or `decide.EVERY` → known standard deviation over retrained models, of which the most specific counts;
    ``seed``: of the joint draws; ``how``: ``margins``, ``draws`` and ``level`` for `distances.read`.
    """
    reads, missing = {}, {}
    rules = {name: effect.rule for by_metric in effects.values() for name, effect in by_metric.items()}
    utilities = {name for name, rule in rules.items() if not rule.deciding}
    for metric, rule in rules.items():
        spread = next((spreads[name] for name in (metric, rule.margin, decide.EVERY) if name in spreads), None)
        side = distances.against(method, metric, effects, spread)
        if isinstance(side, str):  # the reason why there is no distance
            missing[metric] = side
        else:
            rng = generator(seed, "comparisons", metric)
            reads[metric] = distances.read(side, metric, rng=rng, utilities=len(utilities), **how)
    return _Judged(reads, missing, utilities, failed, p_holm={})  # `_adjust` computes p-values from all methods


def _adjust(judged: dict[str, _Judged], factor: float) -> None:
    """Adjust p-values by Holm over methods and deciding metrics, and store them in ``judged`` (method → results).

    The distance by a metric is then that of the attack whose number differs most among those that differ significantly,
    if one does. ``factor``: α divided by the level of this interim analysis; p-values are multiplied by it, at most to
    1.
    """
    keys = [(method, metric) for method, judgement in judged.items() for metric in judgement.of(deciding=True)]
    adjusted = decide.family(
        p=np.array([judged[method].reads[metric].distance.p for method, metric in keys]),
        nothing=np.array([method == NONE for method, _ in keys], dtype=bool),
        retrained=np.array([method in (RETRAIN, CONTROL) for method, _ in keys], dtype=bool),
    )
    for (method, metric), p in zip(keys, np.minimum(adjusted * factor, 1.0).tolist(), strict=True):
        judgement = judged[method]
        judgement.p_holm[metric], judgement.reads[metric] = p, judgement.reads[metric].differing(p)


def _assessed(judged: dict[str, _Judged], accuracies: Mapping[str, Estimate]) -> Sensitivity:
    """Return what the scenario can show (`Sensitivity`), and reduce margins in ``judged`` (method → results).

    A margin is reduced where the distance of doing nothing may be less than twice as large. ``accuracies``: role of
    samples → accuracy of the models before unlearning.
    """
    reads = {method: judgement.of(deciding=True) for method, judgement in judged.items() if not judgement.failed}
    why = _explanation(list(reads.get(NONE, {}).values()), accuracies)
    state = sensitivity.assess(reads, {method: judgement.p_holm for method, judgement in judged.items()}, why)
    for judgement in judged.values():
        for metric, least in state.least.items():
            if metric in judgement.reads:
                judgement.reads[metric] = judgement.reads[metric].capped(least)
    return state


def _explanation(reads: list[Read], accuracies: Mapping[str, Estimate]) -> str:
    """Return a sentence on why doing nothing cannot be distinguished from retraining; "" if no metric has a distance
    whose variation is known.

    It is about the metric with the least detectable distance in margins. If doing nothing lies beyond the margin by
    some metrics, only these are considered. ``reads``: the distances of doing nothing; ``accuracies``: those of the
    models before unlearning, by role.
    """
    reads = [read for read in reads if not read.unrepeated]
    beyond = [read for read in reads if read.distance.estimate.value > read.margin[1]]
    detectable = [(planning.least_distance(read), read) for read in beyond or reads]
    if not detectable:
        return ""
    least, read = min(detectable, key=lambda pair: pair[0] / pair[1].margin[1])
    how: dict[str, Any] = {"measured": read.distance.estimate.value} if beyond else {}
    if not read.side.paired:
        how["more"] = "retrained models"
    return sensitivity.explanation(accuracies, least_distance=least, margin=read.margin[1], **how)


def _without_blind(judged: dict[str, _Judged]) -> None:
    """Exclude from each method's test of equivalence the attacks that cannot distinguish doing nothing from retraining.

    ``judged``: method → results, changed in place. Nothing changes if the method none is missing or failed.
    """
    if NONE not in judged or judged[NONE].failed:
        return
    none = judged[NONE]
    for method, judgement in judged.items():
        for metric in judgement.p_holm if method != NONE else ():
            if metric in none.p_holm:
                p_none, p_holm = none.p_holm[metric], judgement.p_holm[metric]
                judgement.reads[metric] = judgement.reads[metric].sighted(none.reads[metric], p_none, p_holm)


def _coarse(judged: dict[str, _Judged]) -> set[str]:
    """Return the coarse metrics by which retraining itself is not shown to be equivalent; an empty set if no other
    deciding metric would be left."""
    # (method, metric, distance) of every method by every deciding metric.
    reads = [(method, *item) for method, judgement in judged.items() for item in judgement.of(deciding=True).items()]
    of_retraining = [(metric, read.distance.within) for method, metric, read in reads if method in (CONTROL, RETRAIN)]
    # The metrics by which retraining and its control, as far as they are compared, are both within the margin.
    shown = {metric for metric, _ in of_retraining} - {metric for metric, within in of_retraining if not within}
    coarse = {metric for _, metric, read in reads if read.side.audited.rule.coarse} - shown
    return coarse if {metric for _, metric, _ in reads} - coarse else set()


def _with_coarse_margins(judged: dict[str, _Judged], coarse: set[str], least: Mapping[str, float]) -> set[str]:
    """Set the wide margins of the ``coarse`` metrics in ``judged`` (method → results); return the coarse metrics that
    declare no wide margin.

    ``least``: metric → the lower limit of the distance of doing nothing, which reduces these margins as it reduces all.
    """
    endless = set()
    for judgement in judged.values():
        for metric in coarse & judgement.reads.keys():
            read = judgement.reads[metric]
            if np.isfinite(read.side.audited.rule.coarse_margin):
                judgement.reads[metric] = read.with_coarse_margin().capped(least.get(metric, np.inf))
            else:
                endless.add(metric)
    return endless


def _distances(method: str, judged: dict[str, _Judged]) -> list[dict[str, Any]]:
    """Return a row of the table of distances for each metric by which ``method`` has a distance, compared with doing
    nothing as well.

    ``judged``: method → results. The columns on doing nothing have no numbers for that method itself, for metrics of
    utility, where the scenario lacks that method, and where the variation of the models of both methods is unknown or
    their models do not correspond.
    """
    rows, none = [], judged.get(NONE)
    for metric, read in judged[method].reads.items():
        rule, distance, design = read.side.audited.rule, read.distance, read.numbers.design
        to_none, closed = NOTHING, NOTHING
        of_none = none.reads.get(metric) if none and method != NONE and rule.deciding else None
        if of_none is not None and not (read.unrepeated and of_none.unrepeated):
            both, closed = distances.beside_none(read, of_none), replace(NOTHING, note=NO_SHARE)
            if both is not None:
                to_none = distances.closer(both, factor=read.factor_of_largest)
                closed = distances.closed(both, read, of_none)
        rows.append({
            "method": method, "metric": metric, "attack": read.attack, "deciding": int(rule.deciding),
            "from": read.side.source, "distance": distance.estimate.value, "ci_low": distance.estimate.low,
            "ci_high": distance.estimate.high, "disagree": int(read.disagree),
            "inner_low": distance.inner[0], "inner_high": distance.inner[1],
            "margin_far": distance.margin[0], "margin_near": distance.margin[1],
            "broken": int(distance.least > distance.broken),
            "scale": rule.scale, "p": _printed(distance.p, read),
            "p_holm": _printed(judged[method].p_holm.get(metric, np.nan), read),
            "closer": to_none.value, "closer_low": to_none.low,
            "closer_high": to_none.high, "against_none": decide.against_none(closer=to_none),
            "share_closed": closed.value, "share_low": closed.low, "share_high": closed.high,
            "units": design.units, "models": design.models, "samples": design.samples,
            "note": _clauses(distance.estimate.note, closed.note),
        })  # fmt: skip
    return rows


def _printed(p: float, read: Read) -> float:
    """Return a p-value for a table: raised to `decide.LEAST_P`, the least that can be trusted, or unchanged if the test
    is exact."""
    return p if read.exact else float(np.maximum(p, decide.LEAST_P))


def _verdict(
    method: str, judgement: _Judged, row_of: dict[tuple[str, str], dict[str, Any]], scenario: Sensitivity,
    coarse: set[str],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    """Return one method's row of the table of verdicts, and rows of the study sizes that would decide on it if it is
    inconclusive, else [].

    ``judgement``: the method's results; ``row_of``: (method, metric) → row of `_distances`; ``scenario``: what the
    scenario can show; ``coarse``: metrics that are too coarse to show equivalence. A method that failed, or has no
    distance by a deciding metric, gets a row without numbers that says why.
    """
    numbers = ("distance", "ci_low", "ci_high", "margin", "retrain_spread", "p_holm",
               "share_closed", "share_low", "share_high")  # fmt: skip
    nothing = {"method": method, "found_by": "", **dict.fromkeys(numbers, np.nan), "against_none": ""}
    if judgement.failed:
        return {**nothing, "verdict": decide.FAILED, "note": judgement.failed}, []
    deciding, utility = judgement.of(deciding=True), judgement.of(deciding=False)
    if not deciding:
        why = "; ".join(dict.fromkeys(judgement.missing.values())) or sensitivity.NOTHING_DECIDES
        state = scenario.state if scenario.state == decide.NO_YARDSTICK else decide.INCONCLUSIVE
        return {**nothing, "verdict": state, "note": f"{sensitivity.NO_DISTANCE}{why}"}, []
    # An unknown number cannot be shown to be within a margin. The utility of retraining is the reference, so that
    # retraining itself needs none. Where all deciding numbers lie at one end of their range, they show nothing.
    reference = judgement.utilities if method == RETRAIN else set()
    unknown = [(metric, why) for metric, why in judgement.missing.items() if metric not in coarse | reference]
    if any(read.given for read in judgement.reads.values()):
        unrepeated = [metric for metric, read in judgement.reads.items() if read.unrepeated]
        unknown += [(metric, sensitivity.NO_SPREAD) for metric in unrepeated if metric not in coarse]
    saturated = {metric for metric, read in deciding.items() if read.saturated}
    if saturated and saturated | coarse >= set(deciding):
        unknown += [(metric, deciding[metric].saturated) for metric in sorted(saturated)]
    decision = decide.classify(
        deciding=[read.distance for read in deciding.values()],
        p_holm=[judgement.p_holm[metric] for metric in deciding],
        utility=[
            *(read.distance for read in utility.values()),
            # Limits that are NaN lie in no margin.
            *(decide.Distance(metric, NOTHING, (np.nan, np.nan), (-1.0, 1.0)) for metric, _ in unknown),
        ],
        coarse=coarse | saturated,
    )
    metric = list(deciding)[decision.number]
    row, read, note = row_of[method, metric], deciding[metric], [decision.note]
    needs = []
    if decision.verdict == decide.INCONCLUSIVE:
        undecided = {m: r for m, r in judgement.reads.items() if m not in coarse and not r.distance.within}
        # Without none nothing shows equivalence, and a metric of utility never finds a method distinguishable.
        needs = [
            need
            for name, other in undecided.items()
            for need in planning.requirements(method, other)
            if (scenario.referred if need["outcome"] == decide.EQUIVALENT else name in deciding)
        ]
        unclear = [f"{name} ({why})" for name, why in unknown]
        note.append(planning.instruction(needs, metrics=undecided, unknown=unclear))
    verdict, sentence = _stated(method, decision.verdict, scenario)
    if all(read.unrepeated for read in deciding.values()):  # no verdict, since nothing shows how models vary
        verdict, sentence = decide.NO_YARDSTICK, sensitivity.UNREPEATED
        note = [sensitivity.spread_that_explains(row["distance"])]
    significant = decision.verdict in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED) or decision.p_holm <= decide.ALPHA
    ends = row["ci_low"], row["ci_high"]
    if verdict == decide.EQUIVALENT:  # which the interval for equivalence shows
        ends = row["inner_low"], row["inner_high"]
        note += [decide.INNER, decide.BLIND.format(int(read.blind.sum())) if read.blind is not None else ""]
    copied = ("distance", "against_none", "share_closed", "share_low", "share_high")
    return {
        "method": method, "verdict": verdict, "found_by": f"{metric} {read.attack}".strip() if significant else "",
        **{name: row[name] for name in copied}, "ci_low": ends[0], "ci_high": ends[1],
        "margin": max(map(abs, read.distance.margin)), "p_holm": _printed(decision.p_holm, read),
        "retrain_spread": np.nan if read.side.spread is None else read.side.spread,
        "note": _clauses(sentence, *note, row["note"]),
    }, needs  # fmt: skip


def _clauses(*notes: str) -> str:
    """Join notes, whose clauses are separated by semicolons, without empty and repeated clauses."""
    return "; ".join(dict.fromkeys(filter(None, "; ".join(notes).split("; "))))  # keys of a dict keep their order


def _stated(method: str, verdict: str, scenario: Sensitivity) -> tuple[str, str]:
    """Return the class of a method, from its ``verdict`` and the state of its scenario, and a sentence on it, or "".

    A method whose models are broken is broken in every state, unless it is retraining or its control. Where no metric
    tells models before unlearning (`none`) from retrained ones, that state replaces all other classes, and the sentence
    says if the method differs from retraining nonetheless. Where two groups of retrained models differ, that state
    replaces the classes of both, and of each method that is equivalent or inconclusive. Without `none` in the scenario,
    an equivalent method is inconclusive.
    """
    if verdict == decide.BROKEN and method not in (RETRAIN, CONTROL):
        return verdict, ""
    if scenario.state == decide.NOTHING_TO_FIND:
        differs = verdict in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED) and scenario.reason != sensitivity.FAR_NONE
        return scenario.state, scenario.reason + "; the method differs from retraining nonetheless" * differs
    alike = verdict in (decide.EQUIVALENT, decide.INCONCLUSIVE)
    if scenario.state == decide.YARDSTICKS_DISAGREE and (alike or method in (RETRAIN, CONTROL)):
        return scenario.state, scenario.reason
    if alike and not scenario.referred:
        return decide.INCONCLUSIVE, sensitivity.NO_NONE
    return verdict, ""


def _ranks(judged: dict[str, _Judged], useless: set[str], *, draws: int, seed: int) -> list[dict[str, Any]]:
    """Return rows of the ranks that every method may have by each deciding metric; 1 = closest to retraining.

    The columns are metric, method, distance, best, worst, methods (how many are ranked) and ahead. ``judged``: method →
    results; ``useless``: methods that failed or left broken models; ``draws`` and ``seed``: of the joint draws. A
    method's distance is the one that stands for all attacks; its sign does not count. Only methods whose models
    correspond are ranked; a metric with fewer than two such methods is skipped, and so is one without repeated models.
    The column ``ahead`` counts the methods, without references and ``useless`` ones, that are proven to be closer.
    """
    rows = []
    for metric in dict.fromkeys(name for judgement in judged.values() for name in judgement.of(deciding=True)):
        reads = {method: judgement.reads[metric] for method, judgement in judged.items() if metric in judgement.reads}
        # Of these, only the methods whose models correspond.
        reads = {method: reads[method] for method in distances.corresponding({m: r.side for m, r in reads.items()})}
        if len(reads) < 2 or all(read.unrepeated for read in reads.values()):
            continue
        # Row k gives attack k the weight 1 and the others 0; all methods have the same attacks.
        one_attack = np.eye(len(next(iter(reads.values())).side.audited.names))
        together = distances.joint([(read.side, one_attack[read.place]) for read in reads.values()])
        assert together is not None  # they correspond
        nearness = together.of(np.diag(np.where(together.value < 0, 1.0, -1.0)))  # −|distance|
        rng = generator(seed, "comparisons", "ranks", metric)
        closer = rank_sets.proven(distances=nearness, rng=rng, draws=draws)
        best, worst = rank_sets.of_proven(closer)
        judges = np.array([method not in (NONE, RETRAIN, CONTROL, *useless) for method in reads])
        columns = together.value.tolist(), best, worst, closer[judges].sum(axis=0)
        rows += [
            {"metric": metric, "method": method, "distance": value, "best": int(low), "worst": int(high),
             "methods": len(reads), "ahead": int(ahead)}
            for method, value, low, high, ahead in zip(reads, *columns, strict=True)
        ]  # fmt: skip
    return rows
