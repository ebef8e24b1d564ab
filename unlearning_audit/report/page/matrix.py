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
        """A number that sorts squares from the best state to the worst; equal states by distance from retraining.

        References come last.
        """
        # A distance is at most 9, so that a better state, 10 apart from the next, always comes first.
        distance = 9.0 if math.isnan(self.share) else min(abs(1 - self.share), 9.0)
        place = len(ORDER) if self.verdict == decide.FAILED else ORDER.index(self.state)
        return round(100 * self.reference + 10 * place + distance, 4)


@dataclass(frozen=True)
class Matrix:
    """All squares: ``methods`` of the study, references last; ``squares`` by method and key of the column."""

    columns: tuple[Column, ...]
    methods: tuple[str, ...]
    squares: dict[tuple[str, str], Square]

    def scenarios(self) -> list[tuple[str, list[Column]]]:
        """Return the columns of each scenario, in order."""
        groups: dict[str, list[Column]] = {}
        for column in self.columns:
            groups.setdefault(column.scenario, []).append(column)
        return list(groups.items())

    def row(self, method: str) -> list[tuple[Column, Square | None]]:
        """Return the squares of a method from left to right."""
        return [(column, self.squares.get((method, column.key))) for column in self.columns]


def build(numbers: Numbers, judgements: Decisions) -> Matrix:
    """Return the matrix of a study: a row for each method, references last, a column for each scenario and setting, and
    the verdict in each square. Scenarios in which nothing is compared are left out."""
    columns: list[Column] = []
    squares: dict[tuple[str, str], Square] = {}
    for place in filter(judgements.verdicts.get, lookup.places(numbers.cases)):  # places that have verdicts
        cases = [case for case in numbers.cases if lookup.place(case) == place]
        key, scenario, system = "|".join(place), place[0].replace("_", " "), cases[0]["protocol"].replace("_", " ")
        # A comparison that could not judge methods records why as their verdict.
        open_ = next((row for row in judgements.verdicts[place].values() if row["verdict"] in decide.STATES), None)
        state = State("–", decisions.reason(open_), reason(open_), "bad") if open_ else _state(judgements, place)
        columns.append(Column(key, scenario, naming.setting(place[1]), system, state))
        for case in cases:
            line, sentence = answer.line(numbers, judgements, case), sentences.method(numbers, judgements, case)
            squares[case["method"], key] = Square(**vars(line), sentence=sentence, number=len(squares))
    methods = dict.fromkeys(method for method, _ in squares)
    last = {name: rank for rank, name in enumerate(naming.BASELINES, start=1)}
    return Matrix(tuple(columns), tuple(sorted(methods, key=lambda name: last.get(name, 0))), squares)


def _state(judgements: Decisions, place: Place) -> State:
    """Return whether the checks of one scenario and setting passed, with a sign, a reason and a sentence.

    The first of these conditions that holds decides. A check failed (its tone is "bad"): retrained models differ from
    each other, or the models before unlearning do not differ from retrained ones. It is open (tone "") whether the
    models before unlearning differ from retrained ones. It is open whether the distance between retrained models lies
    within the margin. There is no second group of retrained models to compare. If no condition holds, all checks
    passed.
    """
    perfect, agree, exposed = sentences.checks(judgements, place).values()
    whys = (decide.YARDSTICKS_DISAGREE, decide.YARDSTICKS_DISAGREE, decide.NOTHING_TO_FIND)
    for check, why in zip((perfect, agree, exposed), whys, strict=True):
        if check.tone == "bad":
            return State("–", words.REASONS[why], check.text, "bad")
    if exposed.tone == "":
        return State("–", words.UNCHECKED, exposed.text, "")
    # A missing control has no value. A control whose interval exceeds the margin is inconclusive.
    unsure = next((check for check in (perfect, agree) if check.tone == "" and check.value), None)
    if unsure is not None:
        return State("–", words.UNSURE, unsure.text, "")
    if not (perfect.value or agree.value):
        return State("–", words.UNCHECKED, f"{words.NO_CONTROL}; {exposed.text}", "")
    return State(words.OK, words.PASSED, exposed.text, "good")


def cautions(matrix: Matrix) -> list[str]:
    """Return a sentence on what must not be concluded from the matrix: open verdicts, and scenarios whose checks
    failed.

    For a study without unlearning methods, sentences say so, and in how many scenarios checks passed.
    """
    methods = [name for name in matrix.methods if name not in naming.BASELINES]
    if not methods:
        hold = sum(column.state.sign == words.OK for column in matrix.columns)
        columns = naming.count(len(matrix.columns), "column")
        return [words.NO_METHODS, f"Checks passed in {hold} of {columns}."] if matrix.columns else [words.NO_METHODS]
    blind = words.REASONS[decide.NO_YARDSTICK]
    doubtful = [column for column in matrix.columns if column.state.tone == "bad"]
    parts = []
    squares = matrix.squares.values()
    if any(square.verdict == decide.INCONCLUSIVE and not square.reference for square in squares):
        parts.append(words.OPEN)
    for where, why in words.WHERE.items():
        labels = [column.label for column in doubtful if (column.state.words == blind) == where]
        if labels:
            listed = words.joined(labels) if len(labels) <= 3 else f"{len(labels)} columns"
            parts.append(f"anything from {listed}, {why}")
    return [f"Not to be concluded: {'; '.join([*parts, words.ELSEWHERE])}."]
