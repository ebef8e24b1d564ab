"""A table of losses or scores, one line for each sample: csv, tsv, parquet or json lines, of one model or of several.

Columns are known by name, in small or capital letters: a value (``loss``, ``nll``, ``score``, ``prob``, …; several are
several attacks), the side (``side``, ``role``, ``split``, ``member``), and if they are there ``sample``, ``model``,
``method``, ``step`` and ``kind`` (full, retrained, unlearned); a ``model`` may be called by what it is, too. Cells are
separated by commas, semicolons, tabulators or bars. ``columns`` gives names to others.
"""

import json
import re
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _texts, _words
from unlearning_audit.readers._model import FORGET, HELDOUT, NONE, OTHER, RETAIN, RETRAIN, Model, Reading, Unread, each

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
COLUMNS = {
    "side": ("side", "role", "split", "part", "set", "subset", "member", "membership", "is_member", "label_member"),
    "sample": ("sample", "id", "index", "idx", "sample_id", "example", "example_id", "user_id"),
    "model": ("model", "model_id", "model_name", "seed", "run"),
    "method": ("method", "algorithm", "unlearning_method", "trainer"),
    "step": ("step", "checkpoint", "epoch"),
    "kind": ("kind", "model_role", "model_type", "stage", "state"),
}
#: What says which model a line is of, outermost first.
KEYS = ("kind", "method", "model")
#: Values of which less is more like a member, and those of which more is.
LOSSES = re.compile(r"^(.*_)?(loss|nll|ce|cross_entropy|perplexity|ppl|entropy)(_.*)?$")
SCORES = re.compile(r"^(.*_)?(score|prob|probability|confidence|logp|log_prob|margin|phi|logit)(_.*)?$")


class Options(Settings):
    """``columns``: what a column is → its name in the file, such as {"loss": "my_ce", "side": "which"}."""

    columns: dict[str, str] = Field(default_factory=dict)


def files(place: Path) -> list[Path]:
    """Tables at or below a path that have a column of values and one of sides."""
    paths = _texts.below(place, ".csv", ".tsv", ".txt", ".parquet", ".jsonl")
    if place.is_file():
        return paths
    return [path for path in paths if _readable(_header(path), {})]


def read(paths: list[Path], options: Options, root: Path) -> list[Model | Unread]:
    """A model for each kind, method, step and model that a table tells apart, or why it cannot be read, with the
    column."""

    def models_of(path: Path) -> list[Model]:
        table = frame(path)
        table.columns = [str(name).strip("\ufeff ") for name in table.columns]
        missing = [name for name in options.columns.values() if name not in table.columns]
        if missing:
            raise ValueError(f"{path}: there is no column {missing[0]!r}; it has {', '.join(table.columns)}")
        columns, values = columns_of(list(table.columns), options.columns)
        if not values:
            raise ValueError(f"{path}: no column of {', '.join(table.columns)} is called loss or score; see --columns")
        if "side" not in columns:
            raise ValueError(
                f"{path}: no column says which samples were to be forgotten and which were held out; call it side"
            )
        keys = [columns[name] for name in ("kind", "method", "step", "model") if name in columns]
        groups = table.groupby(keys, sort=True, dropna=False) if keys else [((), table)]
        return [_model(path, part, columns, values, root) for _, part in groups]

    return each(paths, models_of)


def frame(path: Path):
    """The table as a pandas DataFrame. Raises ValueError that names the file."""
    import pandas

    try:
        if _texts.kind(path) == ".parquet":
            return pandas.read_parquet(path)
        if _texts.kind(path) == ".jsonl":
            return pandas.read_json(path, lines=True)
        separator = _separator(_first_line(path))
        decimal = "," if separator == ";" else "."
        return pandas.read_csv(path, sep=separator, decimal=decimal, skipinitialspace=True)
    except Exception as error:
        raise ValueError(f"{path}: this table cannot be read ({error})") from None


def _first_line(path: Path) -> str:
    return _texts.head(path).split("\n", 1)[0].strip("\ufeff \r\t")


def _separator(line: str) -> str:
    """The one of the usual separators that divides the first line into most cells."""
    return max(",\t;|", key=line.count)


def _header(path: Path) -> list[str]:
    """Names of columns; none for what is no table."""
    line = _first_line(path)
    try:
        if _texts.kind(path) == ".parquet":
            return [str(name) for name in frame(path).columns]
        if _texts.kind(path) == ".jsonl":
            first = json.loads(line)
            return list(first) if isinstance(first, dict) else []
    except ValueError:
        return []
    return line.split(_separator(line))


def _readable(header: list[str], renamed: dict[str, str]) -> bool:
    columns, values = columns_of([name.strip().strip('"') for name in header], renamed)
    return bool(values) and "side" in columns


def columns_of(header: list[str], renamed: dict[str, str]) -> tuple[dict[str, str], dict[str, int]]:
    """What a column is → its name, and value column → +1 if more is more like a member, −1 if less."""
    plain = {name: name.lower().replace(" ", "_") for name in header}
    columns = {meaning: next((n for n in header if plain[n] in names), "") for meaning, names in COLUMNS.items()}
    columns |= {meaning: name for meaning, name in renamed.items() if meaning in COLUMNS}
    columns = {meaning: name for meaning, name in columns.items() if name}
    values = {
        name: -1 if LOSSES.match(plain[name]) else 1
        for name in header
        if name not in columns.values() and (LOSSES.match(plain[name]) or SCORES.match(plain[name]))
    }
    values |= {name: -1 if LOSSES.match(meaning) else 1 for meaning, name in renamed.items() if meaning not in COLUMNS}
    return columns, values


def _model(path: Path, part, columns: dict[str, str], values: dict[str, int], root: Path) -> Model:
    import pandas

    hints = _words.of_path(path, root)
    first = {meaning: _cell(part[columns[meaning]]) for meaning in (*KEYS, "step") if meaning in columns}
    from_cells = _words.of_parts(tuple(first[meaning] for meaning in KEYS if first.get(meaning)))
    role = from_cells.role or hints.role
    step = int(first["step"].removesuffix(".0")) if first.get("step", "").removesuffix(".0").isdigit() else hints.step
    named = first.get("method") or (first.get("model", "") if from_cells.names else "")
    method = "" if role in (NONE, RETRAIN) else named or hints.method
    model = Model(path, role, (), hints.recipe, method, step, hints.task)
    side = _sides(path, part[columns["side"]], columns["side"])
    names = (
        part[columns["sample"]].astype(str) if "sample" in columns else [f"{path.stem}:{i}" for i in range(len(part))]
    )
    ids = np.array([str(name) for name in names])
    for name, near in values.items():
        value = np.asarray(pandas.to_numeric(part[name], errors="coerce"), np.float64)
        if not np.isfinite(value).all():
            line = int(np.flatnonzero(~np.isfinite(value))[0])
            raise ValueError(f"{path}: column {name!r} has no finite number for sample {ids[line]}")
        label = name.lower().replace(" ", "_")
        audited = (side == FORGET) | (side == HELDOUT)
        if audited.any():
            model.ids, model.forget, model.heldout = (
                tuple(ids[audited]),
                side[audited] == FORGET,
                side[audited] == HELDOUT,
            )
            model.scores[label] = near * value[audited]
        share = bool((value >= 0).all() and (value <= 1).all())
        for role_name, word in ((FORGET, "forget"), (RETAIN, "retain"), (OTHER, "test")):
            rows = side == role_name
            if rows.any():
                model.readings[f"{word}_{label}"] = Reading(role_name, tuple(ids[rows]), value[rows], near, share)
    if not model.scores:
        raise ValueError(f"{path}: column {columns['side']!r} names no forgotten and no held-out samples")
    return model


def _cell(column) -> str:
    """The first value as text; nothing for one that is missing."""
    value = column.iloc[0]
    return "" if value is None or value != value else str(value)


def _sides(path: Path, column, name: str) -> np.ndarray:
    """forget, heldout, retain or other, which is the test part, of each line. Raises ValueError for a value that is
    none of them."""
    plain = column.astype(str).str.strip().str.lower().str.removesuffix(".0")
    # "forget_set", "retain90" and "holdout-10" say what "forget", "retain" and "holdout" say.
    plain = plain.str.replace(r"(?<=[a-z])[ _-]?(set|\d+)$", "", regex=True)
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
