"""``records.csv``: forgotten records with their p-values and whether attacks recognise them, the content of the most
exposed records, and never-seen records beside them."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unlearning_audit.store import cells

#: The columns of one record in one list. ``models``: how many were evaluated together; ``sample``: number in the data,
#: ``row``: in the source; ``label``; ``person``: its subject; ``attack``: whose ``score`` gives ``p``, the p-value of
#: being an unseen record; ``p_person``: the p-value that none of the person's records is recognised; ``recognised`` and
#: ``person_recognised``: 0 or 1; ``rate``: the share of a list that may be false; ``yardstick``: what p compares with,
#: held-out records or retrained models; ``kind`` (picture, text, tokens, values) and ``content`` (a data URI of a PNG,
#: the passage, a JSON list of each token and −log p in nats, the numbers) of the most exposed ones; ``beside``: for a
#: never-seen record, which has no p, the forgotten sample beside which it is shown; empty for forgotten ones.
COLUMNS = (
    "pair", "split", "models", "sample", "row", "label", "person", "attack", "score", "p", "recognised", "p_person",
    "person_recognised", "rate", "yardstick", "kind", "content", "beside",
)  # fmt: skip
#: The columns of a whole study: whose records they are, and `COLUMNS`.
UNION = ("study", "scenario", "setting", "method", *COLUMNS)
PICTURE, TEXT, TOKENS, VALUES = "picture", "text", "tokens", "values"
_TEXT = {"study", "scenario", "setting", "method", "attack", "yardstick", "kind", "content"}


@dataclass(frozen=True)
class Exposed:
    """The records of one method in one scenario that attacks still recognise.

    Parameters
    ----------
    looked
        Records in all ``lists``, counted once for each list.
    recognised
        How many of these records are recognised.
    false
        At most how many of the recognised ones are expected to be false.
    people
        How many persons are recognised, and how many there are, None if the data do not say whose a record is.
    classes
        Label → recognised records.
    records
        Lines of the most exposed records with ``kind`` and ``content``, the smallest p first.
    unseen
        The never-seen records, by (pair, split, sample) of the forgotten record beside which they are shown.
    """

    looked: int
    recognised: int
    false: float
    people: tuple[int, int] | None
    classes: dict[int, int]
    records: list[dict[str, Any]]
    unseen: dict[tuple[float, float, float], dict[str, Any]]
    lists: int = 1


def read(path: str | Path, columns: tuple[str, ...] = COLUMNS) -> list[dict[str, Any]]:
    """Read the lines of a file with these ``columns``: column → text or float, NaN for an empty cell. Raises
    ArtifactError that names the file if it cannot be read or has other columns."""
    return cells.table(path, columns, text=_TEXT)


def summaries(lines: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Exposed]]:
    """Group lines of a study's ``records.csv``: return (scenario, setting) → method → summary of its recognised
    records.

    Parameters
    ----------
    lines
        Column of `UNION` → value.
    """
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for line in lines:
        groups.setdefault((line["scenario"], line["setting"]), {}).setdefault(line["method"], []).append(line)
    return {place: {method: summary(group) for method, group in methods.items()} for place, methods in groups.items()}


def summary(lines: list[dict[str, Any]]) -> Exposed:
    """Return a summary of one method's lines of ``records.csv``: how many records and persons are recognised, and the
    records.

    Lines of never-seen records do not count; they are only shown beside the forgotten ones.

    Parameters
    ----------
    lines
        Column of `UNION` → value.
    """
    unseen = {(line["pair"], line["split"], line["beside"]): line for line in lines if not forgotten(line)}
    lines = [line for line in lines if forgotten(line)]
    recognised = [line for line in lines if line["recognised"]]
    people = {  # each person counts once in a list, which is that of one pair and split
        (line["pair"], line["split"], line["person"]): line["person_recognised"]
        for line in lines if not math.isnan(line["person"])
    }  # fmt: skip
    classes = Counter(int(line["label"]) for line in recognised)
    # false: ``rate`` of a line is the share of its list that may be false. people: None if no line names a person.
    return Exposed(
        looked=len(lines), recognised=len(recognised), false=sum(line["rate"] for line in recognised),
        people=(sum(map(int, people.values())), len(people)) if people else None, classes=dict(sorted(classes.items())),
        records=sorted((line for line in lines if line["content"]), key=lambda line: (line["p"], -line["score"])),
        unseen=unseen, lists=len({(line["pair"], line["split"]) for line in lines}),
    )  # fmt: skip


def forgotten(line: dict[str, Any]) -> bool:
    """Return whether a line is about a forgotten record; else it is about a never-seen one that is shown beside it."""
    return math.isnan(line["beside"])
