"""Make the details behind each square of the matrix, as one JSON value for the whole study."""

import math
from typing import Any

from unlearning_audit.report import decisions, lookup, naming, words
from unlearning_audit.report.answer import Answer, Line
from unlearning_audit.report.decisions import Judged
from unlearning_audit.report.tables.cost import duration
from unlearning_audit.report.tables.typeset import interval
from unlearning_audit.stats import decide

#: Significant digits of the numbers in the page; files have all digits.
DIGITS = 6
#: Columns of a distance that the page shows and offers as csv.
FIELDS = (
    "metric", "attack", "deciding", "distance", "ci_low", "ci_high", "margin_far", "margin_near", "scale", "p_holm",
    "share_closed", "share_low", "share_high", "units", "models", "samples", "note",
)  # fmt: skip


def build(answers: list[Answer], cases: list[dict[str, Any]], command: str) -> dict[str, Any]:
    """Return what the page shows when a square of the matrix is opened: {"columns": {key: label, whether checks passed,
    and which methods are nearest}, "squares": {"method|key": details}}.

    Parameters
    ----------
    cases
        For each method in each scenario and setting, the file of its numbers (``metrics``).
    command
        The command that makes such a file again, without the file's name.
    """
    files = {(case["method"], lookup.place(case)): case["metrics"] for case in cases}
    squares, columns = {}, {}
    for answer in answers:
        state = answer.state
        columns[answer.key] = {"label": answer.head, "state": f"{state.sign} {state.words}",
                               "sentence": state.sentence, "nearest": _nearest(answer.judged)}  # fmt: skip
        for method, line in answer.squares.items():
            again = f"{command} --force {files[method, answer.judged.place]}"
            squares[f"{method}|{answer.key}"] = {**_square(answer.judged, line), "command": again}
    return {"columns": columns, "squares": squares}


def _square(judged: Judged, line: Line) -> dict[str, Any]:
    """Return the details of one square, a method in a scenario and setting: its verdict, ranks, distances, utility
    compared with retraining, and cost. A part without a value is "" or empty."""
    method = line.method
    row, gaps, seconds = judged.verdicts.get(method), judged.by_metric(method), judged.spent.get(method, math.nan)
    ranks = [row for row in judged.ranks if row["method"] == method]
    return {
        "number": line.number, "method": naming.method(method),
        "word": line.state.word, "mark": line.state.mark, "tone": line.tone,
        "sentence": line.sentence or (_reference(row) if row else ""),
        "ranks": "; ".join(f"{decisions.rank(row)} by {decisions.label(row['metric'])}" for row in ranks),
        "why": line.decides,
        "cost": "" if math.isnan(seconds) else f"about {duration(seconds)} for its models and the retrained ones",
        "distances": [_distance(gap) for gap in gaps.values() if gap["deciding"]],
        "worth": [{"label": decisions.label(name), "text": decisions.spelled(gap, fewest=3)}
                  for name, gap in gaps.items() if name in words.UTILITY],
        "rows": [{name: _plain(gap[name]) for name in FIELDS} for gap in gaps.values()],
    }  # fmt: skip


def _reference(row: dict[str, Any]) -> str:
    """Return a sentence on the verdict of a reference (none, retrain or the control): the note if the verdict is open,
    if the method failed or if there is no distance, else its state and p-value. ``row``: its row of verdicts.csv."""
    if row["verdict"] in (decide.FAILED, decide.INCONCLUSIVE, *decide.STATES) or math.isnan(row["distance"]):
        return str(row["note"])
    return f"{words.state(row['verdict']).word}, {decisions.probability(row['p_holm'])}"


def _nearest(judged: Judged) -> str:
    """Return a sentence on which methods may be nearest to retraining; "" for fewer than two ranked methods."""
    ranking, leaders = judged.ranking(), judged.leaders()
    if len(ranking) < 2:
        return ""
    metric = decisions.label(ranking[0]["metric"])  # all rows are by one metric
    if not leaders:
        return f"None of {len(ranking)} methods is proven to be nearer to retraining than another by {metric}, at 95 %."
    names, verb = words.joined([*map(naming.method, leaders)], "or"), "is" if len(leaders) == 1 else "may be"
    return f"{names} {verb} the nearest of {len(ranking)} methods to retraining by {metric}, at 95 %."


def _distance(gap: dict[str, Any]) -> dict[str, Any]:
    """Return the texts that the page shows for one deciding distance: metric, share of traces removed, distance, margin
    and p-value. ``gap``: its row in distances.csv."""
    return {
        "label": decisions.source(gap), "closed": decisions.share(gap) or "undefined",
        "text": interval(decisions.displayed(gap), decisions.decimals_of(gap)), "margin": decisions.margin(gap),
        "p": "" if math.isnan(gap["p_holm"]) else decisions.probability(gap["p_holm"]),
    }  # fmt: skip


def _plain(value: object) -> object:
    """Return a JSON value: numbers with `DIGITS` digits, null for NaN and infinity."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
