"""Show forgotten records that are still recognised, beside never-seen ones, as text and pictures on the page."""

import json
import math
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

    Parameters
    ----------
    picture
        A data URI, or "".
    tokens
        Parts of its passage, or its values, each with a level of surprise from 0 to 4, and a note.
    words
        About the record.
    beside
        The never-seen record that is shown beside it.
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
    """Return (method, "scenario|setting") → what the page shows of the recognised records of this method, from the file
    ``records.csv`` of a study."""
    by_place = records.summaries(records.read(path, records.UNION)).items()
    return {
        (method, "|".join(place)): describe(found) for place, methods in by_place for method, found in methods.items()
    }


def pictured(found: dict[tuple[str, str], Recognised], place: str, methods: list[str]) -> tuple[str, Card] | None:
    """Return the first of ``methods`` with a recognised record that has a picture, and the card of this record; None if
    no method has one.

    Parameters
    ----------
    found
        (method, "scenario|setting") → the recognised records, as `read` returns them.
    place
        "scenario|setting".
    """
    for method in methods:
        cards = found[method, place].cards if (method, place) in found else []
        with_picture = [card for card in cards if card.picture]
        if with_picture:
            return method, with_picture[0]
    return None


def describe(exposed: records.Exposed) -> Recognised:
    """Return what the page shows of one method's recognised records in one scenario: a sentence on how many there are
    and how many of them are expected to be false, a card for each listed record, and how to read the cards.

    The sentence also counts the recognised persons if the data say whose a record is. If no record is recognised, there
    is only a sentence that says so.
    """
    # With several lists of forgotten records, one for each split, a record counts once for each list.
    counted = f"{words.PER_SPLIT}," if exposed.lists > 1 else ""
    if not exposed.recognised:
        return Recognised(f"None of {exposed.looked} forgotten records{counted} is still recognised.", [])
    verb = "is" if exposed.recognised == 1 else "are"
    sentence = f"{exposed.recognised} of {exposed.looked} forgotten records{counted} {verb} still recognised"
    sentence += f"; at most {exposed.false:.1f} of them are expected to be false"
    if exposed.people is not None:
        recognised, total = exposed.people
        each = ", each counted in every split" if exposed.lists > 1 else ""
        sentence += f"; {recognised} of {total} persons or groups{each}"
    cards = []
    for record in exposed.records:
        unseen = exposed.unseen.get((record["pair"], record["split"], record["sample"]))
        cards.append(card(record, beside=card(unseen) if unseen else None))
    return Recognised(f"{sentence}.", cards, " ".join(_reading(exposed)))


def _reading(exposed: records.Exposed) -> Iterator[str]:
    """Yield sentences on how to read the cards: that not all records are shown, what stands beside them, and what
    colours of tokens mean. A sentence is left out where it does not apply."""
    if exposed.recognised > len(exposed.records) > 0:
        yield f"Shown are the {len(exposed.records)} with the smallest p-values."
    if exposed.unseen:
        yield (
            "Beside each is the record never seen that the same attack finds most familiar, with the same label if "
            "there is one. A larger score means more familiar."
        )
    if any(record["kind"] == records.TOKENS for record in exposed.records):
        yield "The darker a token, the more it surprises the models (−log p in nats)."


def card(record: dict[str, Any], beside: Card | None = None) -> Card:
    """Return the card of one record: its content (picture, tokens or text), and words with its sample, label, person,
    score and p-value.

    An unknown label, person or p-value is left out, and so is a picture or list of tokens that is not valid. Long text
    is cut.

    Parameters
    ----------
    record
        A row of records.csv.
    beside
        The card of a sample that was never seen.
    """
    about = [f"sample {record['sample']:.0f}"]
    about += [f"{name} {record[name]:.0f}" for name in ("label", "person") if not math.isnan(record[name])]
    about.append(f"score {record['score']:.3g}".replace("-", "−"))
    if not math.isnan(record["p"]):
        about.append(decisions.probability(record["p"]))
    content, picture, tokens = record["content"], "", []
    if record["kind"] == records.PICTURE:
        picture = content if len(content) <= _LONGEST and _PNG.fullmatch(content) else ""
    elif record["kind"] == records.TOKENS:
        tokens = _tokens(content)
    else:
        tokens = [(content if len(content) <= _PASSAGE else f"{content[:_PASSAGE]}…", 0, "")]
    return Card(picture, tokens, words=", ".join(about), beside=beside)


def _tokens(content: str) -> list[tuple[str, int, str]]:
    """Return (token, level of surprise, note) for each token in ``content``, a JSON list of [token, nats].

    [] if ``content`` is not such a list. The level is the number of `LEVELS` that the nats reach, and the note states
    the nats; without nats, the level is 0 and the note "". Tokens beyond the first `_PASSAGE` letters are replaced by
    one "…".
    """
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
        level = 0 if nats is None else sum(nats >= limit for limit in LEVELS)
        tokens.append((text, level, "" if nats is None else f"{nats:.2f} nats"))
    return tokens
