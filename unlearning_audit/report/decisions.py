"""Read the verdicts of a study for tables, sentences and figures."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unlearning_audit.comparisons import sensitivity
from unlearning_audit.evaluation import verdicts as files
from unlearning_audit.report import lookup, naming, words
from unlearning_audit.report.lookup import Cell
from unlearning_audit.report.tables.typeset import decimals, interval, number
from unlearning_audit.stats import decide

#: Scenario and axis setting.
Place = tuple[str, str]


#: Codes that retraining gets if there is no second retraining to compare it with.
UNDECIDED = (decide.INCONCLUSIVE, decide.NO_YARDSTICK)


def word(row: dict[str, Any]) -> str:
    """Return the word for a verdict; "the reference" for retraining that cannot be compared with a second
    retraining."""
    alone = row["method"] == "retrain" and math.isnan(row["distance"]) and row["verdict"] in UNDECIDED
    return words.REFERENCE if alone else words.state(row["verdict"]).word


def reason(row: dict[str, Any]) -> str:
    """Return in a few words why nothing can be concluded from a row of verdicts; "" if something can."""
    undecided = row["note"] == f"{sensitivity.NO_DISTANCE}{sensitivity.NOTHING_DECIDES}"
    if row["verdict"] == decide.NOTHING_TO_FIND and row["note"].startswith(sensitivity.TOO_FEW):
        return words.REASONS[decide.INCONCLUSIVE]  # it was not shown that doing nothing leaves traces
    return words.UNDECIDED if undecided else words.REASONS.get(row["verdict"], "")


@dataclass
class Decisions:
    """The verdicts of a study and the numbers they rest on. A place is a scenario and a setting of its axes.

    ``verdicts``: place → method → row; ``distances``, ``ranks`` and ``resolution``: the rows of each place; ``spent``:
    seconds for the models that a method needs at a place, retrained and original ones included; ``family``: "scenario"
    or "study", the family of tests whose error rate is 5 %; ``extended``: places that were judged before on fewer
    pairs, and extended without a plan: ``unit``, the earlier sizes (``from``), the present size (``to``), and the
    ``methods`` that were judged then, if not all were.
    """

    verdicts: dict[Place, dict[str, dict[str, Any]]] = field(default_factory=dict)
    distances: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    ranks: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    resolution: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    spent: dict[tuple[Place, str], float] = field(default_factory=dict)
    family: str = "scenario"
    extended: dict[Place, dict[str, Any]] = field(default_factory=dict)

    def extension(self, where: Place, method: str = "") -> str:
        """Return a clause that says that a scenario was extended without a plan, and what follows.

        "" for a scenario that was not extended, and for a ``method`` that was not judged before.
        """
        growth = self.extended.get(where)
        if not growth or (method and method not in growth.get("methods", (method,))):
            return ""
        return words.EXTENDED.format(sizes=" and ".join(map(str, growth["from"])), to=growth["to"], unit=growth["unit"])

    def extensions(self) -> str:
        """Return a sentence that names all scenarios that were extended without a plan; "" if there is none."""
        places: dict[str, list[str]] = {}  # clause about the extension → the scenarios of which it is true
        for where, growth in self.extended.items():
            judged = ", ".join(map(naming.method, growth.get("methods", ())))
            label = lookup.label(where) + (f" ({judged})" if judged else "")
            places.setdefault(self.extension(where), []).append(label)
        named = {clause: ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} scenarios"
                 for clause, labels in places.items()}  # fmt: skip
        return " ".join(f"{labels}: {clause}." for clause, labels in named.items())

    def verdict(self, where: Place, method: str) -> dict[str, Any] | None:
        """Return the row of verdicts.csv for a method; None if there is none."""
        return self.verdicts.get(where, {}).get(method)

    def of(self, where: Place, method: str) -> dict[str, dict[str, Any]]:
        """Return metric → distance of a method."""
        return {row["metric"]: row for row in self.distances.get(where, []) if row["method"] == method}

    def main_distance(self, where: Place, method: str) -> dict[str, Any] | None:
        """Return the distance on which a method's verdict rests, with the interval that the verdict uses; None if there
        is none."""
        verdict = self.verdict(where, method)
        if verdict is None:
            return None
        proven = verdict["verdict"] == decide.EQUIVALENT
        ends = ("inner_low", "inner_high") if proven else ("ci_low", "ci_high")
        interval = verdict["distance"], verdict["ci_low"], verdict["ci_high"]
        # The row that has the verdict's own distance and interval is the one on which it rests.
        for row in self.of(where, method).values():
            if row["deciding"] and (row["distance"], row[ends[0]], row[ends[1]]) == interval:
                limits = {"ci_low": interval[1], "ci_high": interval[2]}
                note = "; ".join(filter(None, (decide.INNER, row["note"])))
                return {**row, **limits, "note": note} if proven else row
        return None

    def condition(self, where: Place, method: str) -> str:
        """Return the assumption on which a verdict rests if there is one retrained model; "" otherwise.

        It is the spread of retrained models that the study states. Without one, it is the distance from this model, and
        the spread at which that distance would be chance.
        """
        verdict, measured = self.verdict(where, method), self.main_distance(where, method)
        clause = sensitivity.condition(verdict["note"]) if verdict else ""
        lone = clause.startswith(sensitivity.BY_CHANCE)
        return f"{distance(measured, words.LONE)}, {clause}" if lone and measured is not None else clause

    def ranking(self, where: Place) -> list[dict[str, Any]]:
        """Return the rows of ranks.csv of a comparison for its first deciding metric. Reference methods, and methods
        without a usable model, are left out."""
        rows, verdicts = self.ranks.get(where, []), self.verdicts.get(where, {})
        usable = {name for name, row in verdicts.items() if row["verdict"] not in (decide.BROKEN, decide.FAILED)}
        usable -= set(naming.BASELINES)
        return [row for row in rows if row["metric"] == rows[0]["metric"] and row["method"] in usable]

    def leaders(self, where: Place) -> list[str]:
        """Return the methods that may be nearest to retraining: no other method is proven to be nearer. [] if that
        holds for all."""
        ranking = self.ranking(where)
        first = [row["method"] for row in ranking if row["ahead"] == 0]
        return first if len(first) < len(ranking) else []

    def hours(self, where: Place, method: str, need: dict[str, Any]) -> float:
        """Return the hours that a plan takes beyond the hours spent; NaN if costs are unknown, as for imported models.
        ``need``: the plan, a row of resolution.csv."""
        return float((self.spent.get((where, method)) or math.nan) * (need["times"] - 1) / 3600)


def read(order: list[dict[str, Any]], ledger: list[dict[str, Any]] | tuple[()] = ()) -> Decisions:
    """Read the verdicts, distances, ranks and resolution of all comparisons of a study from their files.

    ``order``: for each comparison its scenario, setting and methods, the paths of its four tables, the family of tests,
    and for each method the jobs that made its models. ``ledger``: the seconds of each job, as `cost.read` returns them;
    without it, costs are unknown.
    """
    seconds = {(row["stage"], row["node"]): row["seconds"] for row in ledger}
    decisions = Decisions()
    for comparison in order:
        where = comparison["scenario"], comparison["setting"]
        rows = {row["method"]: row for row in files.read(comparison["verdicts"], files.VERDICTS)}
        decisions.verdicts[where] = {method: rows[method] for method in comparison["methods"]}
        decisions.distances[where] = files.read(comparison["distances"], files.DISTANCES)
        decisions.ranks[where] = files.read(comparison["ranks"], files.RANKS)
        decisions.family = comparison.get("family", decisions.family)
        if comparison.get("extended"):
            decisions.extended[where] = comparison["extended"]
        decisions.resolution[where] = files.read(comparison["resolution"], files.RESOLUTION)
        if ledger:
            for method, nodes in comparison["made"].items():
                decisions.spent[where, method] = sum(seconds[tuple(node)] for node in nodes)
    return decisions


def label(metric: str) -> str:
    """Return a metric's name in a verdict."""
    return words.UTILITY.get(metric) or naming.meaning(metric).display_name


def size(row: dict[str, Any]) -> Cell:
    """Return the distance of a row, with its interval, on the scale that reports show.

    On a log scale, it is a multiple of retraining's value; on a ratio scale, the value whose ideal is 1; otherwise the
    difference.
    """
    value, low, high = row["distance"], row["ci_low"], row["ci_high"]
    if row["scale"] == "log":
        return Cell(math.exp(value), math.exp(low), math.exp(high))
    return Cell(1 - value, 1 - high, 1 - low) if row["scale"] == "ratio" else Cell(value, low, high)


def distance(row: dict[str, Any], source: str = "retraining") -> str:
    """Return the distance of a row in words: "0.30 [0.26, 0.34] from retraining", "1.4 [1.2, 1.6] times retraining's",
    or "0.7 [0.6, 0.8] instead of 1".

    ``source``: from what a difference is measured.
    """
    end = {"log": " times retraining's", "ratio": " instead of 1"}
    return interval(size(row), digits(row)) + end.get(row["scale"], f" from {source}")


def margin(row: dict[str, Any]) -> str:
    """Return the margin of a distance in words: "0.05", or "a factor of 1.25"."""
    text = number(_margin(row), digits(row))
    return text if row["scale"] == "difference" else f"a factor of {text}"


def _margin(row: dict[str, Any]) -> float:
    """Return the margin of a distance on the scale that reports show: a difference, or else a factor.

    ``row`` of distances.csv: distances from ``margin_far`` < 0 to ``margin_near`` > 0 count as equivalent. The two are
    equally far from 0, except on the scale "ratio", where they are 1/m − 1 and m − 1 for the factor m, or 1 − m and 1 −
    1/m.
    """
    near, far = row["margin_near"], -row["margin_far"]
    if row["scale"] == "ratio":
        return float(1 + max(near, far))
    return math.exp(near) if row["scale"] == "log" else float(near)


def digits(row: dict[str, Any]) -> int:
    """Return the decimals of a distance and of its margin, the same for both, so that rounding does not hide which is
    larger."""
    cell, margin = size(row), _margin(row)
    # Of a factor, the part above 1 has to be resolved: 1 is subtracted unless the margin is a difference.
    return max(decimals([cell]), places(margin - (row["scale"] != "difference")))


def places(margin: float) -> int:
    """Return the fewest decimals, at least 2, that give a margin to within a tenth of its size."""
    if not (math.isfinite(margin) and margin > 0):
        return 2
    return next(digits for digits in itertools.count(2) if abs(round(margin, digits) - margin) <= 0.1 * margin)


def share(row: dict[str, Any]) -> str:
    """Return the share of traces removed, with its interval: "48 % [40, 55]"; "" if it is undefined."""
    if math.isnan(row["share_closed"]):
        return ""
    value, low, high = (number(100 * row[name], 0) for name in ("share_closed", "share_low", "share_high"))
    return f"{value} %" if math.isnan(row["share_low"]) else f"{value} % [{low}, {high}]"


def loss(judgements: Decisions, place: Place, method: str) -> str:
    """Return the largest loss of utility that is significant and larger than its margin; "" if there is none, and for
    references (none, retrain, …).

    For example "−5 points of retain accuracy" or "× 1.4 retain perplexity".
    """
    gaps = [row for name, row in judgements.of(place, method).items() if name in words.UTILITY]
    beyond = [row for row in gaps if row["ci_low"] > 0 and not row["distance"] <= row["margin_near"]]
    if not beyond or method in naming.BASELINES:
        return ""
    worst = max(beyond, key=lambda row: row["distance"])
    if worst["scale"] == "log":
        return f"× {number(math.exp(worst['distance']), 2)} {label(worst['metric'])}"
    return f"−{number(100 * worst['distance'], 0)} points of {label(worst['metric'])}"


def gained(row: dict[str, Any]) -> str:
    """Return how a row's utility compares with retraining: "+2.1" points of accuracy, or "× 1.13" for a perplexity."""
    if row["scale"] == "log":
        return f"× {number(math.exp(row['distance']), 2)}"
    return words.signed(-100 * row["distance"])


def rank(row: dict[str, Any]) -> str:
    """Return the ranks that a method may have, from a row of ranks.csv: "2 of 6", or "1–3 of 6"."""
    best, worst = int(row["best"]), int(row["worst"])
    return f"{best if best == worst else f'{best}–{worst}'} of {int(row['methods'])}"


def probability(p: float) -> str:
    """Return a p-value as text: "p = 0.003", "p < 10⁻⁴" if it is smaller than can be resolved, or "not tested" for NaN.

    It has two digits, or as many as show whether it is below α.
    """
    if math.isnan(p):
        return "not tested"
    if p <= decide.LEAST_P:
        return "p < 10⁻⁴"
    texts = (f"{p:.{digits}g}" for digits in range(2, 18))
    return "p = " + next(text for text in texts if np.sign(float(text) - decide.ALPHA) == np.sign(p - decide.ALPHA))


def source(row: dict[str, Any]) -> str:
    """Return the metric of a distance with its attack: "advantage (kde, unlearned)"."""
    return label(row["metric"]) + (f" ({row['attack'].replace('_', ' ').replace('/', ', ')})" if row["attack"] else "")
