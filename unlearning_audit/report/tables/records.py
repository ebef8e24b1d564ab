"""Make the table of forgotten records that are still recognised: how many and whose, for each method of each
scenario."""

from unlearning_audit.evaluation.records import Exposed
from unlearning_audit.report.tables import Entry, Head, Line, Sheet, lookup, naming, words

HEADS = ("recognised", "share", "false at most", "people", "labels")
#: The most labels that a line lists.
MOST = 5


def sheet(exposed: dict[tuple[str, str], dict[str, Exposed]], study: str) -> Sheet:
    """Return the table of forgotten records that are still recognised: how many, which share, how many of them are
    expected to be false, the people whose data they are, and their most frequent labels; a line for each method in each
    scenario.

    The csv has the same numbers without the labels. Methods for which no record was examined are left out.

    Parameters
    ----------
    exposed
        (scenario, setting) → method → counts.
    """
    lines, records = [], []
    several = any(counts.lists > 1 for methods in exposed.values() for counts in methods.values())
    for (scenario, setting), methods in exposed.items():
        for method, counts in methods.items():
            if not counts.looked:
                continue
            recognised_people, people = counts.people or ("", "")
            labels = sorted(counts.classes, key=lambda label: -counts.classes[label])
            listed = ", ".join(f"{label}: {counts.classes[label]}" for label in labels[:MOST])
            texts = (
                f"{counts.recognised} of {counts.looked}", f"{counts.recognised / counts.looked:.3f}",
                f"{counts.false:.1f}", f"{recognised_people} of {people}" if counts.people else "",
                f"{listed} …" if len(labels) > MOST else listed,
            )  # fmt: skip
            lines.append(Line(naming.method(method), [*map(Entry, texts)], section=lookup.label((scenario, setting))))
            records.append({
                "study": study, "scenario": scenario, "setting": setting, "method": method, "looked": counts.looked,
                "recognised": counts.recognised, "false": counts.false, "people_recognised": recognised_people,
                "people": people,
            })  # fmt: skip
    reading = words.RECORDS.format(f"{words.PER_SPLIT}, and so are people" if several else "")
    return Sheet("records", "Records", reading, "method", [*map(Head, HEADS)], lines, records)
