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

#: An estimate without a value (NaN), for cells of tables that do not apply.
NO_ESTIMATE = empty(n=0, note="")
#: Note in place of the share of traces removed.
NO_SHARE = "the share of traces removed is not computed, because the method's models do not correspond to those of none"
#: Remark on a method that is not shown to be better than its sham.
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

    Parameters
    ----------
    reads
        Metric → distance.
    missing
        Metric → why there is no distance.
    utilities
        The metrics that measure utility.
    failed
        Why the method failed, or "".
    p_holm
        Deciding metric → adjusted p-value.
    """

    reads: dict[str, Read]
    missing: dict[str, str]
    utilities: set[str]
    failed: str
    p_holm: dict[str, float]

    def reads_by(self, deciding: bool) -> dict[str, Read]:
        """Return metric → distance, for the deciding metrics, or for those of utility if ``deciding`` is false."""
        return {name: read for name, read in self.reads.items() if read.contrast.audited.rule.deciding == deciding}


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

    p-values are adjusted over methods and deciding metrics: those of retraining and its control, which get a tenth of
    α, by Bonferroni, all others by Holm (`decide.adjusted_p`). Margins are reduced to half of the lower limit of what
    doing nothing leaves, where they are larger.

    Parameters
    ----------
    effects : dict
        Method → metric → the parts of its number. Methods that are no keys, failed ones as well, have no rows.
    failed : dict
        Method → why it has no results.
    margins : dict
        Name of a margin (metrics declare these names) → its size.
    draws : int
        Bootstrap draws behind every joint interval.
    seed : int
        The seed of these draws.
    accuracies : mapping, optional
        Role of samples → accuracy of the models before unlearning, for the sentence on what to change in the study.
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
    options, shams = {"margins": margins, "draws": draws, "level": 1 - alpha}, shams or {}
    with_shams = {m: _judge(m, effects, failed.get(m, ""), spreads or {}, seed, options) for m in effects}
    judged = {method: judgement for method, judgement in with_shams.items() if method not in shams}
    # Each of the next steps changes what is ``judged``: p-values, margins, or the attacks that count.
    _adjust_p_values(judged, decide.ALPHA / alpha)
    scenario = _assess_and_cap_margins(judged, accuracies or {})
    _exclude_blind_attacks(judged)
    coarse = _set_coarse_margins(judged, _unproven_coarse(judged), scenario.lower_limits)
    rows = [row for method in judged for row in _distance_rows(method, judged)]
    row_of = {(row["method"], row["metric"]): row for row in rows}
    verdicts, needs = [], []  # needs: the sizes of studies that would decide
    for method, judgement in judged.items():
        row, needs_of_method = _verdict_and_needs(method, judgement, row_of, scenario, coarse)
        if method in damaged:
            row["verdict"] = decide.BROKEN
        verdicts.append(row)
        needs += needs_of_method
    for sham, matched in shams.items():  # a method whose sham is not among the results has no such remark
        for row in verdicts:
            if matched and row["method"] == matched and not _shown_closer(judged[matched], with_shams[sham]):
                row["note"] = _joined_clauses(row["note"], NOT_BETTER.format(sham))
    useless = {row["method"] for row in verdicts if row["verdict"] in (decide.BROKEN, decide.FAILED)}
    ranks = _rank_rows(judged, useless, draws=draws, seed=seed)
    plans = [planning.resolution_rows(m, read) for m, judgement in judged.items() for read in judgement.reads.values()]
    return Judgement(verdicts, rows, ranks, [*itertools.chain(*plans), *needs])


def _shown_closer(method: _Judged, sham: _Judged) -> bool:
    """Return whether a method is shown to be closer to retraining than its sham (a random change of the weights by the
    same size) by any deciding metric, with Bonferroni's correction for their number.

    Return True if no metric compares the two, so that the method is not blamed for what cannot be shown.
    """
    reads, reads_of_sham = method.reads_by(deciding=True), sham.reads_by(deciding=True)
    # The sham takes the place of doing nothing here. None: the models of the two do not correspond.
    pairs = [distances.beside_none(read, reads_of_sham[m]) for m, read in reads.items() if m in reads_of_sham]
    comparable = [pair for pair in pairs if pair is not None]
    level = 1 - decide.ALPHA / max(len(comparable), 1)
    return not comparable or any(distances.closer(pair, level=level).low > 0 for pair in comparable)


def _judge(
    method: str, effects: Effects, failed: str, spreads: Mapping[str, float], seed: int, options: dict[str, Any]
) -> _Judged:
    """Compute the distances of one ``method`` by all metrics that any method has.

    Parameters
    ----------
    effects
        Method → metric → numbers.
    failed
        Why this method failed, or "".
    spreads
        Name of a metric, of its margin, or `decide.EVERY` → known standard deviation over retrained models; the first
        of these that is there counts.
    seed
        The seed of the joint draws.
    options
        ``margins``, ``draws`` and ``level`` for `distances.read`.
    """
    reads, missing = {}, {}
    rules = {name: effect.rule for by_metric in effects.values() for name, effect in by_metric.items()}
    utilities = {name for name, rule in rules.items() if not rule.deciding}
    for metric, rule in rules.items():
        spread = next((spreads[name] for name in (metric, rule.margin, decide.EVERY) if name in spreads), None)
        contrast = distances.contrast_or_reason(method, metric, effects, spread)
        if isinstance(contrast, str):  # the reason why there is no distance
            missing[metric] = contrast
        else:
            rng = generator(seed, "comparisons", metric)
            reads[metric] = distances.read(contrast, metric, rng=rng, utility_count=len(utilities), **options)
    return _Judged(reads, missing, utilities, failed, p_holm={})  # `_adjust_p_values` fills p_holm, from all methods


def _adjust_p_values(judged: dict[str, _Judged], factor: float) -> None:
    """Adjust p-values over methods and deciding metrics by `decide.adjusted_p`, and store them in ``judged``.

    Where the p-value of a metric is significant, `Read.with_significant_attack` then chooses the attack that stands for
    all.

    Parameters
    ----------
    judged
        Method → results, changed in place.
    factor
        α divided by the level of this interim analysis. P-values are multiplied by it, so that they can be compared
        with α.
    """
    tests = [(method, metric) for method, judgement in judged.items() for metric in judgement.reads_by(deciding=True)]
    adjusted = decide.adjusted_p(
        p=np.array([judged[method].reads[metric].distance.p for method, metric in tests]),
        nothing=np.array([method == NONE for method, _ in tests], dtype=bool),
        retrained=np.array([method in (RETRAIN, CONTROL) for method, _ in tests], dtype=bool),
    )
    for (method, metric), p in zip(tests, np.minimum(adjusted * factor, 1.0).tolist(), strict=True):
        judgement = judged[method]
        judgement.p_holm[metric] = p
        judgement.reads[metric] = judgement.reads[metric].with_significant_attack(p)


def _assess_and_cap_margins(judged: dict[str, _Judged], accuracies: Mapping[str, Estimate]) -> Sensitivity:
    """Return what the scenario can show (`Sensitivity`), and reduce margins in ``judged``.

    A margin is at most half of the lower limit of the distance of doing nothing, for the metrics that find a difference
    between doing nothing and retraining.

    Parameters
    ----------
    judged
        Method → results, changed in place.
    accuracies
        Role of samples → accuracy of the models before unlearning.
    """
    reads = {method: judgement.reads_by(deciding=True) for method, judgement in judged.items() if not judgement.failed}
    why = _why_nothing_is_found(list(reads.get(NONE, {}).values()), accuracies)
    state = sensitivity.assess(reads, {method: judgement.p_holm for method, judgement in judged.items()}, why)
    for judgement in judged.values():
        for metric, lower_limit in state.lower_limits.items():
            if metric in judgement.reads:
                judgement.reads[metric] = judgement.reads[metric].with_capped_margin(lower_limit)
    return state


def _why_nothing_is_found(reads: list[Read], accuracies: Mapping[str, Estimate]) -> str:
    """Return a sentence on why doing nothing cannot be distinguished from retraining, if it cannot; "" if no metric has
    a distance whose variation is known.

    The sentence is about the metric whose least detectable distance is smallest in units of its margin. If doing
    nothing lies beyond the margin by some metrics, only these are considered.

    Parameters
    ----------
    reads
        The distances of doing nothing.
    accuracies
        Role of samples → accuracy of the models before unlearning.
    """
    # A margin is (far, near) with far < 0 < near. Doing nothing lies towards the near end, margin[1].
    reads = [read for read in reads if not read.variation_unknown]
    beyond = [read for read in reads if read.distance.estimate.value > read.margin[1]]
    detectable = [(planning.least_distance(read), read) for read in beyond or reads]
    if not detectable:
        return ""
    # ``pair``: the least detectable distance, and the distance itself with its margin.
    least_distance, read = min(detectable, key=lambda pair: pair[0] / pair[1].margin[1])
    options: dict[str, Any] = {"measured": read.distance.estimate.value} if beyond else {}
    if not read.contrast.paired:
        options["more"] = "retrained models"
    return sensitivity.explanation(accuracies, least_distance=least_distance, margin=read.margin[1], **options)


def _exclude_blind_attacks(judged: dict[str, _Judged]) -> None:
    """Exclude from each method's test of equivalence the attacks by which neither doing nothing nor the method differs
    from retraining (`Read.with_blind_attacks`).

    Nothing changes for the method none (doing nothing) itself, for metrics by which it has no p-value, and for all
    methods if it is missing or failed.

    Parameters
    ----------
    judged
        Method → results, changed in place.
    """
    if NONE not in judged or judged[NONE].failed:
        return
    none = judged[NONE]
    for judgement in (judgement for method, judgement in judged.items() if method != NONE):
        for metric in judgement.p_holm.keys() & none.p_holm.keys():
            p_none, p_holm = none.p_holm[metric], judgement.p_holm[metric]
            judgement.reads[metric] = judgement.reads[metric].with_blind_attacks(none.reads[metric], p_none, p_holm)


def _unproven_coarse(judged: dict[str, _Judged]) -> set[str]:
    """Return the coarse metrics (`DecisionRule.coarse`) by which retraining itself is not shown to be equivalent; an
    empty set if no other deciding metric would be left.

    Retraining is shown to be equivalent by a metric if retraining and its control, as far as they have a distance, are
    within the margin.
    """
    reads = [item for judgement in judged.values() for item in judgement.reads_by(deciding=True).items()]
    references = [judgement for method, judgement in judged.items() if method in (CONTROL, RETRAIN)]
    of_references = [item for judgement in references for item in judgement.reads_by(deciding=True).items()]
    outside = {metric for metric, read in of_references if not read.distance.within}
    shown = {metric for metric, _ in of_references} - outside
    coarse = {metric for metric, read in reads if read.contrast.audited.rule.coarse} - shown
    return coarse if {metric for metric, _ in reads} - coarse else set()


def _set_coarse_margins(judged: dict[str, _Judged], coarse: set[str], lower_limits: Mapping[str, float]) -> set[str]:
    """Set the wide margins of the ``coarse`` metrics in ``judged``; return the coarse metrics that declare no wide
    margin, which therefore cannot show equivalence.

    Parameters
    ----------
    judged
        Method → results, changed in place.
    lower_limits
        Metric → the lower limit of the distance of doing nothing, which reduces these margins as it reduces all.
    """
    without_margin = set()
    for judgement in judged.values():
        for metric in coarse & judgement.reads.keys():
            read = judgement.reads[metric]
            if np.isfinite(read.contrast.audited.rule.coarse_margin):
                judgement.reads[metric] = read.with_coarse_margin().with_capped_margin(lower_limits.get(metric, np.inf))
            else:
                without_margin.add(metric)
    return without_margin


def _distance_rows(method: str, judged: dict[str, _Judged]) -> list[dict[str, Any]]:
    """Return a row of the table of distances for each metric by which ``method`` has a distance. Some columns compare
    the method with doing nothing (`_beside_none`); they are empty for metrics of utility and for doing nothing itself.

    `evaluation.verdicts.DISTANCES` explains the columns.

    Parameters
    ----------
    judged
        Method → results.
    """
    rows, none = [], judged.get(NONE)
    for metric, read in judged[method].reads.items():
        rule, distance, design = read.contrast.audited.rule, read.distance, read.numbers.design
        of_none = none.reads.get(metric) if none and method != NONE and rule.deciding else None
        closer, share = _beside_none(read, of_none)
        rows.append({
            "method": method, "metric": metric, "attack": read.attack, "deciding": int(rule.deciding),
            "from": read.contrast.source, "distance": distance.estimate.value, "ci_low": distance.estimate.low,
            "ci_high": distance.estimate.high, "disagree": int(read.disagree),
            "inner_low": distance.inner[0], "inner_high": distance.inner[1],
            "margin_far": distance.margin[0], "margin_near": distance.margin[1],
            "broken": int(distance.lower_limit > distance.breaking_loss),
            "scale": rule.scale, "p": _trusted_p(distance.p, read),
            "p_holm": _trusted_p(judged[method].p_holm.get(metric, np.nan), read),
            "closer": closer.value, "closer_low": closer.low,
            "closer_high": closer.high, "against_none": decide.against_none(closer=closer),
            "share_closed": share.value, "share_low": share.low, "share_high": share.high,
            "units": design.units, "models": design.models, "samples": design.samples,
            "note": _joined_clauses(distance.estimate.note, share.note),
        })  # fmt: skip
    return rows


def _beside_none(read: Read, none: Read | None) -> tuple[Estimate, Estimate]:
    """Return how much closer to retraining a method is than doing nothing, and the share of traces that it removed, by
    one metric.

    Both results are `NO_ESTIMATE` if ``none`` is None, or if the variation of both methods' models is unknown. If the
    models of both do not correspond, they are `NO_ESTIMATE` too, and the share has a note that says so.

    Parameters
    ----------
    read
        The distance of the method.
    none
        The distance of doing nothing; None for doing nothing itself, for a metric of utility, and where doing nothing
        has no distance.
    """
    if none is None or (read.variation_unknown and none.variation_unknown):
        return NO_ESTIMATE, NO_ESTIMATE
    both = distances.beside_none(read, none)
    if both is None:
        return NO_ESTIMATE, replace(NO_ESTIMATE, note=NO_SHARE)
    return distances.closer(both, factor=read.mean_widening), distances.traces_removed(both, read, none)


def _trusted_p(p: float, read: Read) -> float:
    """Return a p-value for a table: at least `decide.LEAST_P`, the least that can be trusted, or unchanged if the test
    is exact. NaN stays."""
    return p if read.exact else float(np.maximum(p, decide.LEAST_P))


def _verdict_and_needs(
    method: str,
    judgement: _Judged,
    row_of: dict[tuple[str, str], dict[str, Any]],
    scenario: Sensitivity,
    coarse: set[str],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return one method's row of the table of verdicts and, if it is inconclusive, rows of the study sizes that would
    decide on it, else [].

    A method that failed, or has no distance by a deciding metric, gets a row without numbers that says why. The row of
    any other method has the numbers of the metric that determines the verdict (`decide.classify`). The state of the
    scenario may replace this verdict (`_class_in_state`); if no deciding distance shows how models vary, it is
    `decide.NO_YARDSTICK`. An equivalent method has the interval of the test of equivalence.

    Parameters
    ----------
    judgement
        The method's results.
    row_of
        (method, metric) → row of `_distance_rows`.
    scenario
        What the scenario can show.
    coarse
        Metrics that are too coarse to show equivalence.
    """
    if judgement.failed:
        return {"method": method, "verdict": decide.FAILED, "note": judgement.failed}, []
    deciding, utility = judgement.reads_by(deciding=True), judgement.reads_by(deciding=False)
    if not deciding:
        why = "; ".join(dict.fromkeys(judgement.missing.values())) or sensitivity.NOTHING_DECIDES
        state = scenario.state if scenario.state == decide.NO_YARDSTICK else decide.INCONCLUSIVE
        return {"method": method, "verdict": state, "note": f"{sensitivity.NO_DISTANCE}{why}"}, []
    saturated = {metric for metric, read in deciding.items() if read.saturated}
    unknown = _unknown_metrics(method, judgement, coarse, saturated)
    # An unknown number cannot be shown to be within a margin, so it stands here with limits that are NaN.
    stand_ins = [decide.Distance(name, NO_ESTIMATE, inner=(np.nan, np.nan), margin=(-1.0, 1.0)) for name, _ in unknown]
    decision = decide.classify(
        deciding=[read.distance for read in deciding.values()],
        p_holm=[judgement.p_holm[metric] for metric in deciding],
        utility=[*(read.distance for read in utility.values()), *stand_ins],
        coarse=coarse | saturated,
    )
    metric = list(deciding)[decision.number]
    row, read, note = row_of[method, metric], deciding[metric], [decision.note]
    needs = []
    if decision.verdict == decide.INCONCLUSIVE:
        undecided = {m: r for m, r in judgement.reads.items() if m not in coarse and not r.distance.within}
        for name, other in undecided.items():
            # Without none nothing shows equivalence, and a metric of utility never finds a method distinguishable.
            possible = {decide.EQUIVALENT: scenario.has_none, decide.DISTINGUISHABLE: name in deciding}
            needs += [need for need in planning.requirements(method, other) if possible[need["outcome"]]]
        reasons = [f"{name} ({why})" for name, why in unknown]
        note.append(planning.instruction(needs, metrics=undecided, unknown=reasons))
    verdict, sentence = _class_in_state(method, decision.verdict, scenario)
    if all(read.variation_unknown for read in deciding.values()):  # no verdict, since nothing shows how models vary
        verdict, sentence = decide.NO_YARDSTICK, sensitivity.UNREPEATED
        note = [sensitivity.spread_that_explains(row["distance"])]
    significant = decision.verdict in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED) or decision.p_holm <= decide.ALPHA
    low, high = row["ci_low"], row["ci_high"]
    if verdict == decide.EQUIVALENT:  # the interval of the test of equivalence is shown
        low, high = row["inner_low"], row["inner_high"]
        note += [decide.INNER, decide.BLIND.format(int(read.blind.sum())) if read.blind is not None else ""]
    shown = {
        "verdict": verdict,
        "found_by": f"{metric} {read.attack}".strip() if significant else "",
        "ci_low": low,
        "ci_high": high,
        "margin": max(map(abs, read.distance.margin)),
        "p_holm": _trusted_p(decision.p_holm, read),
        "retrain_spread": read.contrast.spread,
        "note": _joined_clauses(sentence, *note, row["note"]),
    }
    return {**row, **shown}, needs


def _unknown_metrics(method: str, judgement: _Judged, coarse: set[str], saturated: set[str]) -> list[tuple[str, str]]:
    """Return (metric, reason) for each metric whose number is unknown or shows nothing, so that ``method`` cannot be
    shown to be within its margin.

    Three kinds of metrics are returned. First, metrics without a distance; for retraining, metrics of utility do not
    count, because retraining is their reference. Second, if the distance by any metric rests on a stated spread of
    retrained models, the metrics without a stated spread whose variation is unknown. Third, the ``saturated`` deciding
    metrics, if no other metric decides.

    Parameters
    ----------
    judgement
        The method's results.
    coarse
        Metrics that are too coarse to show equivalence, which do not count here.
    saturated
        Deciding metrics by which the method and retraining both lie at one end of the range.
    """
    reads, deciding = judgement.reads, judgement.reads_by(deciding=True)
    needless = coarse | judgement.utilities if method == RETRAIN else coarse
    unknown = [(metric, why) for metric, why in judgement.missing.items() if metric not in needless]
    if any(read.spread_note for read in reads.values()):
        unknown += [(m, sensitivity.NO_SPREAD) for m, r in reads.items() if r.variation_unknown and m not in coarse]
    if saturated and saturated | coarse >= set(deciding):
        unknown += [(metric, deciding[metric].saturated) for metric in sorted(saturated)]
    return unknown


def _joined_clauses(*notes: str) -> str:
    """Join notes, whose clauses are separated by semicolons, without empty and repeated clauses."""
    return "; ".join(dict.fromkeys(filter(None, "; ".join(notes).split("; "))))  # keys of a dict keep their order


def _class_in_state(method: str, verdict: str, scenario: Sensitivity) -> tuple[str, str]:
    """Return the class of a method, from its ``verdict`` and the state of its scenario, and a sentence on it, or "".

    A method whose models are broken is broken in every state, unless it is retraining or its control. Where no metric
    tells models before unlearning (`none`) from retrained ones, that state replaces all other classes. The sentence
    then says if the method differs from retraining nonetheless, unless the state points to a mistake (`FAR_NONE`).
    Where two groups of retrained models differ, that state replaces the classes of both, and of each method that is
    equivalent or inconclusive. Without `none` in the scenario (``has_none``), an equivalent method is inconclusive, and
    the sentence of all inconclusive methods says why. In all other cases the class is the verdict, without a sentence.
    """
    if verdict == decide.BROKEN and method not in (RETRAIN, CONTROL):
        return verdict, ""
    if scenario.state == decide.NOTHING_TO_FIND:
        differs = verdict in (decide.DISTINGUISHABLE, decide.OVER_UNLEARNED) and scenario.reason != sensitivity.FAR_NONE
        return scenario.state, scenario.reason + ("; the method differs from retraining nonetheless" if differs else "")
    alike = verdict in (decide.EQUIVALENT, decide.INCONCLUSIVE)
    if scenario.state == decide.YARDSTICKS_DISAGREE and (alike or method in (RETRAIN, CONTROL)):
        return scenario.state, scenario.reason
    if alike and not scenario.has_none:
        return decide.INCONCLUSIVE, sensitivity.NO_NONE
    return verdict, ""


def _rank_rows(judged: dict[str, _Judged], useless: set[str], *, draws: int, seed: int) -> list[dict[str, Any]]:
    """Return rows of the ranks that every method may have by each deciding metric; 1 = closest to retraining.

    The columns are metric, method, distance, best, worst, methods (how many are ranked) and ahead. A method's distance
    is the distance that stands for all attacks; its sign does not count. Only methods whose models correspond are
    ranked. A metric is skipped if fewer than two methods correspond, or if nothing shows how the models of any of them
    vary. The column ``ahead`` counts the methods that are proven to be closer, without references and ``useless``
    methods.

    Parameters
    ----------
    judged
        Method → results.
    useless
        Methods that failed or left broken models.
    draws, seed
        How many joint deviations are drawn, and the seed of these draws.
    """
    rows = []
    for metric in dict.fromkeys(name for judgement in judged.values() for name in judgement.reads_by(deciding=True)):
        reads = {method: judgement.reads[metric] for method, judgement in judged.items() if metric in judgement.reads}
        ranked = distances.corresponding({method: read.contrast for method, read in reads.items()})
        reads = {method: reads[method] for method in ranked}
        if len(reads) < 2 or all(read.variation_unknown for read in reads.values()):
            continue
        # Row k gives attack k the weight 1 and the others 0. The attacks are the same for all methods that are ranked.
        each_attack = np.eye(len(reads[ranked[0]].contrast.audited.names))
        together = distances.joint([(read.contrast, each_attack[read.chosen]) for read in reads.values()])
        assert together is not None  # the models correspond
        nearness = together.combined(np.diag(np.where(together.value < 0, 1.0, -1.0)))  # −|distance|
        rng = generator(seed, "comparisons", "ranks", metric)
        closer = rank_sets.proven(distances=nearness, rng=rng, draws=draws)  # [i, j]: i is proven closer than j
        best, worst = rank_sets.rank_ranges(closer)
        counted = np.array([method not in (NONE, RETRAIN, CONTROL, *useless) for method in reads])
        columns = together.value.tolist(), best, worst, closer[counted].sum(axis=0)
        rows += [
            {"metric": metric, "method": method, "distance": value, "best": int(first), "worst": int(last),
             "methods": len(reads), "ahead": int(ahead)}
            for method, value, first, last, ahead in zip(reads, *columns, strict=True)
        ]  # fmt: skip
    return rows
