"""Answer, for each scenario and setting: how methods rank, which is nearest to retraining, what the systems of
evaluation conclude, and whether checks passed.

The end of a run, the top of the page and its matrix of verdicts show this answer, so that all agree with the tables of
a comparison.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unlearning_audit.comparisons.sensitivity import reason
from unlearning_audit.report import decisions, lookup, naming, words
from unlearning_audit.report.decisions import Decisions, Judged, Place
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables import rankings, verdicts
from unlearning_audit.report.tables.typeset import number
from unlearning_audit.stats import decide

#: Systems disagree on a method if their ranks for it differ by this share of the number of methods, or more.
APART = 0.5
#: Rulers reach from 0 to this share of traces removed; 1 is retraining.
REACH = 1.25
#: States from the best to the worst in the matrix, where an open verdict (UNKNOWN) is better than traces.
ORDER = (words.LIKE, words.UNKNOWN, words.TRACES, words.OVER, words.DAMAGED)


@dataclass(frozen=True)
class Line:
    """The answer for one method in one scenario and setting.

    Parameters
    ----------
    verdict
        The code of the verdict.
    share, low, high
        The share of the traces left by doing nothing that the method removes, with its interval. NaN if undefined, and
        for references.
    points
        Test accuracy above retraining, in percentage points; NaN if unknown.
    lost
        A loss of utility in words (`decisions.loss`), or "".
    nearest
        Whether no other method is proven to be nearer to retraining; False for all if this is so for all methods.
    why
        Why there is no verdict, or the assumption on which a verdict from a single retrained model rests; else "".
    sentence
        What the verdict rests on; "" for references.
    decides
        What would decide an open verdict; "" for a verdict that is decided.
    number
        The number of the line among all of a study, for links to it.
    """

    method: str
    verdict: str
    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    points: float = math.nan
    lost: str = ""
    nearest: bool = False
    why: str = ""
    sentence: str = ""
    decides: str = ""
    number: int = 0

    @property
    def state(self) -> words.State:
        """The verdict as readers see it."""
        return words.state(self.verdict)

    @property
    def reference(self) -> bool:
        """Whether the method is a reference: doing nothing or retraining."""
        return self.method in naming.BASELINES

    @property
    def tone(self) -> str:
        """The tone of the verdict; references have none."""
        return "" if self.reference else self.state.tone

    @property
    def percent(self) -> str:
        """The share removed, "22 %"; "" if undefined."""
        return "" if math.isnan(self.share) else f"{number(100 * self.share, places=0)} %"

    @property
    def sort_key(self) -> float:
        """A number that sorts lines from the best state to the worst, and lines of equal state by their distance from
        retraining, which is |1 − share|.

        Methods that failed come after all states, references last. An unknown distance counts as the largest.
        """
        # A distance is at most 9, so that a better state, 10 apart from the next, always comes first.
        distance = 9.0 if math.isnan(self.share) else min(abs(1 - self.share), 9.0)
        state = len(ORDER) if self.verdict == decide.FAILED else ORDER.index(self.state)
        return round(100 * self.reference + 10 * state + distance, 4)

    @property
    def removed(self) -> str:
        """The share removed and its interval, "33 % [24, 49]"; "" if undefined."""
        return decisions.share({"share_closed": self.share, "share_low": self.low, "share_high": self.high})

    def on_ruler(self, end: str) -> float:
        """Return where ``end`` (share, low or high) lies on a ruler, in per cent of its length.

        Without an interval, low and high lie where the share does. A value outside the ruler, which reaches from 0 to
        `REACH`, lies at its end. NaN if the share is undefined.
        """
        value = getattr(self, end)
        value = self.share if math.isnan(value) else value
        return float(round(100 * min(max(value, 0.0), REACH) / REACH, 1))

    @property
    def gained(self) -> str:
        """The test accuracy above retraining in points, "+3.2"; "" if unknown."""
        return "" if math.isnan(self.points) else words.signed(self.points)

    @property
    def accuracy(self) -> str:
        """The test accuracy above retraining in points, then a loss of utility; "" if neither is known."""
        return " ".join(filter(None, (self.gained, f"({self.lost})" if self.lost else "")))


@dataclass(frozen=True)
class Judge:
    """A system of evaluation: its ``name``, the name of its main ``metric`` as readers see it, and ``ranks``, method →
    rank, 1 for the best."""

    name: str
    metric: str
    ranks: dict[str, int]


@dataclass(frozen=True)
class Answer:
    """The answer for one scenario and setting, in which ``judged`` was compared.

    Parameters
    ----------
    protocol
        The protocol, as readers see it.
    squares
        Method → its line, references included. The page shows each as a square of its matrix.
    checks
        (name, tone "good", "bad" or "", sentence).
    judges
        The systems of evaluation, each with its ranks of the methods.
    agreement
        The smallest and the largest Kendall's τ between two of the ``judges``; NaN if there are not two.
    """

    judged: Judged
    protocol: str
    squares: dict[str, Line]
    checks: tuple[tuple[str, str, str], ...]
    judges: tuple[Judge, ...] = ()
    agreement: tuple[float, float] = (math.nan, math.nan)

    @property
    def key(self) -> str:
        """The scenario and setting as the page's script knows them: "scenario|setting"."""
        return "|".join(self.judged.place)

    @property
    def label(self) -> str:
        """The scenario and setting: "budget: epsilon = 8"."""
        return self.judged.label

    @property
    def scenario(self) -> str:
        """The scenario as readers see it."""
        return self.judged.place[0].replace("_", " ")  # a place is (scenario, setting)

    @property
    def step(self) -> str:
        """The setting as readers see it: the values of what the scenario varies, "" if it varies nothing."""
        return naming.setting(self.judged.place[1])  # a place is (scenario, setting)

    @property
    def head(self) -> str:
        """The scenario and setting as the matrix names them: "budget, epsilon = 8"."""
        return ", ".join(filter(None, (self.scenario, self.step)))

    @property
    def lines(self) -> list[Line]:
        """The lines of methods that are no references, by state in the order of `words.STATES`, from like retraining to
        open verdicts; lines of equal state by distance from retraining, |1 − share|, an unknown one last."""
        lines = [line for line in self.squares.values() if not line.reference]
        distance_of = {line.method: math.inf if math.isnan(line.share) else abs(1 - line.share) for line in lines}
        return sorted(lines, key=lambda line: (words.STATES.index(line.state), distance_of[line.method]))

    @cached_property
    def state(self) -> sentences.State:
        """Whether the checks passed. If the whole scenario could not be judged, the verdict of its methods says why."""
        unjudged = next((row for row in self.judged.verdicts.values() if row["verdict"] in decide.STATES), None)
        if unjudged:
            return sentences.State("–", decisions.reason(unjudged), reason(unjudged), tone="bad")
        return sentences.state(self.judged)

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return bool(self.checks) and all(tone == "good" for _, tone, _ in self.checks)

    @property
    def like(self) -> list[str]:
        """Names of the methods that are like retraining."""
        return [naming.method(line.method) for line in self.lines if line.state is words.LIKE]

    @property
    def nearest(self) -> list[str]:
        """Names of the methods that may be nearest to retraining, because no other method is proven to be nearer; [] if
        this is so for all methods."""
        return [naming.method(line.method) for line in self.lines if line.nearest]

    @property
    def best(self) -> str:
        """A sentence that names the methods like retraining or, if there are none, the nearest methods, and says
        whether these are certain to be the nearest."""
        return words.best(self.like, self.nearest, unknown=any(line.state is words.UNKNOWN for line in self.lines))

    @property
    def contradiction(self) -> str:
        """A sentence that names the method on which the systems of evaluation disagree most, or says that they agree.

        Systems agree if their ranks for each method differ by less than the share `APART` of the number of methods. ""
        for fewer than two systems, or fewer than three methods that all systems rank.
        """
        most_disputed, rank_gaps = self.most_disputed, self.rank_gaps
        if not most_disputed:
            return ""
        low, high = self.agreement
        range_ = f"τ {words.plain(low, digits=2)} to {words.plain(high, digits=2)}"
        if rank_gaps[most_disputed] < APART * len(rank_gaps):
            return f"The {len(self.judges)} systems rank the methods alike ({range_})."
        # The systems that rank this method highest and lowest.
        kind = min(self.judges, key=lambda judge: judge.ranks[most_disputed])
        strict = max(self.judges, key=lambda judge: judge.ranks[most_disputed])
        best, last = words.ordinal(kind.ranks[most_disputed]), words.ordinal(strict.ranks[most_disputed])
        systems = f"The {len(self.judges)} systems disagree on {naming.method(most_disputed)}"
        return f"{systems}: {kind.name} ranks it {best} of {len(rank_gaps)}, {strict.name} {last} ({range_})."

    @property
    def most_disputed(self) -> str:
        """The method on which the systems of evaluation disagree most; "" for fewer than two systems, or fewer than
        three methods that all systems rank."""
        rank_gaps = self.rank_gaps
        return max(rank_gaps, key=rank_gaps.__getitem__, default="")

    @property
    def rank_gaps(self) -> dict[str, int]:
        """Method → the largest difference between its ranks by two systems, for the methods that all systems rank; {}
        if there are fewer than two systems, or fewer than three methods that all of them rank."""
        methods = [line.method for line in self.lines if all(line.method in judge.ranks for judge in self.judges)]
        ranks = {method: [judge.ranks[method] for judge in self.judges] for method in methods}
        enough = len(self.judges) > 1 and len(methods) > 2
        return {method: max(found) - min(found) for method, found in ranks.items()} if enough else {}

    @property
    def checked(self) -> str:
        """A sentence that says whether the checks passed."""
        return words.checked(self.checks)


def answers(numbers: Numbers, judgements: Decisions) -> list[Answer]:
    """Return, for each scenario and setting with verdicts, the answer that the report shows: a line for each method,
    the checks, and whether systems of evaluation agree."""
    answered, number = [], itertools.count()
    for place in lookup.places(numbers.cases):
        judged = judgements.at(place)
        if judged.verdicts:
            cases = [case for case in numbers.cases if lookup.place(case) == place]
            squares = {case["method"]: _line(numbers, judged, case, next(number)) for case in cases}
            by_name = sentences.checks(judged)
            checks = tuple((words.CHECKS[name], check.tone, check.text) for name, check in by_name.items())
            protocol = cases[0]["protocol"].replace("_", " ")
            answered.append(Answer(judged, protocol, squares, checks, *_judges(numbers, place)))
    return answered


def _line(numbers: Numbers, judged: Judged, case: dict[str, Any], number: int) -> Line:
    """Return the line of one case (a method in a scenario and setting) in the answer: verdict, share of traces removed,
    test accuracy above retraining, loss of utility, and why a verdict is open.

    A case without a verdict counts as failed. References (none, retrain, …) have no share of traces removed.
    ``number``: the number of the line among all lines of the study.
    """
    method, sentence = case["method"], sentences.method(numbers, judged, case)
    row = judged.verdicts.get(method)
    if row is None:
        return Line(method, decide.FAILED, why=words.REASONS[decide.FAILED], sentence=sentence, number=number)
    reference = method in naming.BASELINES
    share, low, high = (math.nan if reference else row[f"share_{name}"] for name in ("closed", "low", "high"))
    # The distance of an accuracy is how far it lies below retraining, so its negative is how far it lies above.
    points = -100 * judged.by_metric(method).get("accuracy_test", {}).get("distance", math.nan)
    condition = judged.condition(method)
    reason = words.DIVERGED if row["verdict"] == decide.BROKEN and numbers.failure(case) else decisions.reason(row)
    if row["verdict"] == decide.NO_YARDSTICK and condition:
        reason = ""  # the condition says what a verdict with one retrained model would rest on
    return Line(
        method,
        verdict=row["verdict"],
        share=share,
        low=low,
        high=high,
        points=points,
        lost=decisions.loss(judged, method),
        nearest=method in judged.leaders(),
        why=", ".join(filter(None, (reason, condition))),
        sentence=sentence,
        decides=verdicts.decides(judged, method),
        number=number,
    )


def _judges(numbers: Numbers, place: Place) -> tuple[tuple[Judge, ...], tuple[float, float]]:
    """Return the systems of evaluation whose main metric ranks at least three methods, each with its ranks, and the
    lowest and highest Kendall's τ between two of these systems (NaN, NaN without any τ).

    A system with several main metrics ranks by the first one that ranks three methods. Equal values share a rank.
    """
    judges: dict[str, Judge] = {}
    ranked = []
    for metric in naming.primary():
        quantity = naming.meaning(metric)
        if quantity.system and quantity.system not in judges:
            ranking = rankings.rank(numbers, place, metric)
            values = ranking.values
            if len(values) > 2:
                # The rank is 1 plus the number of methods with a better value.
                ranks = {name: 1 + sum(other > own for other in values.values()) for name, own in values.items()}
                judges[quantity.system] = Judge(quantity.system, quantity.display_name, ranks)
                ranked.append(ranking)
    agreements = [rankings.agreement(left, right) for left, right in itertools.combinations(ranked, 2)]
    taus = [cell.value for cell in agreements if not cell.empty]
    return tuple(judges.values()), (min(taus), max(taus)) if taus else (math.nan, math.nan)


def plain(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON values: its lines, and the sentences and texts that its properties of the same names
    give. NaN becomes None."""
    shown = ("method", "verdict", "share", "low", "high", "points", "lost", "nearest", "why", "removed", "accuracy")
    lines = [
        lookup.finite({"word": line.state.word, **{name: getattr(line, name) for name in shown}})
        for line in answer.lines
    ]
    texts = ("label", "best", "nearest", "like", "contradiction", "checked", "passed")
    return {"lines": lines, **{name: getattr(answer, name) for name in texts}}
