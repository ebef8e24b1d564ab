"""How many forgotten records, and whose, are still recognised: a line for each method of each scenario."""

from unlearning_audit.artifacts.records import Exposed
from unlearning_audit.display import lookup, naming
from unlearning_audit.display.tables.typeset import Entry, Head, Line, Sheet

READING = (
    "Forgotten records that are still recognised, of those looked at in all splits; at most one in ten of a list is "
    "false on average. Labels: of the listed records, the most frequent first."
)
HEADS = ("recognised", "share", "false at most", "people", "labels")
#: Labels of a line.
MOST = 5


def sheet(exposed: dict[tuple[str, str], dict[str, Exposed]], study: str) -> Sheet:
    """The table; the csv has the same numbers."""
    lines, records = [], []
    for where, methods in exposed.items():
        for method, one in methods.items():
            people = "" if one.people is None else f"{one.people[0]} of {one.people[1]}"
            labels = sorted(one.classes, key=lambda label: -one.classes[label])
            cells = (
                f"{one.recognised} of {one.looked}", f"{one.recognised / one.looked:.3f}", f"{one.false:.1f}", people,
                ", ".join(f"{label}: {one.classes[label]}" for label in labels[:MOST]) + " …" * (len(labels) > MOST),
            )  # fmt: skip
            lines.append(Line(naming.method(method), tuple(map(Entry, cells)), (), lookup.label(where)))
            records.append({
                "study": study, "scenario": where[0], "setting": where[1], "method": method, "looked": one.looked,
                "recognised": one.recognised, "false": one.false,
                "people_recognised": "" if one.people is None else one.people[0],
                "people": "" if one.people is None else one.people[1],
            })  # fmt: skip
    return Sheet("records", "Records", READING, "method", tuple(map(Head, HEADS)), tuple(lines), (), tuple(records))
