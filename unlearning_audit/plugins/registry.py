"""Finds all that can be added by name, from data to readers: one file each, ours or a user's own."""

import ast
import dataclasses
import functools
import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from unlearning_audit.plugins import imports, syntax
from unlearning_audit.plugins.declarations import OFFERS, Protocol, Quantity, renamed
from unlearning_audit.plugins.guard import LIBRARY, PluginError, guard, readable
from unlearning_audit.plugins.settings import Settings


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of plug-in: its ``noun``; the ``parts`` that each file defines besides ``class Options(Settings)``, of
    which capitals are constants; ``takes``: the names of what the function that is the first of them takes, where that
    is checked (an attack may take signals after these); ``mark``: by which part a file is recognised."""

    noun: str
    parts: tuple[str, ...]
    takes: tuple[str, ...]
    mark: str

    @property
    def with_article(self) -> str:
        """ "a method", "an attack"."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


KINDS = {
    "methods": Kind("method", ("unlearn",), ("bank", "forget", "retain", "options"), "unlearn"),
    "attacks": Kind("attack", ("score",), ("logits", "y", "reference", "options", "rng"), "score"),
    "models": Kind("model", ("build",), ("options", "shape", "classes"), "build"),
    "data": Kind("data source", ("load",), ("options", "root"), "load"),
    "metrics": Kind("metric", ("rows",), ("case", "options", "rng"), "rows"),
    "protocols": Kind("protocol", ("blocks", "draw", "PROTOCOL"), (), "draw"),
    "readers": Kind("reader of result files", ("read", "files"), ("paths", "options", "root"), "files"),
}

#: By which function attacks score texts from the readings of their tokens, and metrics say what they read of these.
OF_TEXTS = {"attacks": "text_score", "metrics": "text_readings"}


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """The names that the library ships for ``kind``, sorted."""
    return tuple(sorted(p.stem for p in (LIBRARY / kind).glob("*.py") if not p.stem.startswith("_")))


def source_file(kind: str, name: str, file: str | None = None) -> Path:
    """The file that defines ``name``, absolute: the library's own, or the user's ``file``.

    Raises ValueError with one sentence if there is no such file.
    """
    if file is None:
        return _shipped(kind, name)
    if not Path(file).is_file():
        raise ValueError(no_file(file))
    return Path(file).resolve()


@functools.cache
def _shipped(kind: str, name: str) -> Path:
    if name not in names(kind):
        raise ValueError(f"{name!r} is none of the {kind} known here: {', '.join(names(kind))}")
    return LIBRARY / kind / f"{name}.py"


def no_file(file: str | Path) -> str:
    """The sentence on a path at which there is no file."""
    if Path(file).is_dir():
        return f"{str(file)!r} is a folder; give the Python file itself, such as {str(Path(file) / 'mine.py')!r}"
    return f"file {str(file)!r} does not exist; give a path relative to the working directory"


@functools.cache
def defining(kind: str, identifier: str) -> tuple[str, ...]:
    """The plug-ins of the library of this kind whose files define a function or constant of that name, sorted."""
    return tuple(name for name in names(kind) if identifier in syntax.defined(source_file(kind, name)))


def adapter(kind: str) -> str | None:
    """The plug-in of this kind that runs functions without Options and defines ``ADAPTER``, or None."""
    return next(iter(defining(kind, "ADAPTER")), None)


def is_function(kind: str, path: Path, function: str) -> bool:
    """Whether a file has no Options, but a ``function`` (or a class, of "Class.method") for the adapter of its kind."""
    if adapter(kind) is None or "Options" in syntax.defined(path):
        return False
    arguments = syntax.signature(path, function)
    return function.partition(".")[0] in syntax.defined(path) and not (
        arguments and arguments[0][:1] == [syntax.Parameter(KINDS[kind].takes[0], True)]
    )


def check(kind: str, path: Path) -> None:
    """Check without running it that a plug-in file has its parts, and that its function takes what it will be given.
    Raises ValueError that names what is missing or otherwise named."""
    identifiers = syntax.defined(path)
    for part in (*(["Options"] if kind != "metrics" else []), *KINDS[kind].parts):
        if part not in identifiers:
            statement = "class Options(Settings)" if part == "Options" else part
            raise ValueError(f"{path}: {statement} is missing; every file of {kind} defines it")
    for node in syntax.statements(path):
        takes = KINDS[kind].takes
        if takes and isinstance(node, ast.FunctionDef) and node.name == KINDS[kind].parts[0]:
            _check_arguments(node, takes, path, more=kind == "attacks")


def _check_arguments(node: ast.FunctionDef, expected: tuple[str, ...], path: Path, *, more: bool) -> None:
    """Raise ValueError if a function does not take ``expected`` by these names (and ``more``); "_rng" is "rng"."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    required = len(names) - len(node.args.defaults)
    enough = node.args.vararg or (len(names) >= len(expected) and (more or required <= len(expected)))
    if not enough or any(name.lstrip("_") != role for name, role in zip(names, expected, strict=False)):
        raise ValueError(
            f"{readable(path)} line {node.lineno}: {node.name} must take ({', '.join(expected)}), "
            f"found ({', '.join(names)})"
        )


#: Modules that a file's Options may use; they are quick to import.
LIGHT = (
    "typing",
    "pydantic",
    "math",
    "enum",
    "pathlib",
    "unlearning_audit.plugins.settings",
    "unlearning_audit.plugins.declarations",
    "unlearning_audit.bank.optim",
    "unlearning_audit.bank.recipe",
    "unlearning_audit.models",
    "unlearning_audit.protocols._options",
)


def options(kind: str, name: str, file: str | None = None) -> type[Settings]:
    """The ``Options`` class of a plug-in, without running the rest of its file.

    Methods and users' files may import torch, which takes seconds, attacks and metrics scipy; a plan needs their
    options only. So only imports from `LIGHT`, constants and settings classes of such a file are run. Files of
    other kinds are imported whole. Raises ValueError if the file is unknown,
    incomplete, or its Options need more.
    """
    path = source_file(kind, name, file)
    if kind not in ("methods", "attacks", "metrics") and file is None:
        return load(kind, name).Options
    scope, reason = _light_part(kind, path, path.stat().st_mtime_ns)
    options = scope.get("Options")
    if kind == "metrics" and "Options" not in syntax.defined(path):
        return Settings
    if not (isinstance(options, type) and issubclass(options, Settings)):
        raise ValueError(f"{path}: class Options cannot be read; {reason}")
    return options


def quantities(name: str, file: str | None = None, key: str = "") -> tuple[Quantity, ...]:
    """What the rows of a metric may be called, as its file declares it, without running the rest of the file; ``key``:
    what a study calls the metric (see `declarations.name_in_study`).

    Raises ValueError if the file is unknown or incomplete, or its QUANTITIES are something else.
    """
    path = source_file("metrics", name, file)
    return _quantities(path, path.stat().st_mtime_ns, key or path.stem)


@functools.cache
def _quantities(path: Path, stamp: int, key: str) -> tuple[Quantity, ...]:
    parts, _ = _light_part("metrics", path, stamp)
    records = _record(path, "QUANTITIES", parts.get("QUANTITIES", (Quantity(""),)), tuple)
    return tuple(renamed(record, key, path.stem) for record in records)


def declared(kind: str, name: str, file: str | None = None, constant_name: str = "NEEDS") -> tuple[str, ...]:
    """The names that a constant of a plug-in's file holds, such as NEEDS, which may be one text or a tuple; () without
    it. Raises ValueError as `constant`, and for a value of another type."""
    path = source_file(kind, name, file)
    return _declared_by_library(path, constant_name) if file is None else _declared(path, constant_name)


def _declared(path: Path, constant_name: str) -> tuple[str, ...]:
    value = syntax.constant(path, constant_name)
    names = (value,) if isinstance(value, str) else () if value is None else value
    if not (isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"{path}: {constant_name} must be text in quotes or a tuple of such, found {value!r}")
    return tuple(names)


#: Planning asks thousands of times what the library's files declare, which do not change meanwhile as a user's may.
_declared_by_library = functools.cache(_declared)


def offers(entry: Any, offer: str) -> bool:
    """Whether a chosen protocol, with its ``name`` and ``file``, offers something."""
    return offer in protocol(entry.name, entry.file).offers


@functools.cache
def offering(offer: str) -> str:
    """The protocols of the library that offer something, as a choice in words: "one or another"."""
    return " or ".join(name for name in names("protocols") if offer in protocol(name).offers)


def lacking(offers: tuple[str, ...], name: str, file: str | None = None) -> tuple[str, ...]:
    """What a metric needs of a protocol that ``offers`` do not hold; nothing where one of them brings it along."""
    if set(offers).intersection(declared("metrics", name, file, "DEFAULT")):
        return ()
    return tuple(need for need in declared("metrics", name, file) if need in OFFERS and need not in offers)


@functools.cache
def defaults(offers: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics of the library that are computed without being named, in the order of the ``offers`` by which they
    are."""
    by_offer = {name: declared("metrics", name, None, "DEFAULT") for name in names("metrics")}
    places = [(offers.index(offer), name) for name, needs in by_offer.items() for offer in needs if offer in offers]
    return tuple(name for _, name in sorted(places) if not lacking(offers, name))


def possible(offers: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics of the library that can be computed with these ``offers``."""
    return tuple(name for name in names("metrics") if not lacking(offers, name))


def protocol(name: str, file: str | None = None) -> Protocol:
    """The record of a protocol. Raises ValueError if it is unknown, incomplete, or its PROTOCOL is something else."""
    return _protocol_of_library(name) if file is None else _protocol(name, file)


def _protocol(name: str, file: str | None = None) -> Protocol:
    record = load("protocols", name, file).PROTOCOL
    return _record(source_file("protocols", name, file), "PROTOCOL", record, Protocol)


_protocol_of_library = functools.cache(_protocol)


def printed(model: Any) -> str:
    """What papers call a chosen model, with its ``name``, ``file`` and ``options``: its name, or ``PRINTED`` of its
    file with options in the place of braces. Raises ValueError where that is no such text."""
    text = syntax.constant(source_file("models", model.name, model.file), "PRINTED")
    try:
        return model.name if text is None else text.format(**model.options)
    except (AttributeError, IndexError, KeyError, ValueError):
        problem = f"has PRINTED = {text!r}, which must be text with options of the model in braces"
        raise ValueError(problem) from None


def inspect(kind: str, name: str, file: str) -> None:
    """Import a plug-in's file and see that its record is one. Raises ValueError as `load`, `protocol`, `quantities`."""
    load(kind, name, file)
    if kind == "protocols":
        protocol(name, file)
    elif kind == "metrics":
        quantities(name, file)


def _record(path: Path, name: str, value: object, kind: type) -> Any:
    """``value``, if it is a ``kind`` whose fields have the types that they should."""
    description = {"QUANTITIES": "a tuple of Quantity(…)", "PROTOCOL": "Protocol(…)"}[name]
    if not isinstance(value, kind) or (kind is tuple and not all(isinstance(quantity, Quantity) for quantity in value)):
        raise ValueError(f"{path}: {name} must be {description} of unlearning_audit.plugins.declarations")
    for record in value if kind is tuple else [value]:
        for field in dataclasses.fields(record):
            content, default = getattr(record, field.name), field.default
            if default is dataclasses.MISSING or (isinstance(default, float) and isinstance(content, (int, float))):
                continue
            if not isinstance(content, type(default)) or isinstance(content, bool) != isinstance(default, bool):
                words = {
                    tuple: "a tuple, such as ('one',)",
                    str: "text in quotes",
                    bool: "True or False",
                    float: "a number",
                }
                raise ValueError(f"{path}: {name}: {field.name} must be {words[type(default)]}, found {content!r}")
    return value


@functools.cache
def _light_part(kind: str, path: Path, stamp: int) -> tuple[dict[str, Any], str]:
    """What a plug-in's file defines by its light statements alone, and why it may lack Options.

    ``stamp`` makes an edited file a new entry.
    """
    check(kind, path)
    scope = {"__name__": f"unlearning_audit.options.{kind}.{path.stem}"}
    reason = "it must derive from Settings"
    for node in syntax.statements(path):
        of_others = "unlearning_audit.metrics."
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(of_others):
            # A metric that reads another one's quantities declares these.
            shared = [alias for alias in node.names if alias.name == "QUANTITIES"]
            scope.update(
                {import_.asname or import_.name: quantities(node.module.removeprefix(of_others)) for import_ in shared}
            )
        if not _light(node):
            continue
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), scope)
        except Exception as error:
            # Statements that need other modules are skipped; only Options must not need them.
            if getattr(node, "name", None) == "Options":
                reason = f"it may use only {', '.join(LIGHT)} ({error})"
    return scope, reason


def load(kind: str, name: str, file: str | None = None) -> ModuleType:
    """The module that defines ``name``. Raises ValueError if it is unknown, incomplete or fails."""
    path = source_file(kind, name, file)
    if file is None:
        return importlib.import_module(f"unlearning_audit.{kind.replace('/', '.')}.{name}")
    return _load(kind, path, path.stat().st_mtime_ns)


class _Uncached(SourceFileLoader):
    """Runs a user's file as it is. Python would leave a __pycache__ beside it, and take a file for the same that was
    edited within a second and kept its size."""

    def get_code(self, fullname: str):
        return self.source_to_code(self.get_data(self.path), self.path)


@functools.cache
def _load(kind: str, path: Path, stamp: int) -> ModuleType:
    """``stamp`` makes an edited file a new entry."""
    check(kind, path)
    module_name = f"unlearning_user_{kind}_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path, loader=_Uncached(module_name, str(path)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # what lies beside it is imported by its name
    imports.missing(path)
    try:
        with guard(path):
            spec.loader.exec_module(module)
    except PluginError as error:
        del sys.modules[spec.name]
        raise PluginError(f"{error} (when it was imported)", error.file, error.line, error.trace) from error
    return module


def _light(node: ast.stmt) -> bool:
    """Whether a statement may be needed by Options and is quick to run."""
    if isinstance(node, ast.Import):
        return all(alias.name in LIGHT for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in LIGHT
    return isinstance(node, (ast.Assign, ast.AnnAssign, ast.ClassDef))
