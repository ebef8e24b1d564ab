"""Samples that occur more than once: whether one copy is to be forgotten while another stays."""

from collections import Counter
from typing import Any

from unlearning_audit.report import lookup, words
from unlearning_audit.report.tables.typeset import Entry, Head, Line, Sheet
from unlearning_audit.store.files import read_json

#: What has a copy where, what is counted, of how many.
COLUMNS = (
    ("forgotten, with a copy", "kept", "forgotten_kept", "forgotten"),
    ("forgotten, with a copy", "held out", "forgotten_heldout", "forgotten"),
    ("held out, with a copy", "trained on", "heldout_trained", "heldout"),
)


def read(order: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the specs say of every place in ``order``, that of `workflow.parameters.copies`: ``groups`` of equal samples
    and ``pairs`` of a training and a test sample in the data, and counts of `COLUMNS` over all batches of models."""
    cache: dict[str, dict[str, Any]] = {}
    lines = []
    for place in order:
        data = cache.setdefault(place["data"], read_json(place["data"])).get("duplicates", {})
        counts: Counter[str] = Counter()
        for path in place["splits"]:
            counts.update(cache.setdefault(path, read_json(path)).get("copies", {}))
        where = {name: place[name] for name in ("scenario", "setting")}
        groups, pairs = (data.get(name, 0) for name in ("groups", "train_test_pairs"))
        lines.append({**where, "groups": groups, "pairs": pairs, **counts})
    return lines


def sheet(places: list[dict[str, Any]]) -> Sheet | None:
    """A line for every place whose data holds a sample twice; None if there is no such place."""
    lines = []
    for place in places:
        if place["groups"]:
            counts = [_count(place.get(part, 0), place.get(whole, 0)) for *_, part, whole in COLUMNS]
            plain = [Entry(f"{place[name]:,}") for name in ("groups", "pairs")]
            lines.append(Line(lookup.label((place["scenario"], place["setting"])), (*plain, *counts)))
    heads = [Head("groups", "equal samples"), Head("training–test pairs", "equal samples")]
    heads += [Head(where, group) for group, where, *_ in COLUMNS]
    return Sheet("copies", "Exact copies", words.COPIES, "scenario", tuple(heads), tuple(lines)) if lines else None


def _count(part: int, whole: int) -> Entry:
    return Entry(f"{part:,} of {whole:,}", tone="bad" if part else "good")
