"""A table of losses or scores, one line for each sample: csv, tsv, parquet or json lines, of one model or of several.

Columns are known by name, in small or capital letters: a value (``loss``, ``nll``, ``score``, ``prob``, …; several are
several attacks), the side (``side``, ``role``, ``split``, ``member``), and if they are there ``sample``, ``model``,
``seed``, ``method``, ``step`` and ``kind`` (full, retrained, unlearned), which tell models apart, all together; a
``model`` may be called by what it is, too. Cells are separated by commas, semicolons, tabulators or bars. ``columns``
gives names to others.
"""

import hashlib
import io
import json
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _texts, _words
from unlearning_audit.readers._model import (
    FORGET,
    HELDOUT,
    NONE,
    OTHER,
    RETAIN,
    RETRAIN,
    UNKNOWN,
    Model,
    Reading,
    Unread,
    read_all,
)

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
    "model": ("model", "model_name", "model_id"),
    "seed": ("seed", "random_seed", "run", "run_id", "replicate"),
    "method": ("method", "algorithm", "unlearning_method", "trainer"),
    "step": ("step", "checkpoint", "epoch"),
    "kind": ("kind", "model_role", "model_type", "stage", "state"),
}
#: What says which model a line is of, outermost first.
KEYS = ("kind", "method", "model", "seed")
#: What tells models apart, in the order of the results.
APART = ("kind", "method", "step", "model", "seed")
#: Words of files that tell replicates apart.
SEED = re.compile(r"^((seed|rs|run|rep|replicate)[-=]?)?\d*$")
#: Values of which less is more like a member, and those of which more is; names that are negated mean the opposite.
LOSSES = re.compile(r"^(.*_)?(loss|nll|ce|cross_entropy|perplexity|ppl|entropy)(_.*)?$")
SCORES = re.compile(
    r"^(.*_)?(score|prob|probability|confidence|logp|log_prob|likelihood|log_likelihood|margin|phi|logit)(_.*)?$"
)
#: A column of values that is named after one of several models.
WIDE = re.compile(r"retrain|oracle")
NEGATED = re.compile(r"^(-|(one_|1_)?minus_|negative_)|(^|_)(neg|negated|inverse|inverted)(_|$)")

#: A number with a comma where others have a point.
COMMA = re.compile(r"\s*[-+]?\d*,\d+(e[-+]?\d+)?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """``columns``: what a column is → its name in the table. ``keys``: all columns that tell models apart.
    ``values``: value column → +1 if more is more like a member, −1 if less."""

    columns: dict[str, str]
    keys: list[str]
    values: dict[str, int]


class Options(Settings):
    """``columns``: what a column is → its name in the file, such as {"loss": "my_ce", "side": "which"}."""

    columns: dict[str, str] = Field(default_factory=dict)


def files(place: Path, options: Options) -> list[Path]:
    """Tables at or below a path that have a column of values and one of sides; of a folder also those that lack one of
    the two and those that are empty, for which ``read`` says why they are left out."""
    paths = _texts.below(place, ".csv", ".tsv", ".txt", ".parquet", ".jsonl", ".json")
    if place.is_file():
        return [path for path in paths if _texts.kind(path) != ".json" or _is_table(path, options)]
    return [path for path in paths if _is_table(path, options)]


def _is_table(path: Path, options: Options) -> bool:
    """Whether a file of a folder is meant as a table of samples; of formats that hold anything, one of all columns."""
    header = _header(path)
    renamed = {meaning: name for meaning, name in options.columns.items() if name in header}
    layout = layout_of(header, renamed)
    parts = bool(layout.values), "side" in layout.columns
    if _texts.kind(path) in (".txt", ".json"):
        return all(parts)
    unreadable = not any(header) and _texts.kind(path) != ".jsonl"
    return any(parts) or unreadable or not path.stat().st_size


def read(paths: list[Path], options: Options, root: Path) -> list[Model | Unread]:
    """A model for each kind, method, step, model and seed that a table tells apart, or why it cannot be read, with the
    column."""

    def models_of(path: Path) -> list[Model]:
        table = frame(path)
        table.columns = [str(name).strip("\ufeff ") for name in table.columns]
        if doubled := table.columns[table.columns.duplicated()].tolist():
            raise ValueError(f"{path}: two columns are called {doubled[0]!r}; rename one of them")
        layout = _layout(path, table, options)
        _check_steps(path, table, layout)
        groups = table.groupby(layout.keys, sort=True, dropna=False) if layout.keys else [((), table)]
        architectures = _architectures(table, layout.columns)
        return [_model(path, part, layout, root, architectures) for _, part in groups]

    return read_all(paths, models_of)


def joined(models: list[Model]) -> list[Unread]:
    """Where nothing else does, files and their folders say what a model is and what its method is called: models of one
    name would count as replicates. Words of all files say neither, as soon as one says what its model is."""
    rows = Counter(model.raw["rows"] for model in models)
    for model in models:
        if model.raw["rows"] and rows[model.raw["rows"]] > 1:
            model.notes.append(
                "No column names samples: rows of several models are taken for the same samples in their order; a "
                "column sample would say it."
            )
    places = [model.file.resolve() for model in models]
    top = os.path.commonpath([place.parent for place in places]) if places else ""
    words = [_words.of_parts(_texts.bare(place).relative_to(top).parts) for place in places]
    common = frozenset.intersection(*(frozenset(about.names) for about in words)) if words else frozenset()
    for model, about in zip(models, words, strict=True):
        if model.role == UNKNOWN and not model.method and all(SEED.match(name) for name in {*about.names} - common):
            model.role = about.role
    if not any(model.role in (NONE, RETRAIN) for model in models):
        common = frozenset()
    unnamed = [(model, about) for model, about in zip(models, words, strict=True)
               if model.role not in (NONE, RETRAIN) and not model.method]  # fmt: skip
    for model, about in unnamed:
        parts = (word for word in (*about.names, *about.recipe) if word not in common and not SEED.match(word))
        model.method = "_".join(parts)
        model.step = about.step if model.step is None else model.step
    return []


def _layout(path: Path, table, options: Options) -> Layout:
    """What the columns are. Raises ValueError that lists them where one is missing."""
    listed = ", ".join(table.columns)
    missing = [name for name in options.columns.values() if name not in table.columns]
    if missing:
        raise ValueError(f"{path}: there is no column {missing[0]!r}; it has {listed}")
    layout = layout_of(list(table.columns), options.columns)
    if not layout.values:
        raise ValueError(f"{path}: no column of {listed} is called loss or score; see --columns")
    if len(layout.values) > 1 and any(WIDE.search(name.lower()) for name in layout.values):
        raise ValueError(
            f"{path}: columns {', '.join(layout.values)} are of several models; write a row for each sample of each "
            "model instead, with one column for the value and a column model for its name"
        )
    if "side" not in layout.columns:
        likely = next((name for name in table.columns if _tells_sides(table[name])), "NAME")
        raise ValueError(
            f"{path}: no column of {listed} is known to say which samples were to be forgotten and which were held "
            f"out; call it side, or name it with --columns side={likely}"
        )
    return layout


def _architectures(table, columns: dict[str, str]) -> frozenset[str]:
    """Names in the column of models that name no single one, but what several are of: where seeds and methods have
    columns of their own, those of more than one kind or method."""
    if not {"model", "method", "seed"} <= set(columns):
        return frozenset()
    rows = table[[columns[meaning] for meaning in ("kind", "method", "model") if meaning in columns]].drop_duplicates()
    counts = Counter(map(_text, rows[columns["model"]]))
    words = {name: _words.of_parts((name,)) for name, count in counts.items() if count > 1 and not name.isdigit()}
    kinds = [_words.of_parts((_text(kind),)).role for kind in rows[columns["kind"]]] if "kind" in columns else []
    return frozenset(name for name, about in words.items() if any(kinds) or (about.names and not about.role))


def _step(text: str) -> int | None:
    """Which step a cell says, such as 100 of checkpoint-100."""
    return int(text) if text.isdigit() else _words.of_parts((text,)).step


def _check_steps(path: Path, table, layout: Layout) -> None:
    """Raises ValueError where one run has several steps and some is no number: they would count as further models."""
    if "step" not in layout.columns:
        return
    name = layout.columns["step"]
    runs = [key for key in layout.keys if key != name and key.lower() not in COLUMNS["step"]]
    for _, part in table.groupby(runs, dropna=False) if runs else [((), table)]:
        texts = [text for text in map(_text, part[name].unique()) if text]
        unknown = [text for text in texts if _step(text) is None]
        if len(texts) > 1 and unknown:
            raise ValueError(
                f"{path}: column {name!r} says {unknown[0]!r} where one model has several; steps must be whole "
                "numbers, such as 100"
            )


def _directions(values: dict[str, int]) -> list[str]:
    """Which columns became attacks and which way they are read, in sentences."""
    names = {near: ", ".join(name for name, sign in values.items() if sign == near) for near in (-1, 1)}
    words = {-1: "smaller", 1: "greater"}
    return [f"{names[near]}: a {word} value is taken for a member's." for near, word in words.items() if names[near]]


def frame(path: Path):
    """The table as a pandas DataFrame. Raises ValueError that names the file."""
    import pandas

    if not path.stat().st_size:
        raise ValueError(f"{path}: this file is empty; was the run that wrote it cut off?")
    try:
        if _texts.kind(path) == ".parquet":
            return pandas.read_parquet(path)
        if _texts.kind(path) in (".jsonl", ".json"):
            return pandas.read_json(path, lines=not _is_list(_texts.head(path)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            read_csv = partial(
                pandas.read_csv, path, sep=_separator(_first_line(path)), skipinitialspace=True, index_col=False,
                encoding=_texts.encoding(path),
            )  # fmt: skip
            table = read_csv(decimal=_decimal(path))
            columns = layout_of(list(table.columns), {}).columns
            words = [columns[meaning] for meaning in ("kind", "method") if meaning in columns]
            if words and table[words].isna().any(axis=None):  # None is a word there
                cells = read_csv(usecols=words, dtype=str, keep_default_na=False)[words]
                table[words] = table[words].astype(object).mask(cells == "None", "None")
            names = columns.get("sample")
            if names and table[names].isna().any():  # NA, None and nan are names of samples, too
                table[names] = read_csv(usecols=[names], dtype=str, keep_default_na=False)[names]
            return table
    except pandas.errors.ParserWarning:
        raise ValueError(
            f"{path}: rows have more cells than the header; name every column, and if these are decimal commas, "
            "separate cells by semicolons"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this table is not in UTF-8; save it anew, in Excel as CSV UTF-8") from None
    except Exception as error:
        line = _broken_line(path) if _texts.kind(path) == ".jsonl" else 0
        why = f"line {line} is no valid JSON; is the file complete?" if line else str(error).strip()
        raise ValueError(f"{path}: this table cannot be read ({why})") from None


def _broken_line(path: Path) -> int:
    """The first line of a file of JSON lines that is none, from 1; 0 if there is none."""
    with _texts.opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                json.loads(line or b"0")
            except ValueError:
                if line.strip():
                    return number
    return 0


def _is_list(text: str) -> bool:
    """Whether JSON is a list of records, not one on each line."""
    return text.lstrip("\ufeff \r\n\t").startswith("[")


def _decimal(path: Path) -> str:
    """What parts the decimals of a table's numbers. It is a comma where cells are separated by semicolons, or by
    tabulators or bars and are written so, as Excel does in Europe."""
    separator = _separator(_first_line(path))
    if separator == "," or _texts.kind(path) in (".parquet", ".jsonl", ".json"):
        return "."
    cell = rf"(?m)(^|[{separator}])-?\d+,\d+(e-?\d+)?\s*([{separator}]|$)"
    return "," if separator == ";" or re.search(cell, _texts.head(path)) else "."


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
            from pyarrow import parquet

            return parquet.read_schema(path).names
        if _texts.kind(path) in (".jsonl", ".json"):
            text = _texts.head(path).lstrip("\ufeff \r\n\t").removeprefix("[").lstrip()
            first, end = json.JSONDecoder().raw_decode(text)
            alone = _texts.kind(path) == ".json" and not text[end:].strip()  # an object, which is no table
            return list(first) if isinstance(first, dict) and not alone else []
    except (ValueError, OSError):
        return []
    return [name.strip().strip('"') for name in line.split(_separator(line))]


def layout_of(header: list[str], renamed: dict[str, str]) -> Layout:
    """What columns are by their names, and by those that are ``renamed`` (what a column is → its name)."""
    plain = {name: name.lower().replace(" ", "_") for name in header}
    matches = {
        meaning: [name for word in words for name in header if plain[name] == word and name not in renamed.values()]
        for meaning, words in COLUMNS.items()
    }
    matches |= {meaning: [name] for meaning, name in renamed.items() if meaning in COLUMNS}
    columns = {meaning: names[0] for meaning, names in matches.items() if names}
    keys = list(dict.fromkeys(name for meaning in APART for name in matches[meaning]))
    near = {name: _near(plain[name]) for name in header if name not in (*columns.values(), *keys)}
    values = {name: sign for name, sign in near.items() if sign}
    values |= {name: _near(meaning.lower()) or 1 for meaning, name in renamed.items() if meaning not in COLUMNS}
    return Layout(columns, keys, values)


def _near(name: str) -> int:
    """+1 for a column of which more is more like a member, −1 for one of which less is, 0 for one that is no value."""
    bare = name.removeprefix("-")
    near = -1 if LOSSES.match(bare) else 1 if SCORES.match(bare) else 0
    return -near if NEGATED.search(name) else near


def _label(column: str, text: str) -> str:
    """A cell as a name; a number says of which column it is."""
    return f"{column}_{text}" if text.isdigit() else text


def _method(columns: dict[str, str], first: dict[str, str]) -> str:
    """What the cells call a method: the method, else the model, the kind, and where there is no kind, the run, if their
    words say more than a role does. A seed names none."""
    if first.get("method"):
        return _label(columns["method"], first["method"])
    kind = first.get("kind", "")
    if _words.foreign(kind):
        return kind
    for meaning in ("model", "kind", *(() if kind else ("seed",))):
        text = first.get(meaning, "")
        if _words.of_parts((text,)).names and not (meaning == "seed" and re.fullmatch(r"\D*\d+", text)):
            return _label(columns[meaning], text)
    return ""


def _remedy(columns: dict[str, str]) -> str:
    """What in the table would say that a model was retrained."""
    if "kind" in columns:
        return f"call it retrained in column {columns['kind']!r}"
    return "add a column kind that says full, retrained or unlearned"


def _owner(part, keys: list[str]) -> str:
    """Of which model a part of the table is, such as kind full, seed 0; nothing where the table is of one."""
    cells = [f"{name} {text}" for name in keys if (text := _cell(part[name]))]
    return f" of the model with {', '.join(cells)}" if cells else ""


def _check_samples(path: Path, ids: np.ndarray, side: np.ndarray, owner: str, layout: Layout) -> None:
    """Raises ValueError for a sample that has two rows of one model."""
    doubled = next((name for name, count in Counter(ids.tolist()).items() if count > 1), None)
    if doubled is None:
        return
    sides = list(dict.fromkeys(side[ids == doubled].tolist()))
    if len(sides) > 1:
        raise ValueError(
            f"{path}: sample {doubled}{owner} is there twice, as {sides[0]} and as {sides[1]}; names of samples must "
            "differ between sides"
        )
    free = next((meaning for meaning in ("seed", "model", "method", "step") if meaning not in layout.columns), "")
    advice = f", or name the column that tells its models apart with --columns {free}=NAME" if free else ""
    raise ValueError(f"{path}: sample {doubled}{owner} is there twice; leave one of its rows out{advice}")


def numbers(path: Path, column) -> np.ndarray:
    """A column of `frame` as float64, NaN for what is no number. Raises ValueError, with the line, for a decimal comma
    where commas separate cells or other numbers have a point: it may as well part thousands."""
    import pandas

    value = np.array(pandas.to_numeric(column, errors="coerce"), np.float64)
    cells = {row: cell for row in np.flatnonzero(np.isnan(value)) if isinstance(cell := column.iloc[row], str)}
    commas = {row: cell for row, cell in cells.items() if COMMA.match(cell)}
    if not commas:
        return value
    beside = any(COMMA.match(str(cell).replace(".", ",")) for cell in column if "," not in str(cell))
    if beside or _decimal(path) != ",":
        row, cell = next(iter(commas.items()))
        more = " beside numbers with a point" if beside else ""
        place = f"{path}: {_line(path, column.index[row])}column {column.name!r}"
        raise ValueError(f"{place} says {cell!r}{more}; write all numbers with a point")
    value[list(commas)] = [float(cell.replace(",", ".")) for cell in commas.values()]
    return value


def _line(path: Path, row: int) -> str:
    """ "line 3, " of a row of `frame`, if the file has one for each."""
    of_json = _texts.kind(path) in (".jsonl", ".json")
    if _texts.kind(path) == ".parquet" or (of_json and _is_list(_texts.head(path))):
        return ""
    with _texts.opened(path) as file:
        lines = enumerate(io.TextIOWrapper(file, _texts.encoding(path), "replace"), start=1)
        filled = [number for number, line in lines if line.strip(" \n")]
    return f"line {filled[row + (not of_json)]}, "


def _model(path: Path, part, layout: Layout, root: Path, architectures: frozenset[str]) -> Model:
    columns, values = layout.columns, layout.values
    hints = _words.of_path(path, root)
    first = {meaning: _cell(part[columns[meaning]]) for meaning in (*KEYS, "step") if meaning in columns}
    words = (first.pop("model"),) if first.get("model") in architectures else ()
    kind, *rest = (first.get(meaning, "") for meaning in KEYS)
    role = _words.of_parts((kind,)).role or _words.of_parts(tuple(rest)).role or hints.role
    step = _step(first["step"]) if first.get("step") else hints.step
    method = "" if role in (NONE, RETRAIN) else _method(columns, first) or hints.method
    model = Model(path, role, words, hints.recipe, method, step, hints.task, remedy=_remedy(columns))
    model.notes += _directions(values)
    side = _sides(path, part[columns["side"]], columns["side"])
    model.raw["rows"] = rows = "" if "sample" in columns else _row_name(path, side)
    names = [f"{rows}:{i}" for i in range(len(part))] if rows else part[columns["sample"]].astype(str)
    ids, owner = np.array([str(name) for name in names]), _owner(part, layout.keys)
    _check_samples(path, ids, side, owner, layout)
    for name, near in values.items():
        value = numbers(path, part[name])
        if not np.isfinite(value).all():
            lines = np.flatnonzero(~np.isfinite(value))
            more = f" and for {len(lines) - 1} more" if len(lines) > 1 else ""
            raise ValueError(
                f"{path}: column {name!r} has no finite number for sample {ids[lines[0]]}{more}{owner}; write one, or "
                "leave these samples out of all models"
            )
        if near < 0 and np.median(value) < 0 and LOSSES.match(name.lower()):
            model.notes.append(
                f"{name}: most values are below 0, as of a log-likelihood; if it is one, say --columns score={name}."
            )
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


def _row_name(path: Path, side: np.ndarray) -> str:
    """What rows without a name are numbered under: the same in tables that have the same sides in the same order, if
    their names do not tell two tasks."""
    task = _words.of_parts((_texts.bare(path).name,)).task or "row"
    return f"{task}.{hashlib.sha256(' '.join(side).encode()).hexdigest()[:6]}"


def _cell(column) -> str:
    """The first value as text; nothing for one that is missing."""
    return _text(column.iloc[0])


def _text(value: object) -> str:
    """A cell as text; whole numbers have no point."""
    return "" if value is None or value != value else re.sub(r"^(\d+)[.]0$", r"\1", str(value))


def _sides(path: Path, column, name: str) -> np.ndarray:
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


def _tells_sides(column) -> bool:
    """Whether all cells are words of sides, of two at least; 0 and 1 may mean anything."""
    words = {word for names in (*SIDES.values(), TESTS, MEMBERS) for word in names}
    words -= {"0", "1", "true", "false"}
    values = set(_plain(column))
    return len(values) > 1 and values <= words
