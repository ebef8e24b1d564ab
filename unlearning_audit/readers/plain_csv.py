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
    """Return the tables at or below a path that have a column of values and one of sides. In a folder, most tables with
    only one of the two columns are included, and empty tables, so that ``read`` can say why they are left out
    (`_is_table`)."""
    paths = _texts.below(place, *TEXT, *TYPED, *WORKBOOKS)
    return [path for path in paths if _is_table(path, options, explicit=path == place)]


def _is_table(path: Path, options: Options, *, explicit: bool) -> bool:
    """Return whether a file is meant as a table of samples, judged by its columns of values and of sides.

    A file that the user named (``explicit``) is one, unless it is JSON or ``.npz`` and has neither column. In a folder,
    ``.txt``, JSON and ``.npz`` need both columns, and other files need one. Empty files and those without a readable
    header count too, so that the user learns of them.
    """
    kind = _texts.kind(path)
    if explicit and kind not in (".json", ".npz"):
        return True
    names = header(path)
    layout = layout_of(names, {meaning: name for meaning, name in options.columns.items() if name in names})
    has_values, has_sides = bool(layout.values), "side" in layout.columns
    if not explicit and kind in (".txt", ".json", ".npz"):
        return has_values and has_sides
    unreadable = not any(names) and kind not in (".jsonl", ".json")
    return has_values or has_sides or unreadable or not path.stat().st_size


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
        parts = [(rows, _damage(rows, layout.values)) for _, rows in groups]
        lost = {sample for rows, damage in parts if not damage for sample in _without_number(path, rows, layout)}
        if lost:
            parts = [(rows[~rows[layout.columns["sample"]].isin(lost)], damage) for rows, damage in parts]
        architectures = _architectures(table, layout.columns)
        models = [_of_rows(path, rows, layout, root, architectures, damage) for rows, damage in parts]
        note = f"{path}: {len(lost)} samples lack a number in some model; they are left out of all models."
        for model in models:
            model.notes += [note] * bool(lost)  # no note if nothing is lost
        return models

    return _model.read_all(paths, models_of)


def _by_models(path: Path, table: Any, renamed: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Convert a table that has a column of values for each model, such as loss_full and loss_retrained, to one with a
    row for each sample of each model: a column "model" has the names of the models, and a column "loss" or "score"
    their values. Return the new table, and the entries of ``renamed`` whose columns it still has.

    ``renamed``: meaning → name of a column, as the user gave it. The table is returned unchanged if it has fewer than
    two columns of numbers besides sides, samples and so on, or if no such column has a name that means retrained.
    Raises ValueError if two columns are of one model, or if neither the columns nor the name of the file say whether
    the values are losses or scores.
    """
    layout = layout_of(list(table.columns), {what: name for what, name in renamed.items() if name in table.columns})
    known = layout.columns.values()
    valued = [name for name in table.columns if name not in known and table[name].dtype.kind in "if"]
    if len(valued) < 2 or not any(_words.of_parts((name,)).role == RETRAIN for name in valued):
        return table, renamed
    models = {name: VALUE_WORD.sub("", name) or name for name in valued}
    if model := _model.doubled(models.values()):
        columns = " and ".join(name for name in valued if models[name] == model)
        raise ValueError(
            f"{path}: columns {columns} belong to one model, {model}; keep one of them, or write a line for each "
            "sample of each model, with a column model"
        )
    signs = set(layout.values.values()) or {sign for sign, word in VALUE_OF_FILE if word in path.name.lower()}
    if len(signs) != 1:
        option = f"say what they hold with --columns loss={valued[0]} or --columns score={valued[0]}"
        advice = "give either losses or scores of all of them" if layout.values else option
        raise ValueError(f"{path}: columns {', '.join(valued)} belong to several models; {advice}")
    value = "loss" if signs == {-1} else "score"
    others = [name for name in table.columns if name not in valued]
    table = table.rename(columns=models).melt(others, list(models.values()), var_name="model", value_name=value)
    return table, {what: name for what, name in renamed.items() if name not in valued}


#: Names of losses for which exp(-loss) is a probability.
CROSS_ENTROPY = re.compile(r"(^|_)(loss|nll|ce|cross_entropy)(_|$)")


def _damage(rows: Any, values: Iterable[str]) -> str:
    """Return which of the columns ``values`` has no finite number in more than half of the ``rows`` of a model, as such
    a model diverged; "" if none."""
    for name in values:
        infinite = int((~np.isfinite(rows[name])).sum())
        if 2 * infinite > len(rows):
            return f"{name} is NaN or infinite for {infinite} of {len(rows)} samples"
    return ""


def _without_number(path: Path, rows: Any, layout: Layout) -> list[Any]:
    """Return the samples for which some column of values has no finite number in ``rows``, those of one model. Raises
    ValueError for such a row if no column names samples, by which it could be left out of other models."""
    wrong = ~np.isfinite(rows[list(layout.values)])
    if "sample" in layout.columns:
        return list(rows[layout.columns["sample"]][wrong.any(axis=1)])
    for name in wrong.columns[wrong.any()]:  # the first of them, if there is one
        raise ValueError(
            f"{path}: column {name!r} has no finite number for sample {wrong[name].argmax()}{_owner(rows, layout)}; "
            "write one, or add a column sample, by which it is left out of all models"
        )
    return []


def joined(models: list[Model]) -> list[Unread]:
    """Complete models by the names of their files and folders: role and method, if the table does not say them.

    Without that, models with equal names would count as replicates. Words that all files share are ignored if some
    model is known to be retrained, or to be from before unlearning; otherwise they may be all that names a method.
    ``models`` is changed in place; returns [], because none is left out.
    """
    top = os.path.commonpath([model.file.resolve().parent for model in models]) if models else ""
    by_path = {model: _words.of_parts(_texts.bare(model.file.resolve()).relative_to(top).parts) for model in models}
    common = set.intersection(*(set(hints.words) for hints in by_path.values())) if by_path else set()
    for model, hints in by_path.items():
        # A role is read from a name that has no other words than this role and a seed.
        if not model.role and not model.method and all(map(SEED.match, {*hints.words} - common)):
            model.role = hints.role
    if not any(model.role in (NONE, RETRAIN) for model in models):
        common = set()
    for model, hints in by_path.items():
        if model.role not in (NONE, RETRAIN) and not model.method:
            words = (word for word in (*hints.words, *hints.recipe) if word not in common and not SEED.match(word))
            model.method = "_".join(words)
            model.step = hints.step if model.step is None else model.step
    return []


def _architectures(table: Any, columns: dict[str, str]) -> set[str]:
    """Return the names in the column of models that stand for an architecture, and not for a method, because several
    kinds or methods have them. Empty unless the table has columns of models, seeds and methods. ``columns``: meaning →
    name."""
    if not {"model", "method", "seed"} <= columns.keys():
        return set()
    rows = table[[columns[meaning] for meaning in ("kind", "method", "model") if meaning in columns]].drop_duplicates()
    counts = Counter(map(_text, rows[columns["model"]]))
    return {name for name, count in counts.items() if count > 1 and not name.isdigit()}


def _directions(values: dict[str, int]) -> list[str]:
    """Return sentences that say which columns became attacks, and whether smaller or greater values mean members."""
    names = {sign: ", ".join(name for name in values if values[name] == sign) for sign in (-1, 1)}
    words = {-1: "smaller", 1: "greater"}
    return [f"{names[sign]}: a {word} value is taken for a member's." for sign, word in words.items() if names[sign]]


def _method(columns: dict[str, str], cells: dict[str, str]) -> str:
    """Return the name of the method of a model from its ``cells``, meaning of a column → text; "" if none gives one.

    It is the cell of the method, if that has text. Otherwise the cells model, kind and, if there is no kind, "seed" are
    tried in this order; the first whose words say more than a role gives the name. A number of a run in the cell
    "seed", such as 3 or seed_3, gives none. A kind which says that a model saw none of the samples (`_words.foreign`)
    comes before all but the cell of the method. A name that is a number gets the column's name before it. ``columns``:
    meaning → name in the table.
    """
    kind = cells.get("kind", "")
    if _words.foreign(kind) and not cells.get("method"):
        return kind
    for meaning in ("method", "model", "kind", *(() if kind else ("seed",))):
        text = cells.get(meaning, "")
        says_more = bool(_words.of_parts((text,)).words) and not (meaning == "seed" and re.fullmatch(r"\D*\d+", text))
        if says_more or (text and meaning == "method"):
            return f"{columns[meaning]}_{text}" if text.isdigit() else text  # a number alone is no name
    return ""


def _owner(rows: Any, layout: Layout) -> str:
    """Return to which model ``rows`` of a table belong, such as " of full/0"; "" if the table has one model."""
    return f" of {entry}" if (entry := _entry(rows, layout)) else ""


def _entry(rows: Any, layout: Layout) -> str:
    """Return the cells that distinguish the model of some ``rows``, such as "full/0"."""
    return "/".join(filter(None, (_text(rows[name].iloc[0]) for name in layout.keys)))


def _of_rows(path: Path, rows: Any, layout: Layout, root: Path, architectures: set[str], damage: str) -> Model:
    """Read one model from its ``rows`` of a table.

    ``layout``: what the columns mean; ``architectures``: names in the column of models that name no method; ``damage``:
    a sentence if the model diverged, which then gets names of samples but no values. Raises ValueError if rows are
    doubled or no forgotten and held-out samples are named.
    """
    columns = layout.columns
    model = _words.of_path(path, root)
    # Rows of one model have the same cells in these columns, so the first row stands for all.
    present = [meaning for meaning in (*KEYS, "step", "task") if meaning in columns]
    cells = {meaning: _text(rows[columns[meaning]].iloc[0]) for meaning in present}
    model.words = (cells.pop("model"),) if cells.get("model") in architectures else ()
    kind, *other_keys = (cells.get(meaning, "") for meaning in KEYS)
    model.role = _words.of_parts((kind,)).role or _words.of_parts(tuple(other_keys)).role or model.role
    if step := cells.get("step"):
        model.step = int(step) if step.isdigit() else _words.of_parts((step,)).step
        if model.step is None:
            raise ValueError(
                f"{path}: column {columns['step']!r} says {step!r}; steps must be whole numbers, such as 100"
            )
    model.method = "" if model.role in (NONE, RETRAIN) else _method(columns, cells)
    model.task = cells.get("task") or model.task
    model.entry = _entry(rows, layout)
    model.damage, model.notes = damage, _directions(layout.values)
    side = sides_of(path, rows[columns["side"]], columns["side"], layout.side)
    if "sample" in columns:
        ids = np.array(rows[columns["sample"]].astype(str), "U")
    else:  # tables with the same sides in the same order, and no other task, have equal samples
        task = _words.of_parts((_texts.bare(path).name,)).task or "row"
        digest = hashlib.sha256(" ".join(side).encode()).hexdigest()[:6]
        ids = np.array([f"{task}.{digest}:{i}" for i in range(len(rows))], "U")
        model.notes.append(
            "No column names samples: rows of several models are taken for the same samples in their order; a column "
            "sample would make this certain."
        )
    if twice := _model.doubled(ids.tolist()):
        raise ValueError(
            f"{path}: sample {twice}{_owner(rows, layout)} occurs twice; leave out one of its rows, or name the "
            "column that tells models apart with --columns model=NAME"
        )
    audited = (side == FORGET) | (side == HELDOUT)
    model.ids, model.forget, model.heldout = tuple(ids[audited]), side[audited] == FORGET, side[audited] == HELDOUT
    for name, direction in layout.values.items() if not damage else ():
        _add_values(model, name, rows[name].to_numpy(), direction, ids, side)
    if not model.scores and not damage:
        raise ValueError(f"{path}: column {columns['side']!r} marks neither forgotten nor held-out samples")
    return model


def _add_values(model: Model, name: str, value: np.ndarray, direction: int, ids: np.ndarray, side: np.ndarray) -> None:
    """Add the ``value`` [rows] of a column to a model: as scores of forgotten and held-out samples, and as readings of
    forgotten, retained and test samples.

    ``direction``: +1 if larger values are more like a member, −1 if smaller ones; ``ids`` and ``side`` [rows]: name of
    the sample, and the part of the data that it belongs to. Without held-out samples, no attack can be evaluated: a
    cross-entropy is then read as a probability as well, which is compared with that of retrained models.
    """
    if direction < 0 and np.median(value) < 0 and LOSSES.match(name.lower()):
        model.notes.append(
            f"{name}: most values are below 0; if they are log-likelihoods, give --columns score={name}."
        )
    label, audited, forget = name.lower().replace(" ", "_"), (side == FORGET) | (side == HELDOUT), side == FORGET
    if audited.any():
        model.scores[label] = direction * value[audited]
    share = bool((value >= 0).all() and (value <= 1).all())
    for part, word in ((FORGET, "forget"), (RETAIN, "retain"), (OTHER, "test")):
        of_part = side == part
        if of_part.any():
            model.readings[f"{word}_{label}"] = Reading(part, tuple(ids[of_part]), value[of_part], direction, share)
    logp = direction * value
    if CROSS_ENTROPY.search(label) and forget.any() and not (side == HELDOUT).any() and (logp <= 0).all():
        probability = Reading(FORGET, tuple(ids[forget]), np.exp(logp[forget]), direction=1, share=True)
        model.readings[f"forget_probability_by_{label}"] = probability
        model.notes.append(f"{name}: no sample is held out; the probability of the forgotten ones is compared.")


def _text(value: object) -> str:
    """Return a cell as text, "" if it is missing; whole numbers have no point."""
    return "" if value is None or value != value else re.sub(r"^(\d+)[.]0$", r"\1", str(value))
