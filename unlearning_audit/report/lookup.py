"""Find the number of a method in a scenario among the rows of a study; a cell without a number has the reason."""

import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unlearning_audit.evaluation.rows import Failure, Record, Row
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.report import naming, words
from unlearning_audit.store.files import NoAnswerError

#: Scenario, (axis, setting) pairs and method, by which the rows of a case are found.
Key = tuple[str, frozenset[tuple[str, str]], str]


#: The fields that select a row among those of a metric and attack, such as (("role", "test"),); see `Row.place`.
Where = tuple[tuple[str, str | int | float], ...]


@dataclass(frozen=True)
class Cell:
    """One number (``value``) with its 95 % interval, the count ``n`` over which it is a mean, and a note.

    ``flag`` is one of `words.LOST` if the method failed or diverged, "unchanged" if it changed nothing, or "". Without
    a number, ``value`` is NaN and ``note`` says why; such a cell has no ``metric``, unless a row has the value NaN.
    ``where`` are the fields that select the row.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    note: str = ""
    flag: str = ""
    metric: str = ""
    attack: str = ""
    where: Where = ()

    @property
    def empty(self) -> bool:
        """Whether there is no number."""
        return math.isnan(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))


def finite(value: object) -> object:
    """Return nested records with None in place of NaN and infinity, which JSON does not have.

    >>> finite({"margin": 0.1, "distances": [float("nan"), float("inf")]})
    {'margin': 0.1, 'distances': [None, None]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sentence_of(failure: Failure) -> str:
    """Return which attack or metric failed, and why; if the model or the method failed as a whole, only why."""
    reason = failure.sentence or "no reason given"
    name = f"attack {failure.name}" if failure.kind == "attack" else failure.name
    return reason if failure.whole else f"{name} failed: {reason}"


def missing(why: str, flag: str = "") -> Cell:
    """Return an empty cell (one without a number) with the reason, ``why``. ``flag``: the word for a method that failed
    or diverged, or ""."""
    return Cell(math.nan, note=why, flag=flag)


class Numbers:
    """The rows of a study, found by case: one method in one scenario and setting.

    ``cases`` are mappings with scenario, setting, axes, protocol and method, in study order; those of a figure have the
    paths of the ``files`` that it draws, too.
    """

    def __init__(self, records: list[Record], cases: list[dict[str, Any]]) -> None:
        self.cases = cases
        self._rows: dict[Key, list[Row]] = defaultdict(list)
        self._failures: dict[Key, list[Failure]] = defaultdict(list)
        self._of_metric: dict[tuple[Key, str], list[Row]] = defaultdict(list)
        for record in records:
            key, row = (record.scenario, frozenset(record.axes.items()), record.method), record.row
            if isinstance(row, Failure):
                self._failures[key].append(row)
            else:
                self._rows[key].append(row)
                self._of_metric[key, row.metric].append(row)

    def by_method(self, where: tuple[str, str]) -> dict[str, dict[str, Any] | None]:
        """Return method → its case in a scenario and setting (``where``), or None if it has no case there.

        The method called "none" comes first, then the others in study order, the retrained models last.
        """
        here = {case["method"]: case for case in self.cases if place(case) == where}
        return {method: here.get(method) for method in methods(self.cases)}

    def read_files(self, case: dict[str, Any] | None, read: Callable[[dict[str, Any]], Any]) -> Any:
        """Return what the function ``read`` makes of the files of a case that a figure draws.

        None if there is no case (``case`` is None), if the case has no files, if its method failed or diverged, or if
        ``read`` raises NoAnswerError.
        """
        if case is None or not case["files"] or self.failure(case):
            return None
        with suppress(NoAnswerError):
            return read(case["files"])
        return None

    def narrowed(self, cases: list[dict[str, Any]]) -> "Numbers":
        """Return numbers with the rows of this object and only the given ``cases``, for a table of some scenarios."""
        fewer = Numbers([], cases)
        fewer._rows, fewer._failures, fewer._of_metric = self._rows, self._failures, self._of_metric
        return fewer

    def rows_of(self, case: dict[str, Any]) -> list[Row]:
        """Return the rows of a case, in the order of the study; [] if it has none."""
        return self._rows.get(_key_of(case), [])

    def of_metric(self, case: dict[str, Any], metric: str) -> list[Row]:
        """Return the rows of a case for one metric; [] if it has none."""
        return self._of_metric.get((_key_of(case), metric), [])

    def failure(self, case: dict[str, Any]) -> str:
        """Return why a case has no numbers at all, because its model or method failed or its models diverged; "" if
        none of these happened. Failures of single attacks and metrics are not considered."""
        return next((sentence_of(entry) for entry in self.failures(case) if entry.whole), "")

    def lost(self, case: dict[str, Any] | None) -> str:
        """Return the word of `words.LOST` that replaces the numbers of a case whose model or method failed or whose
        models diverged; "" for any other case, and for None."""
        whole = next((failure for failure in self.failures(case) if failure.whole), None) if case else None
        if whole is None:
            return ""
        return words.DAMAGED.word if whole.kind == "diverged" else words.FAILED

    def failures(self, case: dict[str, Any]) -> list[Failure]:
        """Return everything that failed in a case, [] if nothing did: its model or method, models that diverged,
        attacks and metrics."""
        return self._failures.get(_key_of(case), [])

    def noted(self, case: dict[str, Any], what: str) -> list[str]:
        """Return the sentences noted on a case under ``what``: "doubt", on what is implausible about its models, or
        "remark", on what readers of result files must know without doubting the case. [] if there are none."""
        return [row.note for row in self.of_metric(case, what)]

    def unchanged(self, case: dict[str, Any]) -> bool:
        """Return whether the method of a case left the models unchanged; such a case has a row "unchanged"."""
        return bool(self.of_metric(case, "unchanged"))

    def main_metric(self, cases: list[dict[str, Any]]) -> str:
        """Return the main metric of the first of some cases whose scenario and setting have one; "" if none has one."""
        return next((metric for metric, _ in map(self.primary, cases) if metric), "")

    def cell(self, case: dict[str, Any], metric: str, attack: str = "", where: Where = (), **place: Any) -> Cell:
        """Return the number of ``metric`` for a case with its interval, or an empty cell with the reason why there is
        none.

        Without ``attack``, the first of these that has a row is taken: no attack, the attacks that the metric declares,
        those of ``naming.preferred_attacks``, the attack of the first row. Rows of one attack differ by fields of `Row`
        such as role; ``where``, (field, value) pairs, or keywords (``role="test"``) select one row. With neither, the
        only row is taken or, of several, the row in which no such field is set.
        """
        where = where or Row(metric, **place).place  # keywords as pairs, in the order in which rows have them
        failures = self.failures(case)
        if self.failure(case):
            return missing(self.failure(case), flag=self.lost(case))
        rows = self.of_metric(case, metric)
        if not rows:
            absent = f"protocol {case['protocol']} gives no {naming.meaning(metric).display_name}"
            return missing("; ".join(map(sentence_of, failures)) or absent)
        names = list(dict.fromkeys(row.attack for row in rows))
        preferred = ("", *naming.meaning(metric).attacks, *naming.preferred_attacks())
        adversary = attack or next(name for name in (*preferred, *names) if name in names)
        rows = [row for row in rows if row.attack == adversary]
        if not rows:
            name, *_ = adversary.split("/")  # without the form, as in "kde/trained"
            why = (sentence_of(failure) for failure in failures if (failure.kind, failure.name) == ("attack", name))
            return missing(next(why, f"there is no attack {attack} here, only {', '.join(names)}"))
        first, *more = places = list(dict.fromkeys(row.place for row in rows))  # the fields that select each row
        where = where or (() if more else first)
        row = next((row for row in rows if row.place == where), None)
        if row is None:
            choice = "; ".join(map(about, places[:4])) + (" …" if len(places) > 4 else "")
            return missing(f"there is no {about(where) or 'overall number'}; choose one with where: {choice}")
        flag = "unchanged" if self.unchanged(case) else ""
        note = row.note or ("no reason was recorded" if math.isnan(row.value) else "")
        return Cell(row.value, row.ci_low, row.ci_high, row.n, note, flag, metric=metric, attack=adversary, where=where)

    def pairs(self, case: dict[str, Any], metric: str, attack: str = "") -> list[Cell]:
        """Return the number of a metric for each pair of splits of a case, or for each group of models that the rows
        call a pair, by increasing number of the pair.

        Pairs without a number are left out. Rows about a part of a pair, such as samples of one role, are not read:
        their place has more fields than the pair.
        """
        rows = self.of_metric(case, metric)
        numbers = {row.pair for row in rows if row.pair is not None and len(row.place) == 1}
        cells = [self.cell(case, metric, attack, pair=number) for number in sorted(numbers)]
        return [cell for cell in cells if not cell.empty]

    def models(self, case: dict[str, Any], metric: str, attack: str = "") -> list[float]:
        """Return the value of a metric for each model of a case, ordered by the model's number.

        Without ``attack``, the first attack that has values of single models is taken. [] if no attack has any. A value
        may be NaN.
        """
        rows = [(row.model, row) for row in self.of_metric(case, metric) if row.model is not None]
        attack = attack or next((row.attack for _, row in rows), "")
        values = {model: row.value for model, row in rows if row.attack == attack}
        return [values[model] for model in sorted(values)]

    def primary(self, case: dict[str, Any], attack: str = "") -> tuple[str, Cell]:
        """Return the name of the main metric of the case's scenario and setting, and its number for the case.

        The main metric is the first of ``naming.primary`` with a number in that scenario and setting, else the first
        with a row there. If there is none, the result is "" and an empty cell with the reason.
        """
        rows = [row for neighbour in self.cases if place(neighbour) == place(case) for row in self.rows_of(neighbour)]
        metrics = {row.metric for row in rows}
        measured = {row.metric for row in rows if not math.isnan(row.value)}
        metric = next((name for available in (measured, metrics) for name in naming.primary() if name in available), "")
        return metric, self.cell(case, metric, attack) if metric else missing("this protocol has no main metric")


def place(case: dict[str, Any]) -> tuple[str, str]:
    """Return the scenario and setting of a case, which the methods of one comparison share. A setting has the values of
    what the scenario varies, such as "epsilon=8"; "" if it varies nothing."""
    return case["scenario"], case["setting"]


def places(cases: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return every (scenario, setting) of the cases, once, in study order."""
    return list(dict.fromkeys(map(place, cases)))


def label(where: tuple[str, str]) -> str:
    """Return a (scenario, setting) as readers see it, such as "budget: epsilon = 8"; the setting alone if what varies
    has the scenario's name."""
    scenario, setting = where[0].replace("_", " "), naming.setting(where[1])
    return setting if setting.startswith(f"{scenario} = ") else ": ".join(filter(None, [scenario, setting]))


def label_of(case: dict[str, Any]) -> str:
    """Return the scenario and setting of a case as readers see them, such as "budget: epsilon = 8"."""
    return label(place(case))


def named(where: tuple[str, str], method: str, places: list[Any]) -> str:
    """Return a method as readers see it, after its scenario and setting if there are several ``places``."""
    return naming.method(method) if len(places) == 1 else f"{label(where)}, {naming.method(method)}"


def protocol(case: dict[str, Any]) -> Protocol:
    """Return the declaration of a case's protocol; an empty one for a user's own protocol."""
    name = case["protocol"]
    return registry.protocol(name) if name in registry.names("protocols") else Protocol()


def methods(cases: list[dict[str, Any]]) -> list[str]:
    """Return every method once: the one called "none" first, the retrained models last, the others in study order."""
    return naming.ordered(dict.fromkeys(case["method"] for case in cases))


def about(where: Where) -> str:
    """Return the fields that select a number, as readers see them: "role = retain, target = vulnerable"."""
    return ", ".join(f"{'FPR' if name == 'rate' else name} = {value}" for name, value in where)


def _key_of(case: dict[str, Any]) -> Key:
    """Return the key by which rows of a case are found: its scenario, the values of what varies, and its method."""
    return case["scenario"], frozenset(case["axes"].items()), case["method"]
