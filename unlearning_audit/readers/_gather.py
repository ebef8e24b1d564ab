"""Run the readers on some paths, and group comparable models."""

import inspect
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pandas as pd
from pydantic import ValidationError

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.guard import PluginError, guard, in_library, readable, type_of
from unlearning_audit.plugins.registry import Module
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.readers import _groups, _known, _roles, _texts, _words, plain_csv
from unlearning_audit.readers._groups import Group
from unlearning_audit.readers._model import NONE, RETRAIN, Agreement, Model, Unread


@dataclass(frozen=True)
class Imported:
    """The result of reading: ``groups`` of comparable models.

    Parameters
    ----------
    agreements
        Result file → the numbers that it prints, beside the same numbers computed from its samples.
    formats
        Result file → name of its reader.
    unread
        The files and models that cannot be read or compared, with reasons.
    """

    groups: list[Group]
    agreements: dict[Path, list[Agreement]]
    formats: dict[Path, str]
    unread: list[Unread] = field(default_factory=list)


def imported(
    paths: Sequence[Path],
    *,
    retrain: Sequence[Path] = (),
    none: Sequence[Path] = (),
    reader: str = "",
    options: dict[str, Any] | None = None,
    alone: bool = False,
    roles: Path | None = None,
) -> Imported:
    """Read everything that readers find at or below ``paths``, in groups of comparable models.

    Parameters
    ----------
    retrain, none
        Files or folders of retrained models and of models before unlearning, which are read as well; FILE:NAME is one
        model of a file.
    reader
        The name of the only reader that runs, or a user's own file; all readers run if it is "".
    options
        The options of the reader.
    alone
        Whether to continue if no model was retrained.
    roles
        The file of a table of roles (roles.csv), which then alone decides the groups.

    Raises
    ------
    ValueError
        With one sentence if something that the user named cannot be read, or if it is ambiguous which models belong
        together.
    """
    user_paths = _existing([*paths, *retrain, *none], reader)
    models: list[Model] = []
    unread: list[Unread] = []
    formats: dict[Path, str] = {}
    across: dict[Model, Any] = {}
    for name, module in _readers(reader):
        of_format: list[Model] = []
        for user_path in user_paths:
            known = {path.resolve() for path in formats}  # a file belongs to the first reader that recognises it
            fresh = [path for path in _result_files(module, user_path, options or {}) if path.resolve() not in known]
            if not fresh:
                continue
            formats |= dict.fromkeys(fresh, name)
            results = _run_reader(module, fresh, options or {}, user_path)
            unread += [result for result in results if isinstance(result, Unread)]
            _refuse(unread, user_paths)  # what the user named must be readable; of a folder, some files may be left out
            fresh_models = [result for result in results if isinstance(result, Model)]
            _believe_inner_names(fresh_models, user_path)
            of_format += fresh_models
        unread += _joined(module, of_format)
        _refuse(unread, user_paths)
        if len(of_format) > 1:  # words that all models share distinguish nothing
            common = frozenset.intersection(*(frozenset(model.words) for model in of_format))
            for model in of_format:
                model.words = tuple(word for word in model.words if word not in common)
        across |= dict.fromkeys(of_format, getattr(module, "across", None))  # see `_agreements`
        models += of_format
    if not models:
        raise ValueError(_why_nothing(user_paths, unread))
    _groups.assign(models, retrain, none)
    # Nothing can be compared with a reference that diverged; a method that diverged stays, and is reported as damaged.
    for model in [model for model in models if model.damage and model.role in (NONE, RETRAIN)]:
        sentence = f"{model.file}: {model.damage}: this model is damaged, so nothing can be compared with it"
        unread.append(Unread(model.file, sentence))
        models.remove(model)
        _refuse(unread, user_paths if models else [model.file])  # without any model left, its damage is the answer
    files = {model.file for model in models}
    if roles is not None:
        groups = _roles.grouped(models, _roles.read(roles), roles)
    else:
        try:
            groups, unplaced = _groups.grouped(models, alone=alone)
            unread += unplaced
        except ValueError:
            _refuse(unread, files)  # a model beside others may be the one that is missing
            raise
    without_models = {result.file for result in unread} - files
    formats = {path: name for path, name in formats.items() if path not in without_models}
    return Imported(groups, _agreements(models, groups, across), formats, unread)


def _refuse(unread: Sequence[Unread], files: Collection[Path]) -> None:
    """Raise ValueError with the reason why one of ``files`` cannot be read, if there is such a file. ``unread``: files
    that cannot be read, with reasons, of which the first counts."""
    if refused := next((result for result in unread if result.file in files), None):
        raise ValueError(refused.sentence)


def _existing(paths: Sequence[Path], reader: str) -> list[Path]:
    """Return the files and folders that ``paths`` name, without duplicates.

    Parameters
    ----------
    paths
        Files, folders, or FILE:NAME for one model in a file, which becomes FILE.
    reader
        The name of the reader that the user chose, or the path of a reader of the user's own; "" if none was chosen.

    Raises
    ------
    ValueError
        If a path does not exist or, without a chosen reader, is a file that is known to contain no samples.
    """
    existing = list(dict.fromkeys(file for file, _ in map(_groups.split_name, paths)))  # the names are those of models
    for path in existing:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
        if path.is_file() and not reader and (known := _known.sentence(path)):
            raise ValueError(known)
    return existing


def _why_nothing(user_paths: Sequence[Path], unread: Sequence[Unread]) -> str:
    """Return why nothing was read, the first of these that is known: what a file at or below the paths that the user
    named is, such as a summary without samples; the reason of the first entry of ``unread``; which formats exist."""
    known = next(filter(None, map(_known.first_sentence, user_paths)), "")
    formats = ", ".join(registry.names("readers"))
    advice = "for another format, write a reader and give --reader FILE"
    unknown = f"{user_paths[0]}: holds no results of a known format ({formats}); {advice}"
    return known or next((result.sentence for result in unread), unknown)


def _agreements(models: list[Model], groups: Sequence[Group], across: dict[Model, Any]) -> dict[Path, list[Agreement]]:
    """Return file → the numbers that it prints beside those computed from its samples.

    A number that also depends on a retrained model's log is computed with every retrained model that has the same
    forget set, those of the model's own group first. The first result that agrees with the printed number counts, or
    the first of all if none agrees. Such a number is not computed for retrained models themselves, nor in a group
    without retrained models.

    Parameters
    ----------
    across
        Model → the function of its reader that computes numbers with a retrained model's log, (model, retrained model)
        → agreements; None if the reader has no such function.
    """
    agreements: dict[Path, list[Agreement]] = {}
    group_of = {model: group for group in reversed(groups) for model in group.models}  # the first group with the model
    for model in models:
        found: list[Agreement] = []
        compare, group, samples = across.get(model), group_of.get(model), _groups.must_share(model)
        if compare and group and group.retrain and model not in group.retrain:
            # Retrained models of its own group first, then those of all groups; duplicates are dropped below.
            retrained = [*group.retrain, *(run for other in groups for run in (*other.retrain, *other.control))]
            alike = [run for run in retrained if run is not model and _groups.must_share(run) == samples]
            for run in dict.fromkeys(alike):
                found += compare(model, run)
        best: dict[str, Agreement] = {}
        for agreement in found:
            if agreement.quantity not in best or (agreement.agrees and not best[agreement.quantity].agrees):
                best[agreement.quantity] = agreement
        agreements.setdefault(model.file, []).extend([*model.agreements, *best.values()])
    return agreements


def models(path: Path, reader: str, options: dict[str, Any]) -> list[Model]:
    """Read the models at or below a path that a user named, with one reader, given by name or as a user's own file.
    Raises ValueError if there is no such path, if the reader finds nothing or cannot read a file, or if it returns
    something else than a reader must return. A model that the reader's ``joined`` finds unreadable is returned, too,
    unless ``joined`` removes it."""
    _existing([path], reader)
    ((_, module),) = _readers(reader)  # (name, module) of one reader
    paths = _result_files(module, path, options)
    if not paths:
        raise ValueError(f"{reader}: files finds no result file at {path}; it must return the paths of these files")
    results = _run_reader(module, paths, options, path)
    _refuse(unread := [result for result in results if isinstance(result, Unread)], {each.file for each in unread})
    found = [result for result in results if isinstance(result, Model)]
    _joined(module, found)
    return found


def _joined(module: Module, models: list[Model]) -> list[Unread]:
    """Let a reader complete its ``models`` after all files are read, by its function ``joined`` if it has one. For a
    reader with a function ``table``, models are completed by the names of their files. Return what turns out to be
    unreadable."""
    completing: ModuleType = plain_csv if hasattr(module, "table") else module
    return list(_call(completing, "joined", models)) if hasattr(completing, "joined") else []


def _run_reader(module: Module, paths: list[Path], options: dict[str, Any], user_path: Path) -> list[Model | Unread]:
    """Run a reader on the files ``paths`` and check every model that it returns; a model with which something is wrong
    becomes an `Unread`. ``user_path``: the file or folder that the user named, at or below which the files lie. Raises
    ValueError that names the reader or a result file."""
    root = user_path if user_path.is_dir() else user_path.parent
    settings = _validated(module, options)
    if hasattr(module, "table"):
        # {}: the user gave no names of columns.
        results = plain_csv.read_tables(paths, lambda path: _table(module, path, settings), {}, root)
    else:
        results = _call(module, "read", paths, settings, root)
    if not isinstance(results, list) or not all(isinstance(result, (Model, Unread)) for result in results):
        expected = "read must return a list of unlearning_audit.readers.Model"
        raise PluginError(f"{readable(module.__file__)}: {expected}, it returned {type_of(results)}")
    problems = [result.problem() if isinstance(result, Model) else "" for result in results]
    return [
        Unread(result.file, f"{result.file}: {problem}") if problem else result
        for result, problem in zip(results, problems, strict=True)
    ]


def _table(module: Module, path: Path, settings: Settings) -> pd.DataFrame:
    """Return the table that a reader makes of one file. Raises PluginError if it is no data frame of pandas."""
    table = _call(module, "table", path, settings)
    if not isinstance(table, pd.DataFrame):
        demand = "table must return a data frame of pandas, with a line for each sample"
        raise PluginError(f"{readable(module.__file__)}: {demand}, it returned {type_of(table)}")
    return table


def _result_files(module: Module, user_path: Path, options: dict[str, Any]) -> list[Path]:
    """Return the result files that a reader finds at or below a path that the user named. The options are checked only
    if the reader's function ``files`` takes them: all readers may be asked, also those for which the options are not
    meant."""
    takes = "options" in inspect.signature(module.files).parameters
    return list(_call(module, "files", user_path, _validated(module, options) if takes else Settings()))


def _validated(module: Module, options: dict[str, Any]) -> Settings:
    """Return the user's ``options`` of a reader as an object of the reader's class ``Options``; a reader without this
    class allows no option. Raises ValueError that names the first wrong option."""
    try:
        return cast(Settings, getattr(module, "Options", Settings)(**options))
    except ValidationError as error:
        problem, *_ = error.errors()
        field = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{readable(module.__file__)}: its option {field!r}: {problem['msg']}") from None


def _call(module: ModuleType, name: str, *arguments: object) -> Any:
    """Call the function ``name`` of a reader and return its result. An error in a user's own reader is reported with
    its file and line (`guard`); an error in a reader of the library is raised as it is."""
    file = str(module.__file__)
    with nullcontext() if in_library(file) else guard(file):
        return registry.call("readers", module, name, *arguments)


def _believe_inner_names(models: Sequence[Model], user_path: Path) -> None:
    """Take back the roles that models have only from the name of the folder ``user_path``, if a name inside the folder
    suggests a role for any model: the folder is then named after the whole experiment.

    Each model with such a role takes the role that names inside the folder suggest for it, or else the unknown role. If
    ``user_path`` is a file, or if its name suggests no role, nothing changes.
    """
    of_folder = _words.model_of_names((user_path.name,))
    if not user_path.is_dir() or not of_folder.role:
        return
    inside = {
        model: _words.model_of_names((*_texts.bare(model.file).relative_to(user_path).parts, *model.entry.split("/")))
        for model in models
    }
    if any(hints.role for hints in inside.values()):
        for model in models:
            if model.decided == of_folder.decided:  # this reason says that the role came from the folder's name
                model.role, model.decided = inside[model].role, inside[model].decided


def _readers(reader: str) -> list[tuple[str, Module]]:
    """Return (name, module) of the readers to run: only ``reader``, which is the path of a user's own file ``*.py`` or
    the name of a reader of the library; if ``reader`` is "", all readers of the library.

    The reader of plain tables comes last, because files of other formats are tables, too.
    """
    if reader.endswith(".py"):
        return [(Path(reader).stem, registry.load("readers", Path(reader).stem, reader))]
    names = [reader] if reader else sorted(registry.names("readers"), key=lambda name: name == "plain_csv")
    return [(name, registry.load("readers", name)) for name in names]
