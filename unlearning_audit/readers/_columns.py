"""Recognise the columns of a table by their names: values and their direction, the role of samples, sample names,
models."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Meaning of a column → the names by which it is recognised, in order of preference.
COLUMNS = {
    "side": ("side", "role", "split", "part", "set", "subset", "member", "membership", "is_member", "label_member"),
    "sample": ("sample", "id", "index", "idx", "sample_id", "example", "example_id", "user_id", "img", "image"),
    "model": ("model", "model_name", "model_id"),
    "seed": ("seed", "random_seed", "run", "run_id", "replicate", "rep", "repeat", "trial", "fold"),
    "task": ("task", "forget_set", "request"),
    "method": ("method", "algorithm", "unlearning_method", "trainer"),
    "step": ("step", "checkpoint", "epoch"),
    "kind": ("kind", "model_role", "model_type", "stage", "state"),
}
#: The meanings of columns whose cells may tell a model's role, outermost first.
ROLE_MEANINGS = ("kind", "method", "model", "seed")
#: The meanings of columns that distinguish models, in the order of the results.
DISTINGUISHING = ("task", "kind", "method", "step", "model", "seed")
#: Names of values that are smaller for members, and of those that are larger; negated names mean the opposite.
LOSSES = re.compile(r"^(.*_)?(loss|nll|ce|cross_entropy|perplexity|ppl|entropy)(_.*)?$")
SCORES = re.compile(
    r"^(.*_)?(score|prob|probability|confidence|logp|log_prob|likelihood|log_likelihood|margin|phi|logit)(_.*)?$"
)
NEGATED = re.compile(r"^(-|(one_|1_)?minus_|negative_)|(^|_)(neg|negated|inverse|inverted)(_|$)")


@dataclass(frozen=True)
class Layout:
    """The meaning of a table's columns.

    Parameters
    ----------
    columns
        Meaning → name in the table.
    keys
        All columns that distinguish models.
    values
        Name of a column of values → +1 if larger values mean that the sample was more likely a member, −1 if smaller
        values mean so.
    side
        The name of the column that tells forgotten from held-out samples, or the user's word for it, such as member.
    """

    columns: dict[str, str]
    keys: list[str]
    values: dict[str, int]
    side: str = ""


def layout_of(header: list[str], renamed: dict[str, str]) -> Layout:
    """Return what the columns of a table mean, from their names.

    A user's word that is no meaning in `COLUMNS`, such as "loss", says that the column holds values. Values are taken
    to be larger for members, unless the word is the name of a loss.

    Parameters
    ----------
    header
        The names of the columns.
    renamed
        The user's word for a meaning, such as "side" or "member", → name of a column, which is preferred to columns
        with the usual names (`COLUMNS`).
    """
    plain = {name: name.lower().replace(" ", "_") for name in header}
    given = {_meaning(word): name for word, name in renamed.items()}  # meaning → the column that the user gave
    # Meaning → all columns that have it, the preferred one first.
    matches = {
        meaning: [name for word in words for name in header if plain[name] == word and name not in given.values()]
        for meaning, words in COLUMNS.items()
    }
    matches |= {meaning: [name] for meaning, name in given.items() if meaning in COLUMNS}
    columns = {meaning: names[0] for meaning, names in matches.items() if names}
    keys = list(dict.fromkeys(name for meaning in DISTINGUISHING for name in matches[meaning]))
    directions = {name: _direction(plain[name]) for name in header if name not in (*columns.values(), *keys)}
    values = {name: direction for name, direction in directions.items() if direction}
    values |= {name: _direction(meaning.lower()) or 1 for meaning, name in given.items() if meaning not in COLUMNS}
    # What yes and no mean in the column of sides is told by the user's word for it, such as member. The word "side"
    # does not tell it, nor does a missing word; the column's own name may.
    *_, word_for_side = ["side", *(word for word in renamed if _meaning(word) == "side")]  # the last word counts
    side = columns.get("side", "") if word_for_side == "side" else word_for_side
    return Layout(columns, keys, values, side)


def _meaning(word: str) -> str:
    """Return the meaning of a user's ``word`` for a column, such as "side" for "member"; a word that is not in
    `COLUMNS`, such as "loss", is returned unchanged."""
    plain = word.lower().replace(" ", "_")
    return next((meaning for meaning, words in COLUMNS.items() if plain in words), word)


def _direction(name: str) -> int:
    """Return the direction of a column's values, judged by the column's ``name``: +1 if larger values mean a member, −1
    if smaller values do, 0 if the column holds no values. A negated name, such as neg_loss, has the opposite
    direction."""
    bare = name.removeprefix("-")
    if not LOSSES.match(bare) and not SCORES.match(bare):
        return 0
    direction = -1 if LOSSES.match(bare) else 1
    return -direction if NEGATED.search(name) else direction


def complete_layout(path: Path, table: Any, renamed: dict[str, str]) -> Layout:
    """Return what the columns of a table mean, judged by their names, for a table that has at least one column of
    values and one that tells forgotten from held-out samples.

    Parameters
    ----------
    table
        A pandas DataFrame.
    renamed
        The user's word for a meaning → name of a column.

    Raises
    ------
    ValueError
        If a needed or renamed column is missing; the message lists the columns.
    """
    listed = ", ".join(table.columns)
    missing = [name for name in renamed.values() if name not in table.columns]
    if missing:
        raise ValueError(f"{path}: there is no column {missing[0]!r}; it has {listed}")
    layout = layout_of(list(table.columns), renamed)
    if not layout.values:
        raise ValueError(f"{path}: no column of {listed} is called loss or score; see --columns")
    if "side" not in layout.columns:
        advice = "name this column side, or give --columns side=NAME"
        problem = f"no column of {listed} says which samples were to be forgotten and which were held out"
        raise ValueError(f"{path}: {problem}; {advice}")
    return layout
