"""Make the tables of verdicts, of ranks, and of the differences that a study can detect."""

import math
import re
from typing import Any

from unlearning_audit.comparisons import planning
from unlearning_audit.comparisons.planning import TRAINING_SEEDS
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import decisions
from unlearning_audit.report.decisions import Decisions, Judged
from unlearning_audit.report.tables import Entry, Head, Line, Sheet, interval, naming, number, words
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.stats import decide

#: Label of the line in which units are training seeds, and the models of a unit are unlearning seeds.
SEEDS_LABEL = "mean confidence, {}"
#: How a clause of a note begins that names a plan.
PLANNED = ("if the method is like retraining", "if its distance is")
#: The first heads of the table of verdicts.
HEADS = ("verdict", "removed", "distance", "factor", "by")


def record(judged: Judged, study: str, row: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a row of a study's csv: study, scenario and setting, and the ``columns`` of a ``row`` of a file of the
    comparison, such as verdicts.csv."""
    scenario, setting = judged.place
    return {"study": study, "scenario": scenario, "setting": setting, **{name: row[name] for name in columns}}


def verdicts(judgements: Decisions, study: str) -> Sheet:
    """Return the table of verdicts, with a line for each method of each scenario. The csv has the columns of the file
    verdicts.csv of a comparison."""
    lines, records = [], []
    for judged in judgements.places.values():
        for method in naming.ordered(judged.verdicts):
            lines.append(_line(judged, method))
            fields = record(judged, study, judged.verdicts[method], files.VERDICTS)
            records.append({**fields, "note": "; ".join(filter(None, (fields["note"], judged.extension(method))))})
    heads = (*HEADS, "p", "against none", "retain accuracy", "test accuracy")
    reading = f"{words.VERDICTS.format(family=words.FAMILIES[judgements.family])} {judgements.extensions()}".rstrip()
    return Sheet("verdicts", "Verdicts", reading, "method", [*map(Head, heads)], lines, records)


def _line(judged: Judged, method: str) -> Line:
    """Return the line of one method in the table of verdicts."""
    row, distance, distances = judged.verdicts[method], judged.main_distance(method), judged.by_metric(method)
    note = why(judged, method) or besides(judged, method)
    # The attack or metric of the distance, in parentheses if it finds nothing.
    by = "" if distance is None else distance["attack"].replace("_", " ") or decisions.label(distance["metric"])
    if by and not row["found_by"]:
        by = f"({by})"
    word = ": ".join(filter(None, (decisions.word(row), judged.condition(method))))
    p = "" if math.isnan(row["p_holm"]) else decisions.probability(row["p_holm"])
    reference = method in naming.BASELINES  # its share of traces removed has no meaning
    cells = (
        Entry(word, notes=(note,) if note else (), tone=words.state(row["verdict"]).tone),
        Entry("" if reference else decisions.share(row)), *_distance(distance), Entry(by),
        Entry(p.removeprefix("p ").removeprefix("= ")), Entry("" if reference else row["against_none"]),
        _gap(distances, "retain"), _gap(distances, "test"),
    )  # fmt: skip
    return Line(naming.method(method), cells, section=judged.label)


def why(judged: Judged, method: str) -> str:
    """Return why a method's verdict is open, what would decide it and at which cost; or why the method failed. "" for a
    verdict that is decided."""
    return "; ".join(_clauses(judged, method))


def decides(judged: Judged, method: str) -> str:
    """Return what would decide an open verdict and at which cost; if no plan is known that would, the reasons why it is
    open. "" for a verdict that is decided."""
    clauses = _clauses(judged, method)
    return "; ".join([clause for clause in clauses if clause.startswith(PLANNED)] or clauses)


def besides(judged: Judged, method: str) -> str:
    """Return the clause of a method's note on metrics that do not decide its verdict, but by which it differs from
    retraining; "" if there is no such clause."""
    clauses = _labelled(judged, method).split("; ")
    return "; ".join(clause for clause in clauses if clause.startswith(decide.BESIDES))


def _labelled(judged: Judged, method: str) -> str:
    """Return the note of a method's verdict, in which the names of metrics are replaced by the labels that tables
    show."""
    note, metrics = judged.verdicts[method]["note"], {item["metric"] for item in judged.distances}
    # Whole names only: none that is a part of a longer word or of a dotted name.
    whole = rf"(?<![\w.-])(?:{'|'.join(map(re.escape, metrics))})(?![\w-]|[.]\w)"
    return re.sub(whole, lambda match: decisions.label(match[0]), note) if metrics else note


def _clauses(judged: Judged, method: str) -> list[str]:
    """Return the reasons why a verdict is open, or why the method failed or its models diverged, and what would decide
    the verdict, as clauses of a sentence; [] if the verdict is decided.

    They are the clauses of the verdict's note. A clause that names plans (such as more pairs) ends with the time that
    the cheapest of these plans takes, if costs are known.
    """
    row = judged.verdicts[method]
    diverged = row["verdict"] == decide.BROKEN and math.isnan(row["distance"])
    if not diverged and row["verdict"] not in (decide.INCONCLUSIVE, decide.FAILED, *decide.STATES):
        return []
    plans = [need for need in judged.resolution if need["method"] == method and need["what"].startswith("decides_")]
    clauses = _merged(_labelled(judged, method).split("; ")) if row["note"] else []
    for i, clause in enumerate(clauses):
        named = [need for need in plans if re.search(rf"\b{re.escape(planning.size_phrase(need))}\b", clause)]
        hours = [judged.hours(need) for need in named if need["times"] > 1]
        known = [value for value in hours if not math.isnan(value)]
        if known and clause.startswith(PLANNED):
            clauses[i] += f", which takes about {duration(3600 * min(known))} more"
    return clauses


def _merged(clauses: list[str]) -> list[str]:
    """Merge the clauses on the upper and the lower limit of an interval into one on either limit, if both name the same
    plan. The other clauses are unchanged."""
    upper, lower, either = (f"if its distance is {end} limit" for end in ("the upper", "the lower", "either"))
    for clause in clauses:
        plan = clause.removeprefix(upper)
        if clause.startswith(upper) and lower + plan in clauses:
            return [either + plan if text == clause else text for text in clauses if text != lower + plan]
    return clauses


def _distance(distance: dict[str, Any] | None) -> tuple[Entry, Entry]:
    """Return two cells for the distance of a method (its row of distances.csv): as a difference, and as a factor. Only
    the cell that fits the metric's scale has text; without a distance, the first cell is "—"."""
    if distance is None:
        return Entry("—"), Entry("")
    text = interval(decisions.displayed(distance), decisions.decimals_of(distance))
    notes = (distance["note"],) if distance["note"] else ()
    if distance["scale"] == "difference":
        return Entry(text, notes), Entry("")
    return Entry(""), Entry(f"× {text}", notes)


def _gap(distances: dict[str, dict[str, Any]], role: str) -> Entry:
    """Return the cell of a method's accuracy or perplexity on the samples of ``role`` (retain or test), compared with
    retraining; "" if it was not measured. ``distances``: metric → its row."""
    names = (name for name in words.UTILITY if name in distances and role in name)
    return Entry(next((decisions.gained(distances[name]) for name in names), ""))


def ranks(judgements: Decisions, study: str) -> Sheet:
    """Return the table of the ranks that methods may have: a line for each method and deciding metric, a section for
    each scenario."""
    lines, records = [], []
    for judged in judgements.places.values():
        for row in sorted(judged.ranks, key=lambda row: (row["metric"], row["best"] + row["worst"])):
            cells = Entry(decisions.rank(row)), Entry(decisions.label(row["metric"]))
            lines.append(Line(naming.method(row["method"]), cells, section=judged.label))
        records += [record(judged, study, row, files.RANKS) for row in judged.ranks]
    heads = Head("rank"), Head("by")
    return Sheet("ranks", "Ranks with confidence", words.RANKS, "method", heads, lines, records)


def resolution(judgements: Decisions, study: str) -> Sheet:
    """Return the table of the differences that a study can detect: a line for each metric of each scenario on which
    verdicts rest.

    The errors of one method (`representative`) stand for those of all methods. A metric that varies only with training
    seeds has a line for each method, because seeds matter more to some methods than to others.
    """
    lines, records = [], []
    for judged in judgements.places.values():
        rows = judged.resolution
        of_seeds = {row["metric"] for row in rows if row["unit"] == TRAINING_SEEDS}
        shown = {row["metric"] for row in judged.distances if row["deciding"]} | of_seeds
        records += [record(judged, study, row, files.RESOLUTION) for row in rows]
        for metric in dict.fromkeys(row["metric"] for row in rows if row["metric"] in shown):
            of_metric = [row for row in rows if row["metric"] == metric]
            line_of = {representative(of_metric): decisions.label(metric)}  # method → label of its line
            if metric in of_seeds:
                line_of = {row["method"]: SEEDS_LABEL.format(naming.method(row["method"])) for row in rows}
            for method, name in line_of.items():
                plans = {(row["what"], row["times"]): row for row in of_metric if row["method"] == method}
                if plans:
                    lines.append(Line(name, _plans(plans), section=judged.label))
    heads = ("units", "models", "samples", "margin")
    columns = (*map(Head, heads), *(Head(name, "half-width (least distance)") for name in PLANS))
    return Sheet("resolution", "Resolution", words.RESOLUTION, "metric", columns, lines, records)


def _plans(plans: dict[tuple[str, float], dict[str, Any]]) -> tuple[Entry, ...]:
    """Return the cells of one line of the table of resolution: units, models, samples and margin today, then today's
    half-width (and least distance) and those under each plan with more units or models; "" where they are unknown.

    ``plans``: (what is increased, how many times) → row of resolution.csv.
    """
    today = plans["today", 1.0]
    margin = today["margin"]
    resolved = []
    for unit, times in PLANS.values():
        plan = plans.get((unit, times))
        # One unit does not show how units vary, and one model for each unit does not show how models vary.
        known = times == 1 or today["units"] > 1 or (unit == "models" and today["models"] > 1)
        half_width, least = (number(plan[name], places=3) if plan else "" for name in ("half_width", "least_distance"))
        resolved.append(f"{half_width} ({least})" if plan and known else "")
    return tuple(map(Entry, (
        naming.count(int(today["units"]), today["unit"].removesuffix("s")), f"{today['models']:g}",
        f"{today['samples']:g}" if today["samples"] else "",
        "" if math.isnan(margin) else number(margin, decisions.decimals_of_margin(margin)), *resolved,
    )))  # fmt: skip


#: Column of the table of resolution → what is increased, and how many times.
PLANS = {"today": ("today", 1.0), "4× units": ("pairs", 4.0), "16× units": ("pairs", 16.0),
         "4× models": ("models", 4.0)}  # fmt: skip


def representative(rows: list[dict[str, Any]]) -> str:
    """Return the method whose errors represent those of all: the retrained control, else retraining, else the first.
    ``rows``: the rows of resolution.csv, of which the rows on the models of today name the methods."""
    methods: list[str] = [row["method"] for row in rows if row["what"] == "today"]
    return next(name for name in ("retrain_control", "retrain", *methods) if name in methods)
