"""Show forgotten records that are still recognised, beside never-seen ones, as text and pictures on the page."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unlearning_audit.evaluation import records
from unlearning_audit.report import decisions, words

#: The only pictures that the page takes: a PNG in base64.
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LONGEST = 60_000  # characters of a picture
_PASSAGE = 600  # characters of a passage or of values
#: Lower limits of the levels of surprise, in nats: probabilities of 1/2, 1/7, 1/55 and 1/400.
LEVELS = (0.7, 2.0, 4.0, 6.0)


@dataclass(frozen=True)
class Card:
    """A record on the page.

    ``picture``: a data URI, or ""; ``tokens``: parts of its passage, or its values, each with a level of surprise from
    0 to 4, and a note; ``words``: about the record; ``beside``: the never-seen record that is shown beside it.
    """

    picture: str
    tokens: list[tuple[str, int, str]]
    words: str
    beside: "Card | None" = None


@dataclass(frozen=True)
class Recognised:
    """The recognised records of one method in one scenario: a ``sentence`` on all records, ``cards`` of the most
    exposed records, and how to ``read`` the cards."""

    sentence: str
    cards: list[Card]
    read: str = ""


def read(path: str) -> dict[tuple[str, str], Recognised]:
    """Return (method, "scenario|setting") → its recognised records, from a study's ``records.csv``."""
    places = records.exposed(path).items()
    return {(method, "|".join(place)): of(found) for place, methods in places for method, found in methods.items()}


def pictured(found: dict[tuple[str, str], Recognised], place: str, methods: list[str]) -> tuple[str, Card] | None:
    """Return the first of ``methods`` with a recognised record that has a picture, and the record; None without one."""
    for method in methods:
        for card in found[method, place].cards if (method, place) in found else ():
            if card.picture:
                return method, card
    return None


def of(exposed: records.Exposed) -> Recognised:
    """Return what the page shows of one method's recognised records in one scenario: a sentence with their number and
    how many are expected to be false, a card for each listed record, and how to read the cards.

    If no record is recognised, there is only a sentence that says so.
    """
    counted = f"{words.PER_SPLIT}," if exposed.lists > 1 else ""
    if not exposed.recognised:
        return Recognised(f"None of {exposed.looked} forgotten records{counted} is still recognised.", [])
    verb = "is" if exposed.recognised == 1 else "are"
    sentence = (
        f"{exposed.recognised} of {exposed.looked} forgotten records{counted} {verb} still recognised; at most "
        f"{exposed.false:.1f} of them are expected to be false"
    )
    if exposed.people is not None:
        # A text times a bool: "" for a single list.
        each = ", each counted in every split" * (exposed.lists > 1)
        sentence += f"; {exposed.people[0]} of {exposed.people[1]} persons or groups{each}"
    unseen = (exposed.unseen.get((line["pair"], line["split"], line["sample"])) for line in exposed.records)
    cards = [card(line, card(other) if other else None) for line, other in zip(exposed.records, unseen, strict=True)]
    return Recognised(f"{sentence}.", cards, " ".join(_reading(exposed)))


def _reading(exposed: records.Exposed) -> Iterator[str]:
    """Yield sentences on how to read the cards: the most exposed records, the records beside them, and the colours."""
    if exposed.recognised > len(exposed.records) > 0:
        yield f"Shown are the {len(exposed.records)} with the smallest p-values."
    if exposed.unseen:
        yield (
            "Beside each is the record never seen that the same attack finds most familiar, with the same label if "
            "there is one. A larger score means more familiar."
        )
    if any(line["kind"] == records.TOKENS for line in exposed.records):
        yield "The darker a token, the more it surprises the models (−log p in nats)."


def card(line: dict[str, Any], beside: Card | None = None) -> Card:
    """Return the card of one record: its content (picture, tokens or text) and a line with sample, label, person, score
    and p.

    ``line``: its row in records.csv; ``beside``: the card of a sample that was never seen. Content that is not a valid
    picture or list of tokens is left out; long text is cut.
    """
    parts = [f"sample {line['sample']:.0f}"]
    # A label, person or p that is unknown is NaN, which differs from itself.
    parts += [f"{name} {line[name]:.0f}" for name in ("label", "person") if line[name] == line[name]]
    parts.append(f"score {line['score']:.3g}".replace("-", "−"))
    if line["p"] == line["p"]:
        parts.append(decisions.probability(line["p"]))
    content, picture, tokens = line["content"], "", []
    if line["kind"] == records.PICTURE:
        picture = content if len(content) <= _LONGEST and _PNG.fullmatch(content) else ""
    elif line["kind"] == records.TOKENS:
        tokens = _tokens(content)
    else:
        tokens = [(content if len(content) <= _PASSAGE else f"{content[:_PASSAGE]}…", 0, "")]
    return Card(picture, tokens, ", ".join(parts), beside)


def _tokens(content: str) -> list[tuple[str, int, str]]:
    """Return (token, level of surprise, note in nats) for each token in the JSON list ``content``, up to the length of
    a passage, after which "…" stands; [] if the list is not valid."""
    try:
        pairs = [(str(text), None if nats is None else float(nats)) for text, nats in json.loads(content)]
    except (TypeError, ValueError):
        return []
    tokens: list[tuple[str, int, str]] = []
    letters = 0
    for text, nats in pairs:
        letters += len(text)
        if letters > _PASSAGE:
            return [*tokens, ("…", 0, "")]
        level = 0 if nats is None else sum(nats >= step for step in LEVELS)
        tokens.append((text, level, "" if nats is None else f"{nats:.2f} nats"))
    return tokens
