"""Report samples that occur more than once: whether one copy is forgotten while another is retained."""

from collections import Counter
from typing import Any

from unlearning_audit.report import lookup, words
from unlearning_audit.report.tables.typeset import Entry, Head, Line, Sheet
from unlearning_audit.store.files import read_json

#: (group of columns, where the copy is, field that is counted, field of the total).
COLUMNS = (
    ("forgotten, with a copy", "kept", "forgotten_kept", "forgotten"),
    ("forgotten, with a copy", "held out", "forgotten_heldout", "forgotten"),
    ("held out, with a copy", "trained on", "heldout_trained", "heldout"),
)


def read(order: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for every scenario and setting with numbers of exact copies.

    ``groups``: groups of equal samples; ``pairs``: pairs of equal training and test samples; and the counts of
    `COLUMNS`, summed over the splits of all batches of models.

    Parameters
    ----------
    order
        For each scenario and setting, the path of the spec of its ``data``, and of the specs of its ``splits``.
    """
    rows = []
    for place in order:
        duplicates = read_json(place["data"]).get("duplicates", {})
        counts: Counter[str] = Counter()
        for path in place["splits"]:
            counts.update(read_json(path).get("copies", {}))
        where = {"scenario": place["scenario"], "setting": place["setting"]}
        groups, pairs = duplicates.get("groups", 0), duplicates.get("train_test_pairs", 0)
        rows.append({**where, "groups": groups, "pairs": pairs, **counts})
    return rows


def sheet(places: list[dict[str, Any]]) -> Sheet | None:
    """Return a table with a line for every scenario whose data hold a sample twice; None if there is no such scenario.

    A cell says how many samples have a copy, of how many, such as "3 of 50". A count that the specs lack is shown as 0.

    Parameters
    ----------
    places
        The rows that `read` returns.
    """
    lines = []
    for place in places:
        if place["groups"]:
            cells = [Entry(f"{place[name]:,}") for name in ("groups", "pairs")]
            for _, _, with_copy, total in COLUMNS:
                copied, samples = place.get(with_copy, 0), place.get(total, 0)
                cells.append(Entry(f"{copied:,} of {samples:,}", tone="bad" if copied else "good"))
            lines.append(Line(lookup.label_of(place), cells))
    heads = [Head("groups", "equal samples"), Head("training–test pairs", "equal samples")]
    heads += [Head(where, group) for group, where, _, _ in COLUMNS]
    return Sheet("copies", "Exact copies", words.COPIES, "scenario", heads, lines) if lines else None
