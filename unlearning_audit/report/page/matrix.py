"""Make the matrix of the page: methods × scenarios and settings, with a verdict in each square.

Everything that the page shows of verdicts comes from this file and `details`, so that both agree with the tables of a
comparison.
"""

import math
from dataclasses import dataclass

from unlearning_audit.comparisons.sensitivity import reason
from unlearning_audit.report import answer, decisions, lookup, naming, words
from unlearning_audit.report.answer import Line
from unlearning_audit.report.decisions import Decisions, Place
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import sentences
from unlearning_audit.report.tables.typeset import number
from unlearning_audit.stats import decide

#: States from the best to the worst; an open verdict is better than a loss.
ORDER = (words.LIKE, words.UNKNOWN, words.TRACES, words.OVER, words.DAMAGED)


@dataclass(frozen=True)
class State:
    """Whether the checks of a scenario passed: a ``sign``, its ``words``, the reason in a ``sentence``, and the
    ``tone``."""

    sign: str
    words: str
    sentence: str
    tone: str


@dataclass(frozen=True)
class Column:
    """A scenario at one setting of its axes; ``step``: the setting, "" without axes."""

    key: str
    scenario: str
    step: str
    system: str
    state: State

    @property
    def label(self) -> str:
        """The scenario and setting: "budget, epsilon = 8"."""
        return ", ".join(filter(None, (self.scenario, self.step)))


@dataclass(frozen=True)
class Square(Line):
    """The answer for one method in one column, with what its verdict rests on in a ``sentence``, and its ``number``."""

    sentence: str = ""
    number: int = 0

    @property
    def reference(self) -> bool:
        """Whether this is doing nothing or retraining."""
        return self.method in naming.BASELINES

    @property
    def tone(self) -> str:
        """The tone of the verdict; references have none."""
        return "" if self.reference else self.state.tone

    @property
    def percent(self) -> str:
        """The share removed, "22 %"; "" if undefined."""
        return "" if math.isnan(self.share) else f"{number(100 * self.share, 0)} %"

    @property
    def rank(self) -> float:
        """A number that sorts squares from the best state to the worst, and equal states by distance from retraining.

        Methods that failed come after all states, references last. An unknown distance counts as the largest.
        """
        # A distance is at most 9, so that a better state, 10 apart from the next, always comes first.
        distance = 9.0 if math.isnan(self.share) else min(abs(1 - self.share), 9.0)
        state = len(ORDER) if self.verdict == decide.FAILED else ORDER.index(self.state)
        return round(100 * self.reference + 10 * state + distance, 4)


@dataclass(frozen=True)
class Matrix:
    """All squares: ``methods`` of the study, references last; ``squares`` by method and key of the column."""

    columns: tuple[Column, ...]
    methods: tuple[str, ...]
    squares: dict[tuple[str, str], Square]

    def scenarios(self) -> list[tuple[str, list[Column]]]:
        """Return (scenario, its columns) for each scenario, in order."""
        groups: dict[str, list[Column]] = {}
        for column in self.columns:
            groups.setdefault(column.scenario, []).append(column)
        return list(groups.items())

    def row(self, method: str) -> list[tuple[Column, Square | None]]:
        """Return (column, square) for each column from left to right; None where the method has no square."""
        return [(column, self.squares.get((method, column.key))) for column in self.columns]


def build(numbers: Numbers, judgements: Decisions) -> Matrix:
    """Return the matrix of a study: a row for each method, references last, a column for each scenario and setting, and
    the verdict in each square. Scenarios in which nothing is compared are left out."""
    columns: list[Column] = []
    squares: dict[tuple[str, str], Square] = {}
    judged = [place for place in lookup.places(numbers.cases) if judgements.verdicts.get(place)]
    for place in judged:
        cases = [case for case in numbers.cases if lookup.place(case) == place]
        key, scenario, system = "|".join(place), place[0].replace("_", " "), cases[0]["protocol"].replace("_", " ")
        # If a whole scenario could not be judged, the verdict of its methods says why.
        unjudged = next((row for row in judgements.verdicts[place].values() if row["verdict"] in decide.STATES), None)
        state = _state(judgements, place)
        if unjudged:
            state = State("–", decisions.reason(unjudged), reason(unjudged), "bad")
        columns.append(Column(key, scenario, naming.setting(place[1]), system, state))
        for case in cases:
            line, sentence = answer.line(numbers, judgements, case), sentences.method(numbers, judgements, case)
            # Squares are numbered in the order in which they are made, for links to them.
            squares[case["method"], key] = Square(**vars(line), sentence=sentence, number=len(squares))
    methods = list(dict.fromkeys(method for method, _ in squares))
    references = [name for name in naming.BASELINES if name in methods]
    compared = [name for name in methods if name not in references]
    return Matrix(tuple(columns), (*compared, *references), squares)


def _state(judgements: Decisions, place: Place) -> State:
    """Return whether the checks of one scenario and setting passed, with a sign, a reason and a sentence.

    There are three checks: retraining is like retraining, two groups of retrained models agree, and doing nothing is
    detected. A check has the tone "good", "bad" (failed) or "" (open), and no value if it was not made.
    """
    perfect, agree, detected = sentences.checks(judgements, place).values()
    for check in (perfect, agree):
        if check.tone == "bad":
            return State("–", words.REASONS[decide.YARDSTICKS_DISAGREE], check.text, "bad")
    if detected.tone == "bad":
        return State("–", words.REASONS[decide.NOTHING_TO_FIND], detected.text, "bad")
    if detected.tone == "":
        return State("–", words.UNCHECKED, detected.text, "")
    for check in (perfect, agree):
        if check.tone == "" and check.value:  # the interval is too wide to lie within the margin
            return State("–", words.UNSURE, check.text, "")
    if not (perfect.value or agree.value):  # no second group of retrained models
        return State("–", words.UNCHECKED, f"{words.NO_CONTROL}; {detected.text}", "")
    return State(words.OK, words.PASSED, detected.text, "good")


def cautions(matrix: Matrix) -> list[str]:
    """Return a sentence on what must not be concluded from the matrix: anything from open verdicts, from scenarios
    whose checks failed, or from scenarios with too few retrained models, and anything about other data.

    For a study without unlearning methods, sentences say so, and in how many scenarios checks passed.
    """
    if all(name in naming.BASELINES for name in matrix.methods):
        passed = sum(column.state.sign == words.OK for column in matrix.columns)
        columns = naming.count(len(matrix.columns), "column")
        return [words.NO_METHODS, f"Checks passed in {passed} of {columns}."] if matrix.columns else [words.NO_METHODS]
    parts = []
    squares = matrix.squares.values()
    if any(square.verdict == decide.INCONCLUSIVE and not square.reference for square in squares):
        parts.append(words.OPEN)
    doubtful = [column for column in matrix.columns if column.state.tone == "bad"]
    too_few = [column.label for column in doubtful if column.state.words == words.REASONS[decide.NO_YARDSTICK]]
    failed = [column.label for column in doubtful if column.state.words != words.REASONS[decide.NO_YARDSTICK]]
    for labels, why in ((failed, words.WHERE_CHECKS_FAIL), (too_few, words.WHERE_TOO_FEW)):
        if labels:
            listed = words.joined(labels) if len(labels) <= 3 else f"{len(labels)} columns"
            parts.append(f"anything from {listed}, {why}")
    return [f"Not to be concluded: {'; '.join([*parts, words.ELSEWHERE])}."]
