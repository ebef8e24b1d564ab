"""A table of losses or scores, one line for each sample, of one model or of several: csv, tsv, parquet, json, npz.

Columns are recognised by name, in small or capital letters: values (``loss``, ``nll``, ``score``, ``prob``, …; several
are several attacks); the side (``side``, ``role``, ``split``, ``member``); and, if they exist, ``sample``, ``model``,
``seed``, ``method``, ``step`` and ``kind`` (full, retrained, unlearned), which together distinguish models. The name of
a ``model`` may also be its kind. Cells are separated by commas, semicolons, tabulators or bars. ``columns`` renames
columns with other names.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _model, _texts, _words
from unlearning_audit.readers._columns import KEYS, LOSSES, Layout, complete_layout, layout_of
from unlearning_audit.readers._model import FORGET, HELDOUT, NONE, OTHER, RETAIN, RETRAIN, Model, Reading, Unread
from unlearning_audit.readers._sides import sides_of
from unlearning_audit.readers._tables import TEXT, TYPED, WORKBOOKS, frame, header, numbers

#: Words in the name of a model's column that say what its values are.
VALUE_WORD = re.compile(r"^(loss|nll|ce|score|prob)[_-]|[_-](loss|nll|ce|score|prob)$", re.IGNORECASE)

#: Words in the name of a table, and the direction of its values: −1 if smaller ones are more like a member's.
VALUE_OF_FILE = ((-1, "loss"), (-1, "nll"), (1, "score"), (1, "prob"))

#: Words in the names of files that number replicates.
SEED = re.compile(r"^((seed|rs|run|rep|replicate)[-=]?)?\d*$")


class Options(Settings):
    """``columns``: meaning of a column → its name in the file, such as {"loss": "my_ce", "side": "which"}."""

    columns: dict[str, str] = Field(default_factory=dict)


def files(place: Path, options: Options) -> list[Path]:
    """Return the tables at or below a path that have a column of values and one of sides. In a folder, tables that lack
    one of them and empty ones are included, so that ``read`` can say why they are left out."""
    paths = _texts.below(place, *TEXT, *TYPED, *WORKBOOKS)
    return [path for path in paths if _is_table(path, options, explicit=path == place)]


def _is_table(path: Path, options: Options, *, explicit: bool) -> bool:
    """Return whether a file is meant as a table of samples, judged by its columns of values and of sides.

    A file that the user named (``explicit``) is one, unless it is JSON or ``.npz`` and has neither column. In a folder,
    ``.txt``, JSON and ``.npz`` need both columns, and other files need one. Empty files and those without a readable
    header count too, so that the user learns of them.
    """
    any_content = (".json", ".npz")
    if explicit and _texts.kind(path) not in any_content:
        return True
    names = header(path)
    renamed = {meaning: name for meaning, name in options.columns.items() if name in names}
    layout = layout_of(names, renamed)
    parts = bool(layout.values), "side" in layout.columns
    if not explicit and _texts.kind(path) in (".txt", *any_content):
        return all(parts)
    unreadable = not any(names) and _texts.kind(path) not in (".jsonl", ".json")
    return any(parts) or unreadable or not path.stat().st_size


def read(paths: list[Path], options: Options, root: Path) -> list[Model | Unread]:
    """Return a model for each kind, method, step, model and seed that a table distinguishes, or why it cannot be read,
    with the column. A sample without a finite number in some model is left out of all models of its table."""

    def models_of(path: Path) -> list[Model]:
        """Return the models of one table."""
        table = frame(path)
        table.columns = [str(name).strip("\ufeff ") for name in table.columns]
        if doubled := table.columns[table.columns.duplicated()].tolist():
            raise ValueError(f"{path}: two columns are called {doubled[0]!r}; rename one of them")
        table, renamed = _by_models(path, table, options.columns)
        layout = complete_layout(path, table, renamed)
        for name in layout.values:
            table[name] = numbers(path, table[name])
        groups = table.groupby(layout.keys, sort=True, dropna=False) if layout.keys else [((), table)]
        parts = [(part, _damage(part, layout.values)) for _, part in groups]
        lost = {sample for part, damage in parts if not damage for sample in _without_number(path, part, layout)}
        if lost:
            parts = [(part[~part[layout.columns["sample"]].isin(lost)], damage) for part, damage in parts]
        architectures = _architectures(table, layout.columns)
        models = [_of_rows(path, part, layout, root, architectures, damage) for part, damage in parts]
        for model in models if lost else ():
            model.notes.append(
                f"{path}: {len(lost)} samples lack a number in some model; they are left out of all models."
            )
        return models

    return _model.read_all(paths, models_of)


def _by_models(path: Path, table: Any, renamed: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Convert a table that has a column of values for each model to one with a row for each sample of each model: a
    column "model" has the names of those columns, and a column "loss" or "score" their values. Return it with those of
    ``renamed`` whose columns are still there.

    ``renamed``: meaning → name of a column, as the user gave it. A table that lacks two columns of numbers with unknown
    names, or of which none is called retrained, is returned unchanged. Raises ValueError if neither the columns nor the
    name of the file say whether the values are losses or scores.
    """
    layout = layout_of(list(table.columns), {what: name for what, name in renamed.items() if name in table.columns})
    free = [name for name in table.columns if name not in layout.columns.values() and table[name].dtype.kind in "if"]
    if len(free) < 2 or not any(_words.of_parts((name,)).role == RETRAIN for name in free):
        return table, renamed
    signs = set(layout.values.values()) or {sign for sign, word in VALUE_OF_FILE if word in path.name.lower()}
    if len(signs) != 1:
        raise ValueError(
            f"{path}: columns {', '.join(free)} belong to several models; say what they hold with --columns "
            f"loss={free[0]} or --columns score={free[0]}"
        )
    names = {name: VALUE_WORD.sub("", name) or name for name in free}
    kept = [name for name in table.columns if name not in free]
    table = table.rename(columns=names).melt(
        kept, list(names.values()), var_name="model", value_name="loss" if signs == {-1} else "score"
    )
    return table, {what: name for what, name in renamed.items() if name not in free}


#: Names of losses for which exp(-loss) is a probability.
CROSS_ENTROPY = re.compile(r"(^|_)(loss|nll|ce|cross_entropy)(_|$)")


def _damage(part: Any, values: Iterable[str]) -> str:
    """Return which column has no finite number for more than half of the samples of a model; "" if none."""
    for name in values:
        infinite = int((~np.isfinite(part[name])).sum())
        if 2 * infinite > len(part):
            return f"{name} is NaN or infinite for {infinite} of {len(part)} samples"
    return ""


def _without_number(path: Path, part: Any, layout: Layout) -> list[Any]:
    """Return the samples without a finite number in some column. Raises ValueError if rows have no names, by which they
    could be left out of other models."""
    wrong = ~np.isfinite(part[list(layout.values)])
    if "sample" in layout.columns:
        return list(part[layout.columns["sample"]][wrong.any(axis=1)])
    for name in wrong.columns[wrong.any()]:
        raise ValueError(
            f"{path}: column {name!r} has no finite number for sample {wrong[name].argmax()}{_owner(part, layout)}; "
            "write one, or add a column sample, by which it is left out of all models"
        )
    return []


def joined(models: list[Model]) -> list[Unread]:
    """Complete models by the names of their files and folders: role and method, if the table does not say them.

    Otherwise models of one name would count as replicates. Words that all files share are ignored as soon as a model
    before unlearning or a retrained one is known. ``models`` is changed in place; returns [], because none is left out.
    """
    places = [model.file.resolve() for model in models]
    top = os.path.commonpath([place.parent for place in places]) if places else ""
    names = {
        model: _words.of_parts(_texts.bare(place).relative_to(top).parts)
        for model, place in zip(models, places, strict=True)
    }
    common = set.intersection(*(set(name.words) for name in names.values())) if names else set()
    for model, name in names.items():
        if not model.role and not model.method and all(map(SEED.match, {*name.words} - common)):
            model.role = name.role
    if not any(model.role in (NONE, RETRAIN) for model in models):
        common = set()
    for model, name in names.items():
        if model.role not in (NONE, RETRAIN) and not model.method:
            words = (word for word in (*name.words, *name.recipe) if word not in common and not SEED.match(word))
            model.method = "_".join(words)
            model.step = name.step if model.step is None else model.step
    return []


def _architectures(table: Any, columns: dict[str, str]) -> set[str]:
    """Return the names in the column of models that are of an architecture instead of a method, as several kinds or
    methods have them. Empty unless the table has columns of models, seeds and methods. ``columns``: meaning → name."""
    if not {"model", "method", "seed"} <= columns.keys():
        return set()
    rows = table[[columns[meaning] for meaning in ("kind", "method", "model") if meaning in columns]].drop_duplicates()
    counts = Counter(map(_text, rows[columns["model"]]))
    return {name for name, count in counts.items() if count > 1 and not name.isdigit()}


def _directions(values: dict[str, int]) -> list[str]:
    """Return sentences that say which columns became attacks, and whether smaller or greater values mean members."""
    names = {near: ", ".join(name for name, sign in values.items() if sign == near) for near in (-1, 1)}
    words = {-1: "smaller", 1: "greater"}
    return [f"{names[near]}: a {word} value is taken for a member's." for near, word in words.items() if names[near]]


def _method(columns: dict[str, str], first: dict[str, str]) -> str:
    """Return the name of the method from ``first``, meaning of a column → its text; "" if no cell gives one.

    It is the cell of the method; else of the model, the kind, or, without a kind, of "seed" (the run), if its words say
    more than a role. A number of a run, such as 3 or seed_3, does not name a method. Before all but the method's cell
    goes a kind which says that a model saw none of the samples (`_words.foreign`). ``columns``: meaning → name in the
    table.
    """
    kind = first.get("kind", "")
    if _words.foreign(kind) and not first.get("method"):
        return kind
    for meaning in ("method", "model", "kind", *(() if kind else ("seed",))):
        text = first.get(meaning, "")
        named = bool(_words.of_parts((text,)).words) and not (meaning == "seed" and re.fullmatch(r"\D*\d+", text))
        if named or (text and meaning == "method"):
            return f"{columns[meaning]}_{text}" if text.isdigit() else text  # a number alone is no name
    return ""


def _owner(part: Any, layout: Layout) -> str:
    """Return to which model a part of the table belongs, such as " of full/0"; "" if the table has one model."""
    return f" of {entry}" if (entry := _entry(part, layout)) else ""


def _entry(part: Any, layout: Layout) -> str:
    return "/".join(filter(None, (_cell(part[name]) for name in layout.keys)))


def _of_rows(path: Path, part: Any, layout: Layout, root: Path, architectures: set[str], damage: str) -> Model:
    """Read one model from ``part``, its rows of a table.

    ``layout``: what the columns mean; ``architectures``: names in the column of models that name no method; ``damage``:
    a sentence if the model diverged, which then gets names of samples but no values. Raises ValueError if rows are
    doubled or no forgotten and held-out samples are named.
    """
    columns, values = layout.columns, layout.values
    model = _words.of_path(path, root)
    first = {meaning: _cell(part[columns[meaning]]) for meaning in (*KEYS, "step", "task") if meaning in columns}
    model.words = (first.pop("model"),) if first.get("model") in architectures else ()
    kind, *rest = (first.get(meaning, "") for meaning in KEYS)
    model.role = _words.of_parts((kind,)).role or _words.of_parts(tuple(rest)).role or model.role
    if step := first.get("step"):
        model.step = int(step) if step.isdigit() else _words.of_parts((step,)).step
        if model.step is None:
            raise ValueError(
                f"{path}: column {columns['step']!r} says {step!r}; steps must be whole numbers, such as 100"
            )
    model.method = "" if model.role in (NONE, RETRAIN) else _method(columns, first)
    model.task = first.get("task") or model.task
    model.entry = _entry(part, layout)
    model.damage, model.notes = damage, _directions(values)
    side = sides_of(path, part[columns["side"]], columns["side"], layout.side)
    rows = ""
    if "sample" not in columns:  # tables with the same sides in the same order, and no other task, have equal samples
        task = _words.of_parts((_texts.bare(path).name,)).task or "row"
        rows = f"{task}.{hashlib.sha256(' '.join(side).encode()).hexdigest()[:6]}"
        model.notes.append(
            "No column names samples: rows of several models are taken for the same samples in their order; a column "
            "sample would make this certain."
        )
    ids = np.array([f"{rows}:{i}" for i in range(len(part))] if rows else part[columns["sample"]].astype(str), "U")
    if twice := _model.doubled(ids.tolist()):
        raise ValueError(
            f"{path}: sample {twice}{_owner(part, layout)} occurs twice; leave out one of its rows, or name the "
            "column that tells models apart with --columns model=NAME"
        )
    audited = (side == FORGET) | (side == HELDOUT)
    model.ids, model.forget, model.heldout = tuple(ids[audited]), side[audited] == FORGET, side[audited] == HELDOUT
    if damage:
        return model
    for name, near in values.items():
        value = part[name].to_numpy()
        if near < 0 and np.median(value) < 0 and LOSSES.match(name.lower()):
            model.notes.append(
                f"{name}: most values are below 0; if they are log-likelihoods, give --columns score={name}."
            )
        label = name.lower().replace(" ", "_")
        if audited.any():
            model.scores[label] = near * value[audited]
        share = bool((value >= 0).all() and (value <= 1).all())
        for role_name, word in ((FORGET, "forget"), (RETAIN, "retain"), (OTHER, "test")):
            rows = side == role_name
            if rows.any():
                model.readings[f"{word}_{label}"] = Reading(role_name, tuple(ids[rows]), value[rows], near, share)
        logp, rows = near * value, side == FORGET
        if CROSS_ENTROPY.search(label) and rows.any() and not (side == HELDOUT).any() and (logp <= 0).all():
            probability = Reading(FORGET, tuple(ids[rows]), np.exp(logp[rows]), 1, True)
            model.readings[f"forget_probability_by_{label}"] = probability
            model.notes.append(f"{name}: no sample is held out; the probability of the forgotten ones is compared.")
    if not model.scores:
        raise ValueError(f"{path}: column {columns['side']!r} marks neither forgotten nor held-out samples")
    return model


def _cell(column: Any) -> str:
    """Return the first value as text; "" if it is missing."""
    return _text(column.iloc[0])


def _text(value: object) -> str:
    """Return a cell as text; whole numbers have no point."""
    return "" if value is None or value != value else re.sub(r"^(\d+)[.]0$", r"\1", str(value))
