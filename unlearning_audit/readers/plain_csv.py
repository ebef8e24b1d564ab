"""A table of losses or scores, one line for each sample: csv, tsv or parquet, of one model or of several.

Columns are known by name, in small or capital letters: a value (``loss``, ``nll``, ``score``, ``prob``, …; several are
several attacks), the side (``side``, ``role``, ``split``, ``member``), and if they are there ``sample``, ``model``,
``method``, ``step`` and ``kind`` (full, retrained, unlearned). ``columns`` gives names to others.
"""

import re
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _texts, _words
from unlearning_audit.readers._model import FORGET, HELDOUT, RETAIN, Model, Reading

SIDES = {
    FORGET: ("forget", "forgotten", "unlearn", "unlearned", "deleted", "canary"),
    HELDOUT: ("heldout", "held_out", "holdout", "hold_out", "nonmember", "non_member", "non-member", "unseen", "out",
              "test", "val", "validation", "0", "false"),
    RETAIN: ("retain", "retained", "kept", "keep", "train"),
}  # fmt: skip
#: Where nothing is called forgotten, members are.
MEMBERS = ("member", "members", "in", "train", "1", "true")
COLUMNS = {
    "side": ("side", "role", "split", "part", "set", "subset", "member", "membership", "is_member", "label_member"),
    "sample": ("sample", "id", "index", "idx", "sample_id", "example", "example_id", "user_id"),
    "model": ("model", "model_id", "seed", "run"),
    "method": ("method", "algorithm"),
    "step": ("step", "checkpoint", "epoch"),
    "kind": ("kind", "model_role", "stage", "state"),
}
#: Values of which less is more like a member, and those of which more is.
LOSSES = re.compile(r"^(.*_)?(loss|nll|ce|cross_entropy|perplexity|ppl|entropy)(_.*)?$")
SCORES = re.compile(r"^(.*_)?(score|prob|probability|confidence|logp|log_prob|margin|phi|logit)(_.*)?$")


class Options(Settings):
    """``columns``: what a column is → its name in the file, such as {"loss": "my_ce", "side": "which"}."""

    columns: dict[str, str] = Field(default_factory=dict)


def files(place: Path) -> list[Path]:
    """Tables at or below a path that have a column of values and one of sides."""
    paths = _texts.below(place, ".csv", ".tsv", ".parquet")
    if place.is_file():
        return paths
    return [path for path in paths if _readable(_header(path), {})]


def read(paths: list[Path], options: Options, root: Path) -> list[Model]:
    """A model for each kind, method, step and model that a table tells apart. Raises ValueError that names a file and
    a column."""
    models = []
    for path in paths:
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
        models += [_model(path, part, columns, values, root) for _, part in groups]
    return models


def frame(path: Path):
    """The table as a pandas DataFrame. Raises ValueError that names the file."""
    import pandas

    try:
        if path.suffix == ".parquet":
            return pandas.read_parquet(path)
        return pandas.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", skipinitialspace=True)
    except Exception as error:
        raise ValueError(f"{path}: this table cannot be read ({error})") from None


def _header(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return [str(name) for name in frame(path).columns]
    return re.split(r"[,\t]", _texts.head(path).split("\n", 1)[0].strip("\ufeff \r\t"))


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
    first = {meaning: part[columns[meaning]].iloc[0] for meaning in ("kind", "method", "step") if meaning in columns}
    from_kind = _words.of_parts(tuple(str(first[meaning]) for meaning in ("kind", "method") if meaning in first))
    role = from_kind.role or hints.role
    step = int(first["step"]) if "step" in first and str(first["step"]).replace(".0", "").isdigit() else hints.step
    method = "" if role in ("none", "retrain") else str(first.get("method", "")) or hints.method
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
        for role_name in (FORGET, RETAIN):
            rows = side == role_name
            if rows.any():
                model.readings[f"{role_name}_{label}"] = Reading(role_name, tuple(ids[rows]), value[rows], near, share)
    if not model.scores:
        raise ValueError(f"{path}: column {columns['side']!r} names no forgotten and no held-out samples")
    return model


def _sides(path: Path, column, name: str) -> np.ndarray:
    """forget, heldout or retain of each line. Raises ValueError for a value that is none of them."""
    plain = column.astype(str).str.strip().str.lower().str.removesuffix(".0")
    forgotten_named = plain.isin(SIDES[FORGET]).any()
    side_of = {value: side for side, values in SIDES.items() for value in values}
    if not forgotten_named:
        side_of |= dict.fromkeys(MEMBERS, FORGET)
    unknown = sorted(set(plain) - set(side_of))
    if unknown:
        expected = "forget, heldout or retain, or member and nonmember"
        raise ValueError(f"{path}: column {name!r} says {unknown[0]!r}; it must say {expected}")
    return plain.map(side_of).to_numpy()
