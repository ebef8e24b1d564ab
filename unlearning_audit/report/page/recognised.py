"""Show forgotten records that are still recognised, beside never-seen ones, as text and pictures on the page."""

import json
import math
import re
from typing import Any, NamedTuple

from unlearning_audit.evaluation import records
from unlearning_audit.report import decisions

#: The only pictures that the page takes: a PNG in base64.
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
_LONGEST = 60_000  # characters of a picture
_PASSAGE = 600  # characters of a passage or of values
#: Lower limits of the levels of surprise, in nats: probabilities of 1/2, 1/7, 1/55 and 1/400.
LEVELS = (0.7, 2.0, 4.0, 6.0)


class Card(NamedTuple):
    """A record on the page.

    Parameters
    ----------
    picture
        A data URI, or "".
    tokens
        Parts of its passage, or its values, each with a level of surprise from 0 to 4, and a note.
    words
        What is known of the record: sample, label, person, score and p-value.
    """

    picture: str
    tokens: list[tuple[str, int, str]]
    words: str


#: (method, "scenario|setting") → how many records of this method are recognised, and the most exposed of them.
Found = dict[tuple[str, str], records.Exposed]


def read(path: str) -> Found:
    """Return (method, "scenario|setting") → how many of its records are recognised, and the most exposed of them, from
    the file ``records.csv`` of a study."""
    by_place = records.summaries(records.read(path, records.UNION)).items()
    return {(method, "|".join(place)): found for place, methods in by_place for method, found in methods.items()}


def pictured(found: Found, place: str, methods: list[str]) -> tuple[str, Card] | None:
    """Return the first of ``methods`` that has recognised records at a ``place``, "scenario|setting", and a picture of
    one of its most exposed records, and the card of the most exposed such record; None if no method has one."""
    listed = [(method, found[method, place]) for method in methods if (method, place) in found]
    cards = ((method, card(record)) for method, exposed in listed if exposed.recognised for record in exposed.records)
    return next(((method, shown) for method, shown in cards if shown.picture), None)


def card(record: dict[str, Any]) -> Card:
    """Return the card of one record: its content (picture, tokens or text), and words with its sample, label, person,
    score and p-value.

    An unknown label, person or p-value is left out, and so is a picture that is no PNG in base64 or longer than
    `_LONGEST`, and a list of tokens that is not valid. Text is cut after `_PASSAGE` characters. ``record``: a row of
    records.csv.
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
    return Card(picture, tokens, ", ".join(about))


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
