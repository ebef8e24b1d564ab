"""Recognise forgotten, held-out, retained and test samples by the words in a table's column."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from unlearning_audit.readers._model import FORGET, HELDOUT, OTHER, RETAIN

SIDES = {
    FORGET: ("forget", "forgotten", "unlearn", "unlearned", "deleted", "canary", "d_f", "df"),
    HELDOUT: ("heldout", "held_out", "holdout", "hold_out", "nonmember", "non_member", "non-member", "unseen", "out"),
    RETAIN: ("retain", "retained", "kept", "keep", "train", "d_r", "dr"),
}  # fmt: skip
#: Words for test samples, which count as held out if no other samples do.
TESTS = ("test", "val", "validation", "d_t", "dt")
#: Words for members, which count as forgotten if no samples are called forgotten.
MEMBERS = ("member", "members", "in", "train")
#: Values of a column whose name says what is true of a sample.
TRUE, FALSE = ("1", "true", "yes"), ("0", "false", "no")
#: Words in the name of a column that is true for forgotten samples, and words that reverse its meaning.
_OF_FORGOTTEN, _OF_OTHERS = {*SIDES[FORGET], "member", "members", "membership"}, {"non", "not", "no", "retain"}


def sides_of(path: Path, column: Any, name: str, meaning: str) -> np.ndarray:
    """Return the part of the data for each line of a column: forget, heldout, retain or other (the test part).

    Lines with no, 0 or false are held out. If no sample is called held out, test samples are the held-out ones. If no
    sample is called forgotten, members (`MEMBERS`, which has "train", too) and lines with yes, 1 or true are forgotten.

    Parameters
    ----------
    column
        A column of a pandas table.
    meaning
        The column's ``name``, or the user's word for it, such as member.

    Raises
    ------
    ValueError
        For an unknown value, and for values such as yes and no in a column whose name does not say what they mean.
    """
    # "Forget_Set", "Retain90" and "holdout-10" become "forget", "retain" and "holdout".
    plain = column.astype(str).str.strip().str.lower().str.removesuffix(".0")
    plain = plain.str.replace(r"(?<=[a-z])[ _-]?(set|\d+)$", "", regex=True)
    # Yes in non_member or retain is not said of forgotten samples, even if the user calls the column member.
    is_opposite, words = bool(_words(name) & _OF_OTHERS), _words(meaning)
    is_of_forgotten = words & _OF_FORGOTTEN and not words & _OF_OTHERS
    yes_or_no = plain.isin((*TRUE, *FALSE))
    if yes_or_no.any() and (is_opposite or not is_of_forgotten):
        cells = _listed(column[yes_or_no])
        option = "" if is_opposite else f", as by --columns member={name},"
        advice = f"if they mark the samples to be forgotten, call the column member{option}"
        problem = f"{path}: column {name!r} says {cells}, which may mean either side"
        raise ValueError(f"{problem}; write forget and heldout, or, {advice}")
    side_of = {value: side for side, values in SIDES.items() for value in values} | dict.fromkeys(FALSE, HELDOUT)
    some_held_out = plain.map(side_of).eq(HELDOUT).any()
    side_of |= dict.fromkeys(TESTS, OTHER if some_held_out else HELDOUT)
    if not plain.isin(SIDES[FORGET]).any():
        side_of |= dict.fromkeys((*MEMBERS, *TRUE), FORGET)
    unknown = column[~plain.isin(list(side_of))]  # cells that are no word of a part
    if len(unknown):
        expected = "forget, heldout, retain or test, or member and nonmember, or yes and no in a column member"
        raise ValueError(f"{path}: column {name!r} says {_listed(unknown)}; it must say {expected}")
    return np.asarray(plain.map(side_of))


def _words(name: str) -> set[str]:
    """Return the words of a name, in lower case. They are separated by signs, or begin with a capital letter."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def _listed(column: Any) -> str:
    """Return the different cells of a column as text, three at most: "'a', 'b', nothing and 4 more". "nothing" stands
    for a missing value."""
    # Only NaN differs from itself.
    cells = ["nothing" if value != value or value is None else repr(str(value)) for value in column.unique()]
    return ", ".join(cells[:3]) + (f" and {len(cells) - 3} more" if len(cells) > 3 else "")
