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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _model, _texts, _words
from unlearning_audit.readers._columns import LOSSES, ROLE_MEANINGS, Layout, complete_layout, layout_of
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
    """Return the tables of samples at or below a path. A table may lack a column of values, or the column that tells
    forgotten from held-out samples; ``read`` then says why it is left out."""
    paths = _texts.below(place, *TEXT, *TYPED, *WORKBOOKS)
    return [path for path in paths if _is_table(path, options, explicit=path == place)]


def _is_table(path: Path, options: Options, *, explicit: bool) -> bool:
    """Return whether a file is meant as a table of samples, judged by its columns of values and of sides.

    A file that the user named (``explicit``) is meant so, unless it is JSON or ``.npz``. In a folder, ``.txt``, JSON
    and ``.npz``, which often hold something else, need a column of values and a column of sides. All other files need
    one of the two columns. Such a file also counts if it is empty or, except for JSON, if its header cannot be read, so
    that the user learns of it.
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
    """Return a model for each task, kind, method, step, model and seed that a table distinguishes; an `Unread` for a
    table that cannot be read. A sample without a finite number in some model is left out of all models of its table.
    Diverged models, which lack a finite number for most samples, are not considered for this."""
    return read_tables(paths, frame, options.columns, root)


def read_tables(
    paths: list[Path], table_of: Callable[[Path], Any], names: dict[str, str], root: Path
) -> list[Model | Unread]:
    """Return a model for each task, kind, method, step, model and seed that a table distinguishes; an `Unread` for a
    table that cannot be read. A sample without a finite number in some model that did not diverge is left out of all
    models of its table.

    Parameters
    ----------
    table_of
        Function from a path to its table, a pandas DataFrame.
    names
        Meaning → name of a column, as the user gave it.
    root
        The folder that the user named, below which names tell what models are.
    """

    def models_of(path: Path) -> list[Model]:
        """Return the models of one table, read by ``table_of`` with the columns that the user called by ``names``."""
        table = table_of(path)
        table.columns = [str(name).strip("\ufeff ") for name in table.columns]
        if doubled := table.columns[table.columns.duplicated()].tolist():
            raise ValueError(f"{path}: two columns are called {doubled[0]!r}; rename one of them")
        table, renamed = _wide_to_long(path, table, names)
        layout = complete_layout(path, table, renamed)
        for name in layout.values:
            table[name] = numbers(path, table[name])
        groups = table.groupby(layout.keys, sort=True, dropna=False) if layout.keys else [((), table)]
        members = [(rows, _damage(rows, layout.values)) for _, rows in groups]  # of each model: its rows, its damage
        lost = {sample for rows, damage in members if not damage for sample in _without_number(path, rows, layout)}
        notes: list[str] = []
        if lost:
            notes = [f"{path}: {len(lost)} samples lack a number in some model; they are left out of all models."]
            members = [(rows[~rows[layout.columns["sample"]].isin(lost)], damage) for rows, damage in members]
        architectures = _architectures(table, layout.columns)
        models = [_of_rows(path, rows, layout, root, architectures, damage) for rows, damage in members]
        for model in models:
            model.notes += notes
        return models

    return _model.read_all(paths, models_of)


def _wide_to_long(path: Path, table: Any, renamed: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Convert a table that has a column of values for each model, such as loss_full and loss_retrained, to one with a
    row for each sample of each model: a column "model" has the names of the models, and a column "loss" or "score"
    their values. Return the new table, and the entries of ``renamed`` whose columns it still has.

    ``renamed``: meaning → name of a column, as the user gave it. The table is returned unchanged if it has fewer than
    two columns of numbers besides those with a meaning such as sample, or if no such column has a name that means
    retrained. Raises ValueError if two columns are of one model, if some columns hold losses and others scores, or if
    neither the columns nor the name of the file say whether values are losses or scores.
    """
    layout = layout_of(list(table.columns), {word: name for word, name in renamed.items() if name in table.columns})
    known = layout.columns.values()
    valued = [name for name in table.columns if name not in known and table[name].dtype.kind in "if"]
    if len(valued) < 2 or not any(_words.model_of_names((name,)).role == RETRAIN for name in valued):
        return table, renamed
    models = {name: VALUE_WORD.sub("", name) or name for name in valued}
    if model := _model.doubled(models.values()):
        columns = " and ".join(name for name in valued if models[name] == model)
        advice = "keep one of them, or write a line for each sample of each model, with a column model"
        raise ValueError(f"{path}: columns {columns} belong to one model, {model}; {advice}")
    signs = set(layout.values.values()) or {sign for sign, word in VALUE_OF_FILE if word in path.name.lower()}
    if len(signs) != 1:
        option = f"say what they hold with --columns loss={valued[0]} or --columns score={valued[0]}"
        advice = "give either losses or scores of all of them" if layout.values else option
        raise ValueError(f"{path}: columns {', '.join(valued)} belong to several models; {advice}")
    value = "loss" if signs == {-1} else "score"
    others = [name for name in table.columns if name not in valued]
    table = table.rename(columns=models).melt(others, list(models.values()), var_name="model", value_name=value)
    return table, {word: name for word, name in renamed.items() if name not in valued}


#: Names of losses for which exp(-loss) is a probability.
CROSS_ENTROPY = re.compile(r"(^|_)(loss|nll|ce|cross_entropy)(_|$)")


def _damage(rows: Any, values: Iterable[str]) -> str:
    """Return a clause that says why a model counts as diverged: the first of the columns ``values`` that has no finite
    number in more than half of the model's ``rows``. Return "" if there is no such column."""
    for name in values:
        infinite = int((~np.isfinite(rows[name])).sum())
        if 2 * infinite > len(rows):
            return f"{name} is NaN or infinite for {infinite} of {len(rows)} samples"
    return ""


def _without_number(path: Path, rows: Any, layout: Layout) -> list[Any]:
    """Return the samples for which some column of values has no finite number in ``rows``, the rows of one model. If no
    column names samples, other models cannot leave these samples out, so ValueError is raised for the first of
    them."""
    wrong = ~np.isfinite(rows[list(layout.values)])
    if "sample" in layout.columns:
        return list(rows[layout.columns["sample"]][wrong.any(axis=1)])
    if wrong.any(axis=None):
        name, *_ = wrong.columns[wrong.any()]  # the first column that lacks a number
        problem = f"column {name!r} has no finite number for sample {wrong[name].argmax()}{_owner(rows, layout)}"
        raise ValueError(f"{path}: {problem}; write one, or add a column sample, by which it is left out of all models")
    return []


def joined(models: list[Model]) -> list[Unread]:
    """Give models the role, method and step that their table does not say, from the names of their files and folders.
    Without a method, unlearned models of different files would count as replicates of one model.

    ``models`` is changed in place; [] is returned, because no model is left out.
    """
    top = os.path.commonpath([model.file.resolve().parent for model in models]) if models else ""
    files = {model: _texts.bare(model.file.resolve()).relative_to(top) for model in models}
    hints_of = {model: _words.model_of_names(file.parts) for model, file in files.items()}
    common = set.intersection(*(set(hints.words) for hints in hints_of.values())) if hints_of else set()
    for model, hints in hints_of.items():
        # A role is taken from names only if they have no other words, except a seed's and those that all files share.
        if not model.role and not model.method and all(map(SEED.match, {*hints.words} - common)):
            model.role, model.decided = hints.role, hints.decided
    if not any(model.role in (NONE, RETRAIN) for model in models):
        common = set()  # all models are unlearned, and the words that they share may be all that names their method
    for model, hints in hints_of.items():
        if model.role not in (NONE, RETRAIN) and not model.method:
            words = (word for word in (*hints.words, *hints.recipe) if word not in common and not SEED.match(word))
            model.method = "_".join(words)
            model.step = hints.step if model.step is None else model.step
    return []


def _architectures(table: Any, columns: dict[str, str]) -> set[str]:
    """Return the names in a table's column of models that stand for an architecture, because models of several kinds or
    methods have them; all other names may stand for a method. The set is empty unless the table has columns of models,
    seeds and methods. ``columns``: meaning of a column → its name."""
    if not {"model", "method", "seed"} <= columns.keys():
        return set()
    rows = table[[columns[meaning] for meaning in ("kind", "method", "model") if meaning in columns]].drop_duplicates()
    counts = Counter(map(_text, rows[columns["model"]]))
    return {name for name, count in counts.items() if count > 1 and not name.isdigit()}


def _notes_on_directions(values: dict[str, int]) -> list[str]:
    """Return sentences that say which columns hold values, and whether smaller or greater ones mean members.
    ``values``: name of a column → its direction, −1 or +1."""
    names = {sign: ", ".join(name for name in values if values[name] == sign) for sign in (-1, 1)}
    words = {-1: "smaller", 1: "greater"}
    return [f"{names[sign]}: a {word} value is taken for a member's." for sign, word in words.items() if names[sign]]


def _method(columns: dict[str, str], cells: dict[str, str]) -> str:
    """Return the name of the method of a model from its ``cells``, meaning of a column → text; "" if no cell gives one.

    The first of these that has a name is taken: the cell of the method; the kind, if it says that the model saw none of
    the samples; the cell of the model, and then of the kind (or, without a kind, of the seed), if it has a word that
    says more than a role, a task or a setting. A name that is a number gets the column's name before it. ``columns``:
    meaning of a column → its name in the table.
    """
    kind = cells.get("kind", "")
    if _words.is_foreign(kind) and not cells.get("method"):
        return kind
    for meaning in ("method", "model", "kind" if kind else "seed"):
        text = cells.get(meaning, "")
        is_number_of_run = meaning == "seed" and re.fullmatch(r"\D*\d+", text)  # such as 3 or seed_3
        if (meaning == "method" and text) or (_words.model_of_names((text,)).words and not is_number_of_run):
            return f"{columns[meaning]}_{text}" if text.isdigit() else text  # a number alone is no name
    return ""


def _owner(rows: Any, layout: Layout) -> str:
    """Return to which model ``rows`` of a table belong, such as " of full/0", for messages; "" if no column tells
    models apart."""
    return f" of {entry}" if (entry := _entry(rows, layout)) else ""


def _entry(rows: Any, layout: Layout) -> str:
    """Return the cells that distinguish the model of some ``rows`` from other models of the table, such as "full/0".
    All rows of a model have the same."""
    return "/".join(filter(None, (_text(rows[name].iloc[0]) for name in layout.keys)))


def _of_rows(path: Path, rows: Any, layout: Layout, root: Path, architectures: set[str], damage: str) -> Model:
    """Read one model from its ``rows`` of a table.

    Parameters
    ----------
    layout
        The meaning of the columns.
    architectures
        Names in the column of models that name no method.
    damage
        A clause if the model diverged, which then gets names of samples but no values; else "".

    Raises
    ------
    ValueError
        If a sample occurs twice, if a step is no number, or if no sample is forgotten or held out.
    """
    columns = layout.columns
    model = _words.model_of_path(path, root)
    # Rows of one model have the same cells in these columns, so the first row stands for all.
    present = [meaning for meaning in (*ROLE_MEANINGS, "step", "task") if meaning in columns]
    cells = {meaning: _text(rows[columns[meaning]].iloc[0]) for meaning in present}
    model.words = (cells.pop("model"),) if cells.get("model") in architectures else ()
    kind, *others = (cells.get(meaning, "") for meaning in ROLE_MEANINGS)
    model.role = _words.model_of_names((kind,)).role or _words.model_of_names(tuple(others)).role or model.role
    if step := cells.get("step"):
        model.step = int(step) if step.isdigit() else _words.model_of_names((step,)).step
        if model.step is None:
            advice = "steps must be whole numbers, such as 100"
            raise ValueError(f"{path}: column {columns['step']!r} says {step!r}; {advice}")
    model.method = "" if model.role in (NONE, RETRAIN) else _method(columns, cells)
    model.task = cells.get("task") or model.task
    model.entry = _entry(rows, layout)
    model.damage, model.notes = damage, _notes_on_directions(layout.values)
    side = sides_of(path, rows[columns["side"]], columns["side"], layout.side)
    ids = _sample_names(path, rows, layout, side)
    if "sample" not in columns:
        assumed = "rows of several models are taken for the same samples in their order"
        model.notes.append(f"No column names samples: {assumed}; a column sample would make this certain.")
    audited = (side == FORGET) | (side == HELDOUT)
    model.ids, model.forget, model.heldout = tuple(ids[audited]), side[audited] == FORGET, side[audited] == HELDOUT
    if not damage:
        for name, direction in layout.values.items():
            _add_values(model, name, rows[name].to_numpy(), direction, ids, side)
        if not model.scores:
            raise ValueError(f"{path}: column {columns['side']!r} marks neither forgotten nor held-out samples")
    return model


def _sample_names(path: Path, rows: Any, layout: Layout, side: np.ndarray) -> np.ndarray:
    """Return the name of the sample in each of ``rows``: the cell in the column of samples or, without that column, the
    task in the file's name, a digest of ``side`` [rows], and the number of the row.

    So tables without a column of samples have equal samples if their tasks are equal and their rows are of the same
    parts of the data in the same order. Raises ValueError if a name occurs twice.

    Parameters
    ----------
    side
        The part of the data that each row belongs to.
    """
    if "sample" in layout.columns:
        ids = np.array(rows[layout.columns["sample"]].astype(str), "U")
    else:
        task = _words.model_of_names((_texts.bare(path).name,)).task or "row"
        digest = hashlib.sha256(" ".join(side).encode()).hexdigest()[:6]
        ids = np.array([f"{task}.{digest}:{i}" for i in range(len(rows))], "U")
    if twice := _model.doubled(ids.tolist()):
        advice = "leave out one of its rows, or name the column that tells models apart with --columns model=NAME"
        raise ValueError(f"{path}: sample {twice}{_owner(rows, layout)} occurs twice; {advice}")
    return ids


def _add_values(model: Model, name: str, value: np.ndarray, direction: int, ids: np.ndarray, side: np.ndarray) -> None:
    """Add the values of the column ``name`` to a model: as scores of forgotten and held-out samples, and as readings of
    forgotten, retained and test samples. A note says if a loss is mostly below 0.

    Without held-out samples, no attack can be evaluated. The probability of forgotten samples, exp(−loss), is then
    added as a further reading, if the column is a cross-entropy and nowhere negative.

    Parameters
    ----------
    value
        [rows]: the values.
    direction
        +1 if larger values mean that the sample was more likely a member, −1 if smaller values do.
    ids, side
        [rows]: the name of the sample, and the part of the data that it belongs to.
    """
    if direction < 0 and np.median(value) < 0 and LOSSES.match(name.lower()):
        advice = f"if they are log-likelihoods, give --columns score={name}."
        model.notes.append(f"{name}: most values are below 0; {advice}")
    label = name.lower().replace(" ", "_")
    audited, forget = (side == FORGET) | (side == HELDOUT), side == FORGET
    if audited.any():
        model.scores[label] = direction * value[audited]
    share = bool((value >= 0).all() and (value <= 1).all())
    for part, word in ((FORGET, "forget"), (RETAIN, "retain"), (OTHER, "test")):
        of_part = side == part
        if of_part.any():
            model.readings[f"{word}_{label}"] = Reading(part, tuple(ids[of_part]), value[of_part], direction, share)
    logp = direction * value  # −loss, or the value itself if its name is negated, such as neg_loss
    if CROSS_ENTROPY.search(label) and forget.any() and not (side == HELDOUT).any() and (logp <= 0).all():
        probability = Reading(FORGET, tuple(ids[forget]), np.exp(logp[forget]), direction=1, share=True)
        model.readings[f"forget_probability_by_{label}"] = probability
        model.notes.append(f"{name}: no sample is held out; the probability of the forgotten ones is compared.")


def _text(value: object) -> str:
    """Return a cell as text, "" if it is missing; whole numbers have no point."""
    # Only NaN differs from itself.
    return "" if value is None or value != value else re.sub(r"^(\d+)[.]0$", r"\1", str(value))
