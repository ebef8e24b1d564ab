"""``records.csv``: forgotten records with their p-values, which are recognised, what the most exposed ones are, and
never-seen ones beside these."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from unlearning_audit.store import cells, tables

#: Of one record in one list: ``models`` that were read together; ``sample`` in the data, ``row`` in the source,
#: ``label``, ``person`` (its subject); ``attack`` by whose ``score`` it has ``p``, that it is an unseen record;
#: ``p_person``, that none of the person's records is recognised; ``recognised`` and ``person_recognised`` 0 or 1;
#: ``rate``: the share of a list that may be false; ``yardstick``: held-out records, or retrained models; ``kind``
#: (picture, text, tokens, values) and ``content`` (a data URI of a PNG, the passage, a JSON list of each token and
#: −log p in nats, the numbers) of the most exposed ones; ``beside``: of a never-seen record, which has no p, the sample
#: that it stands beside; empty for forgotten ones.
COLUMNS = (
    "pair", "split", "models", "sample", "row", "label", "person", "attack", "score", "p", "recognised", "p_person",
    "person_recognised", "rate", "yardstick", "kind", "content", "beside",
)  # fmt: skip
#: Of a whole study: whose records they are.
UNION = ("study", "scenario", "setting", "method", *COLUMNS)
PICTURE, TEXT, TOKENS, VALUES = "picture", "text", "tokens", "values"
_TEXT = {"study", "scenario", "setting", "method", "attack", "yardstick", "kind", "content"}


@dataclass(frozen=True)
class Exposed:
    """What is still recognised of one method in one scenario.

    ``looked``: records in all ``lists``, a record once for each list; ``recognised``: how many of these are listed, of
    which ``false`` are expected to be false at most; ``people``: how many persons are recognised, of how many, None
    where data do not say whose records are; ``classes``: label → records listed; ``records``: lines of the most exposed
    records with ``kind`` and ``content``, the least p first; ``unseen``: those never seen, by (pair, split, sample) of
    the forgotten record that they stand beside.
    """

    looked: int
    recognised: int
    false: float
    people: tuple[int, int] | None
    classes: dict[int, int]
    records: list[dict]
    unseen: dict[tuple[float, float, float], dict]
    lists: int = 1


def write(path: str | Path, records: list[dict], columns: tuple[str, ...] = COLUMNS) -> None:
    """Write lines with ``columns``, numbers in full precision."""
    tables.write_rows(path, records, columns)


def read(path: str | Path, columns: tuple[str, ...] = COLUMNS) -> list[dict]:
    """The lines. Raises ArtifactError as `cells.table`."""
    return cells.table(path, columns, text=_TEXT)


def exposed(path: str | Path) -> dict[tuple[str, str], dict[str, Exposed]]:
    """(scenario, setting) → method → what is recognised, from a study's ``records.csv`` (columns ``UNION``)."""
    return grouped(read(path, UNION))


def grouped(lines: list[dict]) -> dict[tuple[str, str], dict[str, Exposed]]:
    """`exposed` of lines with the columns ``UNION``."""
    cases: dict[tuple[str, str, str], list[dict]] = {}
    for line in lines:
        cases.setdefault((line["scenario"], line["setting"], line["method"]), []).append(line)
    places: dict[tuple[str, str], dict[str, Exposed]] = {}
    for (scenario, setting, method), part in cases.items():
        places.setdefault((scenario, setting), {})[method] = summed(part)
    return places


def summed(lines: list[dict]) -> Exposed:
    """What the lines of one method say."""
    unseen = {(line["pair"], line["split"], line["beside"]): line for line in lines if not forgotten(line)}
    lines = [line for line in lines if forgotten(line)]
    marked = [line for line in lines if line["recognised"]]
    people: dict[tuple[float, float, float], float] = {}
    for line in lines:
        if not math.isnan(line["person"]):
            people[line["pair"], line["split"], line["person"]] = line["person_recognised"]
    classes = Counter(int(line["label"]) for line in marked)
    return Exposed(
        len(lines), len(marked), sum(line["rate"] for line in marked),
        (sum(map(int, people.values())), len(people)) if people else None, dict(sorted(classes.items())),
        sorted((line for line in lines if line["content"]), key=lambda line: (line["p"], -line["score"])),
        unseen, len({(line["pair"], line["split"]) for line in lines}),
    )  # fmt: skip


def forgotten(line: dict) -> bool:
    """Whether a line is of a forgotten record; else of a never-seen one that stands beside it."""
    return math.isnan(line["beside"])
