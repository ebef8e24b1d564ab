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


#: Codes of the verdict that retraining gets if there is no second retraining to compare it with.
UNDECIDED = (decide.INCONCLUSIVE, decide.NO_YARDSTICK)


def word(row: dict[str, Any]) -> str:
    """Return the word for the verdict in a ``row`` of verdicts.csv; "the reference" for retraining that cannot be
    compared with a second retraining."""
    unpaired = row["method"] == "retrain" and math.isnan(row["distance"]) and row["verdict"] in UNDECIDED
    return words.REFERENCE if unpaired else words.state(row["verdict"]).word


def reason(row: dict[str, Any]) -> str:
    """Return in a few words why nothing can be concluded from a row of verdicts; "" if something can be concluded.

    The code of the verdict gives the reason (`words.REASONS`). Two reasons are recognised by the row's note instead:
    too few models to show that doing nothing leaves traces, and no metric that decides.
    """
    if row["verdict"] == decide.NOTHING_TO_FIND and row["note"].startswith(sensitivity.TOO_FEW):
        return words.REASONS[decide.INCONCLUSIVE]
    if row["note"] == f"{sensitivity.NO_DISTANCE}{sensitivity.NOTHING_DECIDES}":
        return words.UNDECIDED
    return words.REASONS.get(row["verdict"], "")


@dataclass
class Judged:
    """The verdicts in one scenario and setting (its ``place``), and the numbers on which they rest.

    Parameters
    ----------
    verdicts
        Method → row of verdicts.csv.
    distances, ranks, resolution
        The rows of the other three tables of the comparison.
    spent
        Method → seconds for the models that its verdict needs, retrained and original ones included; {} if costs are
        unknown.
    extended
        {} unless there was an earlier verdict on fewer pairs, and pairs were added without a plan. Then it has ``unit``
        (what the sizes count), the earlier sizes (``from``), the present size (``to``), and the ``methods`` that had an
        earlier verdict, if not all methods had one.
    """

    place: Place
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    distances: list[dict[str, Any]] = field(default_factory=list)
    ranks: list[dict[str, Any]] = field(default_factory=list)
    resolution: list[dict[str, Any]] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    extended: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The scenario and setting as readers see them."""
        return lookup.label(self.place)

    @property
    def compared(self) -> list[str]:
        """The methods with a verdict, without references (none, retrain, …)."""
        return [method for method in self.verdicts if method not in naming.BASELINES]

    def extension(self, method: str = "") -> str:
        """Return a clause that says that the scenario was extended without a plan, so that more verdicts may be wrong.

        Without ``method``, the clause is about the whole scenario. The result is "" for a scenario that was not
        extended, and for a ``method`` that was not judged before the extension.
        """
        growth = self.extended
        # Without "methods", all methods were judged before.
        if not growth or (method and "methods" in growth and method not in growth["methods"]):
            return ""
        return words.EXTENDED.format(sizes=" and ".join(map(str, growth["from"])), to=growth["to"], unit=growth["unit"])

    def by_metric(self, method: str) -> dict[str, dict[str, Any]]:
        """Return metric → row of distances.csv, for one method."""
        return {row["metric"]: row for row in self.distances if row["method"] == method}

    def main_distance(self, method: str) -> dict[str, Any] | None:
        """Return the row of distances.csv on which a method's verdict rests; None if there is none.

        It is the row of a deciding metric that has the same distance and interval as the verdict. The interval of the
        verdict "equivalent" is that of the two one-sided tests, the columns ``inner_low`` and ``inner_high`` of the
        row. The row is then returned with this interval as ``ci_low`` and ``ci_high``, and its note says so.
        """
        verdict = self.verdicts.get(method)
        if verdict is None:
            return None
        equivalent = verdict["verdict"] == decide.EQUIVALENT
        low, high = ("inner_low", "inner_high") if equivalent else ("ci_low", "ci_high")
        wanted = (verdict["distance"], verdict["ci_low"], verdict["ci_high"])
        for row in self.by_metric(method).values():
            if row["deciding"] and (row["distance"], row[low], row[high]) == wanted:
                note = "; ".join(filter(None, (decide.INNER, row["note"])))
                inner = {"ci_low": row[low], "ci_high": row[high], "note": note}
                return {**row, **inner} if equivalent else row
        return None

    def condition(self, method: str) -> str:
        """Return the assumption on which a method's verdict rests if there is only one retrained model; "" if there are
        more.

        The assumption is how much retrained models vary, if the study states it. If the study states nothing, the
        result is the distance from the one retrained model, and how much retrained models would have to vary for such a
        distance to arise by chance. "" also without a verdict.
        """
        verdict, measured = self.verdicts.get(method), self.main_distance(method)
        clause = sensitivity.condition(verdict["note"]) if verdict else ""
        if clause.startswith(sensitivity.BY_CHANCE) and measured is not None:
            return f"{distance(measured, words.LONE)}, {clause}"
        return clause

    def ranking(self) -> list[dict[str, Any]]:
        """Return the rows of ranks.csv for the first deciding metric. References, and methods that failed or whose
        models are broken, are left out."""
        damaged = (decide.BROKEN, decide.FAILED)
        usable = [method for method in self.compared if self.verdicts[method]["verdict"] not in damaged]
        # The rows of the first deciding metric stand first.
        return [row for row in self.ranks if row["metric"] == self.ranks[0]["metric"] and row["method"] in usable]

    def leaders(self) -> list[str]:
        """Return the methods that may be nearest to retraining: those for which no other method is proven to be nearer
        (``ahead``, the number of methods proven to be nearer, is 0). [] if this is so for all methods, because then
        none stands out."""
        ranking = self.ranking()
        first = [row["method"] for row in ranking if row["ahead"] == 0]
        return first if len(first) < len(ranking) else []

    def hours(self, need: dict[str, Any]) -> float:
        """Return the hours that a plan for a method takes beyond the hours already spent; NaN if costs are unknown or
        0, as for imported models. ``need``: the plan, a row of resolution.csv, whose column ``times`` says by what
        factor the number of models grows."""
        return float((self.spent.get(need["method"]) or math.nan) * (need["times"] - 1) / 3600)


@dataclass
class Decisions:
    """The verdicts of a study. ``places``: (scenario, setting) → the verdicts there. ``family``: "scenario" or "study",
    the family of tests whose error rate is 5 %."""

    places: dict[Place, Judged] = field(default_factory=dict)
    family: str = "scenario"

    def at(self, place: Place) -> Judged:
        """Return the verdicts in a scenario and setting (``place``), without any if nothing was compared there."""
        return self.places.get(place) or Judged(place)

    def extensions(self) -> str:
        """Return sentences that say which scenarios were extended without a plan; "" if none was.

        Scenarios that were extended between the same sizes share a sentence, which names up to three scenarios; four or
        more are only counted. If only some methods of a scenario were judged before its extension, they stand after its
        name.
        """
        labels_of: dict[str, list[str]] = {}  # clause about the extension → the scenarios for which it holds
        for judged in self.places.values():
            if clause := judged.extension():
                methods = ", ".join(map(naming.method, judged.extended.get("methods", ())))
                labels_of.setdefault(clause, []).append(judged.label + (f" ({methods})" if methods else ""))
        return " ".join(
            f"{', '.join(labels) if len(labels) <= 3 else f'{len(labels)} scenarios'}: {clause}."
            for clause, labels in labels_of.items()
        )


def read(order: list[dict[str, Any]], ledger: list[dict[str, Any]] | tuple[()] = ()) -> Decisions:
    """Read the verdicts, distances, ranks and resolution of all comparisons of a study from their files.

    Parameters
    ----------
    order
        For each comparison: scenario, setting and methods, the paths of the four tables, the ``family`` of tests, how
        the comparison was ``extended``, and ``made``, method → the jobs that made its models, each as (stage, name).
    ledger
        A row for each job, with its stage, its name (``node``) and its ``seconds``; without rows, costs are unknown.
    """
    seconds = {(row["stage"], row["node"]): row["seconds"] for row in ledger}
    decisions = Decisions()
    for comparison in order:
        place = lookup.place(comparison)
        rows = {row["method"]: row for row in files.read(comparison["verdicts"], files.VERDICTS)}
        made = comparison["made"].items() if ledger else ()
        decisions.places[place] = Judged(
            place,
            verdicts={method: rows[method] for method in comparison["methods"]},
            distances=files.read(comparison["distances"], files.DISTANCES),
            ranks=files.read(comparison["ranks"], files.RANKS),
            resolution=files.read(comparison["resolution"], files.RESOLUTION),
            spent={method: sum(seconds[tuple(node)] for node in nodes) for method, nodes in made},
            extended=comparison.get("extended") or {},
        )
        decisions.family = comparison.get("family", decisions.family)
    return decisions


def label(metric: str) -> str:
    """Return the name of a metric as verdicts and tables show it."""
    return words.UTILITY.get(metric) or naming.meaning(metric).display_name


def displayed(row: dict[str, Any]) -> Cell:
    """Return the distance of a row of distances.csv, with its interval, as reports show it.

    The row's ``scale`` decides. On the scale "log", it is shown as a multiple of retraining's value. On the scale
    "ratio", the distance is 1 minus a value whose ideal is 1, and that value is shown. On the scale "difference", the
    distance itself is shown.
    """
    value, low, high = row["distance"], row["ci_low"], row["ci_high"]
    if row["scale"] == "log":
        return Cell(math.exp(value), math.exp(low), math.exp(high))
    # 1 − value falls as the value rises, so the limits of the interval change places.
    return Cell(1 - value, 1 - high, 1 - low) if row["scale"] == "ratio" else Cell(value, low, high)


def spelled(row: dict[str, Any], fewest: int = 2) -> str:
    """Return the distance of a row of distances.csv with its interval as numbers, such as "0.30 [0.26, 0.34]", with at
    least ``fewest`` decimals."""
    cell = displayed(row)
    return interval(cell, max(decimals([cell]), fewest))


def distance(row: dict[str, Any], source: str = "retraining") -> str:
    """Return the distance of a row of distances.csv in words: "0.30 [0.26, 0.34] from retraining",
    "1.4 [1.2, 1.6] times retraining's", or "0.7 [0.6, 0.8] instead of 1".

    Parameters
    ----------
    source
        What a difference is measured from.
    """
    # The scale "difference" has no entry: its text ends in the source.
    end = {"log": " times retraining's", "ratio": " instead of 1"}
    return interval(displayed(row), decimals_of(row)) + end.get(row["scale"], f" from {source}")


def margin(row: dict[str, Any]) -> str:
    """Return the margin of equivalence of a distance, a ``row`` of distances.csv, in words: "0.05", or "a factor of
    1.25"."""
    text = number(_margin(row), decimals_of(row))
    return text if row["scale"] == "difference" else f"a factor of {text}"


def _margin(row: dict[str, Any]) -> float:
    """Return the margin of equivalence of a distance as reports show it: a difference on the scale "difference", a
    factor on the scales "log" and "ratio".

    In a ``row`` of distances.csv, distances from ``margin_far`` < 0 to ``margin_near`` > 0 count as equivalent. The two
    limits are equally far from 0, except on the scale "ratio": there, for a factor m > 1, one limit is m − 1 away from
    0 and the other 1 − 1/m.
    """
    near, far = row["margin_near"], -row["margin_far"]
    if row["scale"] == "ratio":
        return float(1 + max(near, far))  # m, because m − 1 is larger than 1 − 1/m
    return math.exp(near) if row["scale"] == "log" else float(near)


def decimals_of(row: dict[str, Any]) -> int:
    """Return the number of decimals with which a distance (a ``row`` of distances.csv) and its margin are printed. It
    is the same for both, so that rounding does not hide which is larger."""
    margin = _margin(row)
    # Of a factor, the decimals must show the part above 1.
    return max(decimals([displayed(row)]), decimals_of_margin(margin if row["scale"] == "difference" else margin - 1))


def decimals_of_margin(margin: float) -> int:
    """Return the fewest decimals, at least 2, to which a margin can be rounded without a change of more than a tenth of
    its size; 2 for a margin that is not positive and finite."""
    if not (math.isfinite(margin) and margin > 0):
        return 2
    return next(digits for digits in itertools.count(2) if abs(round(margin, digits) - margin) <= 0.1 * margin)


def share(row: dict[str, Any]) -> str:
    """Return the share of the traces of doing nothing that a method removes, with its interval: "48 % [40, 55]"; "" if
    the share is undefined. ``row`` has it as ``share_closed``, ``share_low`` and ``share_high``."""
    if math.isnan(row["share_closed"]):
        return ""
    value, low, high = (number(100 * row[name], places=0) for name in ("share_closed", "share_low", "share_high"))
    return f"{value} %" if math.isnan(row["share_low"]) else f"{value} % [{low}, {high}]"


def loss(judged: Judged, method: str) -> str:
    """Return a method's largest loss of utility whose interval lies above 0 and which exceeds its margin, such as
    "−5 points of retain accuracy" or "× 1.4 retain perplexity"; "" if there is none, and for references (none, retrain,
    …)."""
    losses = [row for name, row in judged.by_metric(method).items() if name in words.UTILITY]
    # "Not at most" instead of "larger" is also true of a margin that is NaN.
    beyond = [row for row in losses if row["ci_low"] > 0 and not row["distance"] <= row["margin_near"]]
    if not beyond or method in naming.BASELINES:
        return ""
    worst = max(beyond, key=lambda row: row["distance"])
    if worst["scale"] == "log":
        return f"× {number(math.exp(worst['distance']), places=2)} {label(worst['metric'])}"
    return f"−{number(100 * worst['distance'], places=0)} points of {label(worst['metric'])}"


def gained(row: dict[str, Any]) -> str:
    """Return how a method's utility compares with retraining: "+2.1" points of accuracy, or "× 1.13" for a perplexity.
    ``row``: its row of distances.csv by a metric of utility."""
    if row["scale"] == "log":
        return f"× {number(math.exp(row['distance']), places=2)}"
    # The distance of an accuracy is how far it lies below retraining.
    return words.signed(-100 * row["distance"])


def rank(row: dict[str, Any]) -> str:
    """Return the ranks that a method may have, from a row of ranks.csv: "2 of 6", or "1–3 of 6"."""
    best, worst, methods = int(row["best"]), int(row["worst"]), int(row["methods"])
    return f"{best} of {methods}" if best == worst else f"{best}–{worst} of {methods}"


def probability(p: float) -> str:
    """Return a p-value as text: "p = 0.003", "p < 10⁻⁴" if it is at most `decide.LEAST_P`, the least that can be
    resolved, or "not tested" for NaN.

    A p-value has two digits, or as many as show whether it lies below or above α.
    """
    if math.isnan(p):
        return "not tested"
    if p <= decide.LEAST_P:
        return "p < 10⁻⁴"
    sign = np.sign(p - decide.ALPHA)
    texts = (f"{p:.{digits}g}" for digits in range(2, 18))  # a float64 has at most 17 digits
    return "p = " + next(text for text in texts if np.sign(float(text) - decide.ALPHA) == sign)


def source(row: dict[str, Any]) -> str:
    """Return the metric of a distance (a ``row`` of distances.csv) as readers see it, with its attack if it has one:
    "advantage (kde, unlearned)"."""
    attack = row["attack"].replace("_", " ").replace("/", ", ")
    return f"{label(row['metric'])} ({attack})" if attack else label(row["metric"])
