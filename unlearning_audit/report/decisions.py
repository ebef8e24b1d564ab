"""The verdicts of a study as its tables, sentences and figures read them."""

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


#: Codes that say of retraining no more than that there is no second retraining.
UNDECIDED = (decide.INCONCLUSIVE, decide.NO_YARDSTICK)


def word(row: dict[str, Any]) -> str:
    """A verdict's word; retraining has none where nothing is left to compare it with."""
    alone = row["method"] == "retrain" and math.isnan(row["distance"]) and row["verdict"] in UNDECIDED
    return words.REFERENCE if alone else words.state(row["verdict"]).word


def reason(row: dict[str, Any]) -> str:
    """Why a verdict's code has no state of its own, in a few words; "" where it has."""
    undecided = row["note"] == f"{sensitivity.NO_DISTANCE}{sensitivity.NOTHING_DECIDES}"
    if row["verdict"] == decide.NOTHING_TO_FIND and row["note"].startswith(sensitivity.TOO_FEW):
        return words.REASONS[decide.INCONCLUSIVE]  # what doing nothing leaves was not shown
    return words.UNDECIDED if undecided else words.REASONS.get(row["verdict"], "")


@dataclass
class Decisions:
    """``verdicts``, by place and method; ``distances``, ``ranks`` and ``resolution``, the rows of each place;
    ``spent``, seconds that a method took at a place, with the retrained models and originals it needs; ``family``:
    "scenario" or "study", the family of tests whose error rate is 5 %; ``extended``: places that were judged before on
    fewer pairs, and extended without a plan: ``unit``, the earlier sizes (``from``), the present size (``to``), and the
    ``methods`` that were judged then, if not all were."""

    verdicts: dict[Place, dict[str, dict[str, Any]]] = field(default_factory=dict)
    distances: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    ranks: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    resolution: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    spent: dict[tuple[Place, str], float] = field(default_factory=dict)
    family: str = "scenario"
    extended: dict[Place, dict[str, Any]] = field(default_factory=dict)

    def extension(self, where: Place, method: str = "") -> str:
        """That a scenario was extended without a plan, and what follows, in a clause; "" of any other, and of a
        ``method`` that was not judged before."""
        growth = self.extended.get(where)
        if not growth or (method and method not in growth.get("methods", (method,))):
            return ""
        return words.EXTENDED.format(sizes=" and ".join(map(str, growth["from"])), to=growth["to"], unit=growth["unit"])

    def extensions(self) -> str:
        """`extension` of all scenarios in a sentence; "" if there is none."""
        places: dict[str, list[str]] = {}
        for where in self.extended:
            judged = ", ".join(map(naming.method, self.extended[where].get("methods", ())))
            label = lookup.label(where) + (f" ({judged})" if judged else "")
            places.setdefault(self.extension(where), []).append(label)
        scenarios_of = {
            clause: ", ".join(names) if len(names) <= 3 else f"{len(names)} scenarios"
            for clause, names in places.items()
        }
        return " ".join(f"{names}: {clause}." for clause, names in scenarios_of.items())

    def verdict(self, where: Place, method: str) -> dict[str, Any] | None:
        """The line of verdicts.csv on a method, or None."""
        return self.verdicts.get(where, {}).get(method)

    def of(self, where: Place, method: str) -> dict[str, dict[str, Any]]:
        """The distances of a method by metric."""
        return {row["metric"]: row for row in self.distances.get(where, []) if row["method"] == method}

    def main_distance(self, where: Place, method: str) -> dict[str, Any] | None:
        """The distance that speaks in a method's verdict, with the interval that the verdict rests on, or None."""
        verdict = self.verdict(where, method)
        if verdict is None:
            return None
        proven = verdict["verdict"] == decide.EQUIVALENT
        ends = ("inner_low", "inner_high") if proven else ("ci_low", "ci_high")
        interval = verdict["distance"], verdict["ci_low"], verdict["ci_high"]
        for row in self.of(where, method).values():
            if row["deciding"] and (row["distance"], row[ends[0]], row[ends[1]]) == interval:
                limits = {"ci_low": interval[1], "ci_high": interval[2]}
                note = "; ".join(filter(None, (decide.INNER, row["note"])))
                return {**row, **limits, "note": note} if proven else row
        return None

    def condition(self, where: Place, method: str) -> str:
        """What a verdict hangs on where one model is retrained: the spread of such models that is given; or the
        distance from this one, and the spread by which it is chance."""
        verdict, measured = self.verdict(where, method), self.main_distance(where, method)
        clause = sensitivity.condition(verdict["note"]) if verdict else ""
        lone = clause.startswith(sensitivity.BY_CHANCE)
        return f"{distance(measured, words.LONE)}, {clause}" if lone and measured is not None else clause

    def ranking(self, where: Place) -> list[dict[str, Any]]:
        """Return the rows of ranks.csv of a comparison for its first deciding metric. Reference methods, and methods
        without a usable model, are left out."""
        rows = self.ranks.get(where, [])
        useless = (decide.BROKEN, decide.FAILED)
        return [
            row
            for row in rows
            if row["metric"] == rows[0]["metric"]
            and row["method"] not in naming.BASELINES
            and (self.verdict(where, row["method"]) or {"verdict": decide.FAILED})["verdict"] not in useless
        ]

    def leaders(self, where: Place) -> list[str]:
        """Methods than which none is proven to be nearer to retraining, if another is proven to be further away."""
        ranking = self.ranking(where)
        first = [row["method"] for row in ranking if row["ahead"] == 0]
        return first if len(first) < len(ranking) else []

    def hours(self, where: Place, method: str, need: dict[str, Any]) -> float:
        """Hours that a plan (a row of resolution.csv) takes more than what there is; NaN where costs are unknown, as
        those of models from elsewhere are."""
        return float((self.spent.get((where, method)) or math.nan) * (need["times"] - 1) / 3600)


def read(order: list[dict[str, Any]], ledger: list[dict[str, Any]] | tuple[()] = ()) -> Decisions:
    """Read the comparisons of ``order`` (scenario, setting, methods, the paths of the four tables, the family of tests,
    and of each method the specs of the jobs that made its models); ``ledger`` as `cost.read` gives it."""
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


def models(comparison: dict[str, Any]) -> list[tuple[str, str]]:
    """The jobs that made the models of a comparison (as in `read`), each once."""
    return list(dict.fromkeys(tuple(node) for nodes in comparison["made"].values() for node in nodes))


def label(metric: str) -> str:
    """A metric's name in a verdict."""
    return words.UTILITY.get(metric) or naming.meaning(metric).display_name


def tone(row: dict[str, Any]) -> str:
    """The tone of its state."""
    return words.state(row["verdict"]).tone


def distinguishable(row: dict[str, Any] | None) -> bool | None:
    """Whether a method is distinguishable from retraining; None where nothing is known."""
    return None if row is None or math.isnan(row["p_holm"]) else row["p_holm"] <= decide.ALPHA


def size(row: dict[str, Any]) -> Cell:
    """A distance as a number that people read: a difference, or how many times retraining's value."""
    value, low, high = row["distance"], row["ci_low"], row["ci_high"]
    if row["scale"] == "log":
        return Cell(math.exp(value), math.exp(low), math.exp(high))
    return Cell(1 - value, 1 - high, 1 - low) if row["scale"] == "ratio" else Cell(value, low, high)


def distance(row: dict[str, Any], source: str = "retraining") -> str:
    """ "0.30 [0.26, 0.34] from retraining"."""
    cell = size(row)
    text = interval(cell, digits(row))
    end = {"log": " times retraining's", "ratio": " instead of 1"}
    return text + end.get(row["scale"], f" from {source}")


def margin(row: dict[str, Any]) -> str:
    """ "0.05", or "a factor of 1.25"."""
    text = number(_margin(row), digits(row))
    return text if row["scale"] == "difference" else f"a factor of {text}"


def _margin(row: dict[str, Any]) -> float:
    near, far = row["margin_near"], -row["margin_far"]
    if row["scale"] == "difference":
        return float(near)
    return math.exp(near) if row["scale"] == "log" else 1 + max(near, far)


def digits(row: dict[str, Any]) -> int:
    """Decimals of a distance and of its margin: the same, so that what lies within the margin is printed so."""
    cell, margin = size(row), _margin(row)
    return max(decimals([cell]), places(margin - (row["scale"] != "difference")))


def places(margin: float) -> int:
    """The decimals, at least 2, that give a margin to within a tenth of it."""
    if not (math.isfinite(margin) and margin > 0):
        return 2
    return next(digits for digits in itertools.count(2) if abs(round(margin, digits) - margin) <= 0.1 * margin)


def share(row: dict[str, Any]) -> str:
    """ "48 % [40, 55]"; "" where it is undefined."""
    if math.isnan(row["share_closed"]):
        return ""
    value, low, high = (number(100 * row[name], 0) for name in ("share_closed", "share_low", "share_high"))
    return f"{value} %" if math.isnan(row["share_low"]) else f"{value} % [{low}, {high}]"


def loss(judgements: Decisions, place: Place, method: str) -> str:
    """The largest loss of use that is beyond its margin and beyond chance, as "−5 points of retain accuracy" or "× 1.4
    retain perplexity"; else ""."""
    gaps = [row for name, row in judgements.of(place, method).items() if name in words.UTILITY]
    beyond = [row for row in gaps if row["ci_low"] > 0 and not row["distance"] <= row["margin_near"]]
    if not beyond or method in naming.BASELINES:
        return ""
    worst = max(beyond, key=lambda row: row["distance"])
    if worst["scale"] == "log":
        return f"× {number(math.exp(worst['distance']), 2)} {label(worst['metric'])}"
    return f"−{number(100 * worst['distance'], 0)} points of {label(worst['metric'])}"


def gained(row: dict[str, Any]) -> str:
    """Utility against retraining: "+2.1" points, or "× 1.13" of a perplexity."""
    if row["scale"] == "log":
        return f"× {number(math.exp(row['distance']), 2)}"
    return words.signed(-100 * row["distance"])


def probability(p: float) -> str:
    """ "p = 0.003" or "p < 10⁻⁴", below which nobody knows a probability; "not tested" where there is none. Two digits,
    or as many as tell it from α."""
    if math.isnan(p):
        return "not tested"
    if p <= decide.LEAST_P:
        return "p < 10⁻⁴"
    texts = (f"{p:.{digits}g}" for digits in range(2, 18))
    return "p = " + next(text for text in texts if np.sign(float(text) - decide.ALPHA) == np.sign(p - decide.ALPHA))


def source(row: dict[str, Any]) -> str:
    """ "advantage (kde, unlearned)"."""
    return label(row["metric"]) + (f" ({row['attack'].replace('_', ' ').replace('/', ', ')})" if row["attack"] else "")
