"""Which samples are to be forgotten and which were held out, by the words of a table's column."""

from pathlib import Path

import numpy as np

from unlearning_audit.readers._model import FORGET, HELDOUT, OTHER, RETAIN

SIDES = {
    FORGET: ("forget", "forgotten", "unlearn", "unlearned", "deleted", "canary"),
    HELDOUT: ("heldout", "held_out", "holdout", "hold_out", "nonmember", "non_member", "non-member", "unseen", "out",
              "0", "false"),
    RETAIN: ("retain", "retained", "kept", "keep", "train"),
}  # fmt: skip
#: What models are tested on: the test part, or, where nothing else was held out, that.
TESTS = ("test", "val", "validation")
#: Where nothing is called forgotten, members are.
MEMBERS = ("member", "members", "in", "train", "1", "true")


def sides_of(path: Path, column, name: str) -> np.ndarray:
    """forget, heldout, retain or other, which is the test part, of each line. Raises ValueError for a value that is
    none of them."""
    plain = _plain(column)
    forgotten_named = plain.isin(SIDES[FORGET]).any()
    side_of = {value: side for side, values in SIDES.items() for value in values}
    side_of |= dict.fromkeys(TESTS, OTHER if plain.isin(SIDES[HELDOUT]).any() else HELDOUT)
    if not forgotten_named:
        side_of |= dict.fromkeys(MEMBERS, FORGET)
    unknown = sorted(set(plain) - set(side_of))
    if unknown:
        expected = "forget, heldout, retain or test, or member and nonmember"
        raise ValueError(f"{path}: column {name!r} says {unknown[0]!r}; it must say {expected}")
    return plain.map(side_of).to_numpy()


def _plain(column):
    """Words of sides: "forget_set", "retain90" and "holdout-10" say what "forget", "retain" and "holdout" say."""
    plain = column.astype(str).str.strip().str.lower().str.removesuffix(".0")
    return plain.str.replace(r"(?<=[a-z])[ _-]?(set|\d+)$", "", regex=True)


def tells_sides(column) -> bool:
    """Whether all cells are words of sides, of two at least; 0 and 1 may mean anything."""
    words = {word for names in (*SIDES.values(), TESTS, MEMBERS) for word in names}
    words -= {"0", "1", "true", "false"}
    values = set(_plain(column))
    return len(values) > 1 and values <= words
