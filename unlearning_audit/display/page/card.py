"""A card of one method: what a battery of scenarios found, in one screen, from the tables of its finished study."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unlearning_audit.artifacts import cells
from unlearning_audit.artifacts.files import ArtifactError
from unlearning_audit.display import decisions, naming, words
from unlearning_audit.display.page import templates
from unlearning_audit.display.tables.typeset import number
from unlearning_audit.stats import decide

#: Verdicts by which a scenario breaks a method that stands elsewhere.
BREAKS = (decide.BROKEN, decide.OVER_UNLEARNED, decide.FAILED)
HEADS = ("scenario", "verdict", "closed", "distance", "accuracy lost", "rank", "× retraining")


@dataclass(frozen=True)
class Card:
    """``method``, its ``file`` and the ``command`` that makes this card; ``answer`` in a sentence; ``rows``, a cell for
    each of ``HEADS`` in every scenario; ``remarks``: of tuning, of learning again, of what breaks it."""

    method: str
    file: str
    command: str
    answer: str
    rows: list[list[str]]
    remarks: list[str]


def read(folder: Path, method: str, file: str, command: str) -> Card:
    """The card of ``method`` from the ``folder`` of a finished study. Raises ArtifactError that names a file which is
    missing or damaged."""
    verdicts = [row for row in _rows(folder, "verdicts") if row["method"] == method]
    if not verdicts:
        raise ArtifactError(f"{folder / 'tables/verdicts.csv'}: it says nothing of {method}; run the study again")
    ranks, costs = _rows(folder, "ranks"), _rows(folder, "cost")
    accuracies = [row for row in _rows(folder, "headline") if row["metric"] == "accuracy" and row["role"] == "test"]
    rows = [_row(row, ranks, costs, accuracies) for row in verdicts]
    remarks = [_tuned(folder, method), _again(folder, method), _broken(verdicts)]
    return Card(method, file, command, _answer(verdicts), rows, [remark for remark in remarks if remark])


def text(card: Card, width: int = 100) -> str:
    """The card as plain text, no line longer than ``width`` where cells allow it."""
    table = [list(HEADS), *card.rows]
    wide = [max(len(row[i]) for row in table) for i in range(len(HEADS))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, wide, strict=True)).rstrip() for row in table]
    sentences = [f"{card.method} ({card.file}): {card.answer}", *card.remarks, f"Made by: {card.command}"]
    first, *rest = ["\n".join(textwrap.wrap(sentence, width)) for sentence in sentences]
    return "\n".join([first, "", *lines, "", *rest])


def render(card: Card) -> str:
    """The card as a page that needs no network; names are escaped."""
    return templates.render("card.html", card=card, heads=HEADS)


def _rows(folder: Path, name: str) -> list[dict]:
    path = folder / "tables" / f"{name}.csv"
    return cells.read(path) if path.exists() else []


def _place(row: dict) -> str:
    return ", ".join(filter(None, (row["scenario"].replace("_", " "), naming.setting(row["setting"]))))


def _same(row: dict, place: dict) -> bool:
    return (row["scenario"], row["setting"]) == (place["scenario"], place["setting"])


def _row(verdict: dict, ranks: list[dict], costs: list[dict], accuracies: list[dict]) -> list[str]:
    method = verdict["method"]
    rank = next((row for row in ranks if _same(row, verdict) and row["method"] == method), None)
    seconds = [row for row in costs if row["what"] == "unlearn" and row["method"] == method and _same(row, verdict)]
    shares = {row["method"]: float(row["value"]) for row in accuracies if _same(row, verdict) and row["value"]}
    lost = shares.get("retrain", math.nan) - shares.get(method, math.nan)
    closed = _interval(verdict, ("share_closed", "share_low", "share_high"), lambda value: number(100 * value, 0))
    return [
        _place(verdict),
        f"{words.state(verdict['verdict']).mark} {words.state(verdict['verdict']).word}",
        f"{closed} %" if closed else "",
        _interval(verdict, ("distance", "ci_low", "ci_high"), lambda value: number(value, 2)),
        "" if math.isnan(lost) else number(lost, 3),
        "{:.0f} to {:.0f} of {:.0f}".format(*(float(rank[name]) for name in ("best", "worst", "methods")))
        if rank
        else "",
        number(float(seconds[0]["to_retrain"]), 3) if seconds and seconds[0]["to_retrain"] else "",
    ]


def _interval(row: dict, names: tuple[str, str, str], spell: Callable[[float], str]) -> str:
    """ "0.27 [0.23, 0.32]"; "" where there is no number."""
    value, low, high = (float(row[name] or "nan") for name in names)
    if math.isnan(value):
        return ""
    return spell(value) if math.isnan(low) else f"{spell(value)} [{spell(low)}, {spell(high)}]"


def _answer(verdicts: list[dict]) -> str:
    """ "equivalent to retraining in 1 of 4 scenarios, distinguishable in 3"."""
    count = Counter(row["verdict"] for row in verdicts)
    equivalent = count.pop(decide.EQUIVALENT, 0)
    more = [f"{decisions.WORDS[name]} in {times}" for name, times in count.most_common()]
    of = naming.count(len(verdicts), "setting" if any(row["setting"] for row in verdicts) else "scenario")
    return ", ".join([f"equivalent to retraining in {equivalent} of {of}", *more]) + "."


def _tuned(folder: Path, method: str) -> str:
    row = next((row for row in _rows(folder, "tuning") if row["method"] == method), None)
    if row is None:
        return "Its settings were not tuned: its file declares no TUNE."
    if not all(row[name] for name in ("tuned", "closer", "flatness")):
        return "Its settings were not tuned: none gave a number."
    changed = ", ".join(f"{name} {value}" for name, value in json.loads(row["changed"]).items())
    tuned, before = (float(row[name] or "nan") for name in ("tuned", "published"))
    closer = _interval(row, ("closer", "closer_low", "closer_high"), lambda value: number(value, 2))
    comparison = f", {number(before, 2)} with its defaults, closer by {closer}" if changed else ""
    return (
        f"Of {float(row['trials']):.0f} settings, {changed or 'its default'} was chosen on pairs of its own: "
        f"{number(tuned, 2)} margins from retraining on the audited ones{comparison}. "
        f"{number(100 * float(row['flatness']), 0)} % of the settings cannot be distinguished from the best."
    )


def _again(folder: Path, method: str) -> str:
    areas = {row["method"]: row for row in _rows(folder, "relearning") if row["metric"] == "relearn_area"}
    if not {method, "none"} <= areas.keys() or not areas[method]["value"]:
        return ""
    area, nothing = (
        _interval(areas[name], ("value", "ci_low", "ci_high"), lambda value: number(value, 2))
        for name in (method, "none")
    )
    return (
        f"When a half of what was forgotten is learned once more, the other half comes back by {area} more than with a "
        f"retrained model (area of accuracy over steps; doing nothing: {nothing})."
    )


def _broken(verdicts: list[dict]) -> str:
    places = [f"{_place(row)} ({decisions.WORDS[row['verdict']]})" for row in verdicts if row["verdict"] in BREAKS]
    return f"It breaks in {'; '.join(places)}." if places else ""
