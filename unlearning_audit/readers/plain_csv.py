"""A table of losses or scores, one line for each sample: csv, tsv, parquet or json lines, of one model or of several.

Columns are known by name, in small or capital letters: a value (``loss``, ``nll``, ``score``, ``prob``, …; several are
several attacks), the side (``side``, ``role``, ``split``, ``member``), and if they are there ``sample``, ``model``,
``seed``, ``method``, ``step`` and ``kind`` (full, retrained, unlearned), which tell models apart, all together; a
``model`` may be called by what it is, too. Cells are separated by commas, semicolons, tabulators or bars. ``columns``
gives names to others.
"""

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
NEGATED = re.compile(r"^(-|(one_|1_)?minus_|negative_)|(^|_)(neg|negated|inverse|inverted)(_|$)")


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


def files(place: Path) -> list[Path]:
    """Tables at or below a path that have a column of values and one of sides."""
    paths = _texts.below(place, ".csv", ".tsv", ".txt", ".parquet", ".jsonl")
    if place.is_file():
        return paths
    return [path for path in paths if _readable(_header(path), {})]


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

    results = read_all(paths, models_of)
    unnamed = [result for result in results if isinstance(result, Model) and result.raw["unnamed"]]
    stems = Counter(model.file.stem for model in unnamed)
    for model in unnamed:
        if stems[model.file.stem] > 1:
            model.notes.append(
                "No column names samples: rows of several models are taken for the same samples in their order; a "
                "column sample would say it."
            )
    return results


def joined(models: list[Model]) -> list[Unread]:
    """Call models by their files and folders where nothing else names a method and these differ: models of one name
    would count as replicates."""
    unnamed = [model for model in models if model.role not in (NONE, RETRAIN) and not model.method]
    places = {id(model): model.file.resolve() for model in unnamed}
    top = os.path.commonpath([place.parent for place in places.values()]) if places else ""
    words = {key: _words.of_parts(_texts.bare(place).relative_to(top).parts) for key, place in places.items()}
    names = {key: "_".join(word for word in (*about.names, *about.recipe) if not SEED.match(word))
             for key, about in words.items()}  # fmt: skip
    if len({(names[key], about.step) for key, about in words.items()}) > 1:
        for model in unnamed:
            model.method = names[id(model)]
            model.step = words[id(model)].step if model.step is None else model.step
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

    try:
        if _texts.kind(path) == ".parquet":
            return pandas.read_parquet(path)
        if _texts.kind(path) == ".jsonl":
            return pandas.read_json(path, lines=True)
        separator = _separator(_first_line(path))
        decimal = "," if separator == ";" else "."
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            read_csv = partial(pandas.read_csv, path, sep=separator, skipinitialspace=True, index_col=False)
            table = read_csv(decimal=decimal)
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
    except Exception as error:
        raise ValueError(f"{path}: this table cannot be read ({str(error).strip()})") from None


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
    layout = layout_of([name.strip().strip('"') for name in header], renamed)
    return bool(layout.values) and "side" in layout.columns


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


def _model(path: Path, part, layout: Layout, root: Path, architectures: frozenset[str]) -> Model:
    import pandas

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
    model.raw["unnamed"] = "sample" not in columns
    side = _sides(path, part[columns["side"]], columns["side"])
    names = (
        part[columns["sample"]].astype(str) if "sample" in columns else [f"{path.stem}:{i}" for i in range(len(part))]
    )
    ids, owner = np.array([str(name) for name in names]), _owner(part, layout.keys)
    _check_samples(path, ids, side, owner, layout)
    for name, near in values.items():
        value = np.asarray(pandas.to_numeric(part[name], errors="coerce"), np.float64)
        if not np.isfinite(value).all():
            lines = np.flatnonzero(~np.isfinite(value))
            more = f" and for {len(lines) - 1} more" if len(lines) > 1 else ""
            raise ValueError(
                f"{path}: column {name!r} has no finite number for sample {ids[lines[0]]}{more}{owner}; write one, or "
                "leave these samples out of all models"
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
