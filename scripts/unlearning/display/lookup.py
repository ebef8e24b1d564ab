"""Finds the number of a case among tidy rows; empty cells carry the reason."""

import math
from collections import defaultdict
from dataclasses import dataclass

from unlearning.display import naming

UNCHANGED = "the logits after unlearning are identical to those before: the method changed nothing"


@dataclass(frozen=True)
class Cell:
    """One number with its 95 % interval, the count behind it, and a note.

    ``flag`` is "failed", "unchanged" or "". ``value`` is NaN where ``note`` says why there is none.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    note: str = ""
    flag: str = ""
    metric: str = ""
    attack: str = ""
    setting: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is no number."""
        return math.isnan(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))


def failed(row: dict) -> str:
    """What a row of the metric failed says: which attack or metric, and why."""
    part = f"attack {row['attack']}" if row["attack"] else row["setting"].rpartition("metric=")[2]
    return " failed: ".join(filter(None, [part, row["note"] or "no reason given"]))


def missing(why: str, flag: str = "") -> Cell:
    """A cell without a number."""
    return Cell(math.nan, note=why, flag=flag)


class Numbers:
    """Tidy rows of a study, found by case.

    ``rows`` have the columns of ``tables.UNION_COLUMNS``; ``cases`` are mappings with scenario, setting,
    axes, protocol and method, in study order.
    """

    def __init__(self, rows: list[dict], cases: list[dict]) -> None:
        self.cases = cases
        self._rows = defaultdict(list)
        self._of_metric = defaultdict(list)
        settings = defaultdict(set)
        for case in cases:
            settings[case["scenario"]].add(case["setting"])
        for row in rows:
            for setting in settings[row["scenario"]]:
                own = _within(row["setting"], setting)
                if own is not None:
                    key, found = (row["scenario"], setting, row["method"]), {**row, "setting": own}
                    self._rows[key].append(found)
                    self._of_metric[key, row["metric"]].append(found)

    def narrowed(self, cases: list[dict]) -> "Numbers":
        """The same numbers for some of the cases."""
        fewer = Numbers([], cases)
        fewer._rows, fewer._of_metric = self._rows, self._of_metric
        return fewer

    def of(self, case: dict) -> list[dict]:
        """The case's rows; their ``setting`` is what remains without the case's own."""
        return self._rows.get(_key(case), [])

    def of_metric(self, case: dict, metric: str) -> list[dict]:
        """Those of one metric."""
        return self._of_metric.get((_key(case), metric), [])

    def failure(self, case: dict) -> str:
        """Why the method failed in this case, or "". Attacks and metrics that failed are another matter."""
        whole = (row for row in self.failures(case) if not row["attack"] and "metric=" not in row["setting"])
        return next((row["note"] or "no reason given" for row in whole), "")

    def failures(self, case: dict) -> list[dict]:
        """The rows that say what failed in this case."""
        return self.of_metric(case, "failed")

    def doubts(self, case: dict) -> list[str]:
        """What is hard to believe of a case whose logits came from elsewhere."""
        return [row["note"] for row in self.of_metric(case, "doubt")]

    def unchanged(self, case: dict) -> bool:
        """Whether the method returned exactly what it was given."""
        return bool(self.of_metric(case, "unchanged"))

    def cell(self, case: dict, metric: str, attack: str = "", setting: str = "") -> Cell:
        """The number of ``metric`` in a case, or an empty cell with the reason.

        Without ``attack``, the first of ``naming.ATTACKS`` that has the metric, else the first row's. Without
        ``setting``, the row without one, else the only one there is.
        """
        if failure := self.failure(case):
            return missing(failure, "failed")
        rows = self.of_metric(case, metric)
        if not rows and (failures := self.failures(case)):
            return missing("; ".join(map(failed, failures)))
        if not rows:
            return missing(f"protocol {case['protocol']} gives no {naming.meaning(metric).shown}")
        names = list(dict.fromkeys(row["attack"] for row in rows))
        chosen = attack or next((name for name in ("", *naming.ATTACKS) if name in names), names[0])
        rows = [row for row in rows if row["attack"] == chosen]
        gone = next((row for row in self.failures(case) if row["attack"] == chosen.partition("/")[0]), None)
        if not rows and gone:
            return missing(failed(gone))
        if not rows:
            return missing(f"attack {attack} is none of {', '.join(names)}")
        settings = list(dict.fromkeys(row["setting"] for row in rows))
        own = settings[0] if not setting and len(settings) == 1 else setting
        row = next((row for row in rows if row["setting"] == own), None)
        if row is None:
            shown = ", ".join(settings[:4]) + (" …" if len(settings) > 4 else "")
            return missing(f"{setting or 'an empty setting'} is none of {shown}; choose one with the field setting")
        flag = "unchanged" if self.unchanged(case) else ""
        note = row["note"] or ("no reason was recorded" if math.isnan(row["value"]) else "")
        return Cell(row["value"], row["ci_low"], row["ci_high"], row["n"], note, flag, metric, chosen, own)

    def pairs(self, case: dict, metric: str, attack: str = "") -> list[Cell]:
        """The number of every pair (or group) that was drawn, in order."""
        settings = (row["setting"].partition("pair=") for row in self.of_metric(case, metric))
        numbers = sorted({int(number) for before, _, number in settings if not before and number.isdigit()})
        found = [self.cell(case, metric, attack, f"pair={number}") for number in numbers]
        return [cell for cell in found if not cell.empty]

    def models(self, case: dict, metric: str, attack: str = "") -> list[float]:
        """The number of every model, in order; of the first attack that has it, if none is named."""
        rows = [row for row in self.of_metric(case, metric) if row["setting"].startswith("model=")]
        attack = attack or next((row["attack"] for row in rows), "")
        found = {int(row["setting"][6:]): row["value"] for row in rows if row["attack"] == attack}
        return [found[model] for model in sorted(found)]

    def primary(self, case: dict, attack: str = "") -> tuple[str, Cell]:
        """The metric that speaks for the case's protocol, and its number; ("", empty) if there is none."""
        rows = [row for other in self.cases if place(other) == place(case) for row in self.of(other)]
        have = {row["metric"] for row in rows}
        told = {row["metric"] for row in rows if not math.isnan(row["value"])}
        metric = next((name for some in (told, have) for name in naming.primary() if name in some), "")
        return metric, self.cell(case, metric, attack) if metric else missing("no metric speaks for this protocol")


def place(case: dict) -> tuple[str, str]:
    """Scenario and axis setting: what the methods of one comparison share."""
    return case["scenario"], case["setting"]


def places(cases: list[dict]) -> list[tuple[str, str]]:
    """Every scenario and axis setting, once, in study order."""
    return list(dict.fromkeys(map(place, cases)))


def label(where: tuple[str, str]) -> str:
    """Scenario and axis setting for people."""
    return ": ".join(filter(None, [where[0].replace("_", " "), naming.setting(where[1])]))


def methods(cases: list[dict]) -> list[str]:
    """Every method once: none first, the retrained last, the others in study order."""
    names = list(dict.fromkeys(case["method"] for case in cases))
    rank = {"none": -1, "retrain": 1, "retrain_control": 2}
    return sorted(names, key=lambda name: rank.get(name, 0))


def at(cases: list[dict], where: tuple[str, str], method: str) -> dict | None:
    """The case of a method in a scenario, or None."""
    return next((case for case in cases if place(case) == where and case["method"] == method), None)


def _key(case: dict) -> tuple[str, str, str]:
    """What rows are found by."""
    return case["scenario"], case["setting"], case["method"]


def _within(setting: str, case: str) -> str | None:
    """What remains of a row's setting without the case's; None if the row is of another case."""
    if not case or setting == case:
        return setting if not case else ""
    return setting.removeprefix(f"{case};") if setting.startswith(f"{case};") else None
