"""Forgotten records that are still recognised, as text and pictures for the page."""

import re
from dataclasses import dataclass

from unlearning_audit.artifacts import records
from unlearning_audit.display import decisions

#: The only pictures that the page takes: a PNG in base64.
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LONGEST = 60_000  # characters of a picture
_PASSAGE = 600  # characters of a passage or of values


@dataclass(frozen=True)
class Card:
    """An exposed record: ``picture`` a data URI or empty, ``text`` its passage or values, ``words`` about it."""

    picture: str
    text: str
    words: str


@dataclass(frozen=True)
class Recognised:
    """``sentence`` on all records, and ``cards`` of the most exposed ones."""

    sentence: str
    cards: list[Card]


def read(path: str) -> dict[tuple[str, str], Recognised]:
    """(method, "scenario|setting") → what is said of its records, from a study's ``records.csv``."""
    places = records.exposed(path)
    return {
        (method, "|".join(place)): of(exposed)
        for place, methods in places.items()
        for method, exposed in methods.items()
    }


def of(exposed: records.Exposed) -> Recognised:
    """What the page says of one method's records in one scenario."""
    if not exposed.recognised:
        return Recognised(f"None of {exposed.looked} forgotten records looked at is still recognised.", [])
    verb = "is" if exposed.recognised == 1 else "are"
    sentence = (
        f"{exposed.recognised} of {exposed.looked} forgotten records looked at {verb} still recognised; at most "
        f"{exposed.false:.1f} of them are expected to be false"
    )
    if exposed.people is not None:
        sentence += f"; {exposed.people[0]} of {exposed.people[1]} persons or groups"
    return Recognised(f"{sentence}.", [card(line) for line in exposed.records])


def card(line: dict) -> Card:
    """One exposed record; content that is no such picture is left out."""
    parts = [f"sample {line['sample']:.0f}"]
    parts += [f"{name} {line[name]:.0f}" for name in ("label", "person") if line[name] == line[name]]
    parts.append(decisions.probability(line["p"]))
    content, picture, text = line["content"], "", ""
    if line["kind"] == records.PICTURE:
        picture = content if len(content) <= _LONGEST and _PNG.fullmatch(content) else ""
    else:
        text = content if len(content) <= _PASSAGE else f"{content[:_PASSAGE]}…"
    return Card(picture, text, ", ".join(parts))
