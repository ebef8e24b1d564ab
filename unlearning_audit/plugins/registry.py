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
from typing import Any, NamedTuple

from unlearning_audit.plugins.declarations import OFFERS, Protocol, Quantity, renamed
from unlearning_audit.plugins.guard import LIBRARY, PluginError, guard, readable
from unlearning_audit.plugins.settings import Settings


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of plug-in: its ``noun``; the ``parts`` that each file defines besides ``class Options(Settings)``, of
    which capitals are constants; ``takes``: what the function that is the first of them is given, in this order, where
    that is checked (an attack may take signals after that); ``mark``: by which part a file is recognised."""

    noun: str
    parts: tuple[str, ...]
    takes: tuple[str, ...]
    mark: str

    @property
    def with_article(self) -> str:
        """ "a method", "an attack"."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


class Parameter(NamedTuple):
    """A parameter of a function: its ``name``, and whether it has no default."""

    name: str
    required: bool


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
    if file is None and name not in names(kind):
        raise ValueError(f"{name!r} is none of the {kind} known here: {', '.join(names(kind))}")
    if file is None:
        return LIBRARY / kind / f"{name}.py"
    if not Path(file).is_file():
        raise ValueError(no_file(file))
    return Path(file).resolve()


def no_file(file: str | Path) -> str:
    """The sentence on a path at which there is no file."""
    if Path(file).is_dir():
        return f"{str(file)!r} is a folder; give the Python file itself, such as {str(Path(file) / 'mine.py')!r}"
    return f"file {str(file)!r} does not exist; give a path relative to the working directory"


def defined(path: Path) -> set[str]:
    """Names that a file's top level defines, by reading, not running, it. Raises ValueError if it is not Python."""
    identifiers = set()
    for node in _statements(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            identifiers.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        identifiers |= {
            name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)
        }
    return identifiers


def methods(path: Path) -> list[str]:
    """``Class.method`` of the classes at a file's top level, but for names that begin with "_", by reading it."""
    classes = [node for node in _statements(path) if isinstance(node, ast.ClassDef)]
    pairs = ((node.name, child.name) for node in classes for child in node.body if isinstance(child, ast.FunctionDef))
    return [f"{parent}.{method}" for parent, method in pairs if not method.startswith("_")]


@functools.cache
def defining(kind: str, identifier: str) -> tuple[str, ...]:
    """The plug-ins of the library of this kind whose files define a function or constant of that name, sorted."""
    return tuple(name for name in names(kind) if identifier in defined(source_file(kind, name)))


def adapter(kind: str) -> str | None:
    """The plug-in of this kind that runs functions without Options and defines ``ADAPTER``, or None."""
    return next(iter(defining(kind, "ADAPTER")), None)


def is_function(kind: str, path: Path, function: str) -> bool:
    """Whether a file has no Options, but a ``function`` (or a class, of "Class.method") for the adapter of its kind."""
    if adapter(kind) is None or "Options" in defined(path):
        return False
    arguments = signature(path, function)
    return function.partition(".")[0] in defined(path) and not (
        arguments and arguments[0][:1] == [Parameter(KINDS[kind].takes[0], True)]
    )


def signature(path: Path, function: str) -> tuple[list[Parameter], bool] | None:
    """The parameters that a function, or a class and its method, can be given by name, and whether it takes any further
    keyword; by reading, not running. None where a decorator, a parent class or the absence of the function leaves that
    open."""
    first, _, method = function.partition(".")
    node = next((child for child in _statements(path) if getattr(child, "name", None) == first), None)
    if not method or not isinstance(node, ast.ClassDef):
        return _parameters(node, bound=bool(method))
    inside = {getattr(child, "name", ""): child for child in node.body}
    constructor = _parameters(inside.get("__init__"), bound=True) if "__init__" in inside or node.bases else ([], False)
    of_method = _parameters(inside.get(method), bound=True)
    if constructor is None or of_method is None:
        return None
    by_name = {parameter.name: parameter for parameter in reversed([*constructor[0], *of_method[0]])}
    return list(by_name.values())[::-1], constructor[1] or of_method[1]


def _parameters(node: ast.AST | None, *, bound: bool) -> tuple[list[Parameter], bool] | None:
    """Of one function; ``bound``: without the object of a method."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    positional = [*node.args.posonlyargs, *node.args.args][int(bound) :]
    required = len(positional) - len(node.args.defaults)
    parameters = [Parameter(child.arg, i < required) for i, child in enumerate(positional)]
    only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    parameters += [Parameter(child.arg, default is None) for child, default in only]
    return parameters, node.args.kwarg is not None


def check(kind: str, path: Path) -> None:
    """Check without running it that a plug-in file has its parts, and that its function takes what it will be given.
    Raises ValueError that names what is missing or in another order."""
    identifiers = defined(path)
    for part in (*(["Options"] if kind != "metrics" else []), *KINDS[kind].parts):
        if part not in identifiers:
            statement = "class Options(Settings)" if part == "Options" else part
            raise ValueError(f"{path}: {statement} is missing; every file of {kind} defines it")
    for node in _statements(path):
        takes = KINDS[kind].takes
        if takes and isinstance(node, ast.FunctionDef) and node.name == KINDS[kind].parts[0]:
            _check_arguments(node, takes, path, more=kind == "attacks")


def _check_arguments(node: ast.FunctionDef, expected: tuple[str, ...], path: Path, *, more: bool) -> None:
    """Raise ValueError if a function cannot be given ``expected`` in this order (and ``more``), by names or number."""
    parameters = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    least = len(parameters) - len(node.args.defaults)
    fits = node.args.vararg or (len(parameters) >= len(expected) and (more or least <= len(expected)))
    common = [name for name in parameters if name in expected]
    if not fits or common != [name for name in expected if name in common]:
        raise ValueError(
            f"{readable(path)} line {node.lineno}: {node.name} must take ({', '.join(expected)}) in this order, "
            f"found ({', '.join(parameters)})"
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
    if kind == "metrics" and "Options" not in defined(path):
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
    value = constant(path, constant_name)
    names = (value,) if isinstance(value, str) else () if value is None else value
    if not (isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"{path}: {constant_name} must be text in quotes or a tuple of such, found {value!r}")
    return tuple(names)


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
    path, record = source_file("protocols", name, file), load("protocols", name, file).PROTOCOL
    if _checked.get(path) is not record:
        _checked[path] = _record(path, "PROTOCOL", record, Protocol)
    return record


#: The record of each protocol that was checked last: planning asks for them thousands of times.
_checked: dict[Path, Protocol] = {}


def printed(model: Any) -> str:
    """What papers call a chosen model, with its ``name``, ``file`` and ``options``: its name, or ``PRINTED`` of its
    file with options in the place of braces. Raises ValueError where that is no such text."""
    text = constant(source_file("models", model.name, model.file), "PRINTED")
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
    for node in _statements(path):
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


def constant(path: Path, name: str) -> object:
    """The value of a constant at a file's top level, by reading, not running, it; None if there is none.

    Raises ValueError if it is no literal.
    """
    status = path.stat()
    value = _constants(path, (status.st_mtime_ns, status.st_size)).get(name)
    if value is None:
        return None
    try:
        return ast.literal_eval(value)
    except ValueError:
        raise ValueError(f"{path}: {name} must be a plain value, such as a text in quotes") from None


@functools.cache
def _constants(path: Path, stamp: tuple[int, int]) -> dict[str, ast.expr]:
    """What every name at a file's top level is given first."""
    values: dict[str, ast.expr] = {}
    for node in _parsed(path, stamp):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if value := getattr(node, "value", None):
            values = {target.id: value for target in targets if isinstance(target, ast.Name)} | values
    return values


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
    missing_packages(path)
    try:
        with guard(path):
            spec.loader.exec_module(module)
    except PluginError as error:
        del sys.modules[spec.name]
        raise PluginError(f"{error} (when it was imported)", error.file, error.line, error.trace) from error
    return module


def missing_packages(path: Path) -> list[str]:
    """The packages that a user's file, or a file beside it that it imports, needs at its top level and that are not
    installed; an import inside of try is no need. Raises ValueError for what is not Python, and for a file beside it
    in whose place Python imports another."""
    path = path.resolve()
    folder = [path.parent, *packages_around(path)][-1]
    todo, visited, missing = [path], set(), []
    while todo:
        file = todo.pop(0)
        if file in visited:
            continue
        visited.add(file)
        for module, level in _imports(file):
            base, top = file.parents[level - 1] if level else folder, module.partition(".")[0]
            local = modules_in(base, module.split(".")) if module else []
            if local and not level and top != __name__.partition(".")[0]:  # a file in a clone beside the library
                _check_import(file, top, folder)
            if local:
                todo += [candidate.resolve() for candidate in local]
            elif not level and not (folder / top).is_dir() and not _installed(top) and top not in missing:
                missing.append(top)
    return missing


def packages_around(path: Path) -> list[Path]:
    """Folders of the packages around a file, and last the folder that holds the outermost; none outside of packages."""
    folders = []
    while (path.parent / "__init__.py").is_file():
        folders.append(path.parent)
        path = path.parent
    return [*folders, path.parent] if folders else []


def import_root(path: Path) -> Path:
    """The folder from which Python finds a file: its own, or that which holds the packages around it."""
    return [path.parent, *packages_around(path)][-1]


def modules_in(folder: Path, parts: list[str]) -> list[Path]:
    """The files of packages and of the module that a dotted name, in ``parts``, names below a folder."""
    stems = [folder.joinpath(*parts[: i + 1]) for i in range(len(parts))]
    paths = [stem / "__init__.py" for stem in (stems or [folder])]
    if stems:
        paths.append(stems[-1].with_suffix(".py"))
    if len(stems) > 1:
        paths.append(stems[-2].with_suffix(".py"))  # the last part is a name in a module
    return [path for path in paths if path.is_file()]


def _check_import(path: Path, name: str, folder: Path) -> None:
    """Raise ValueError if Python has a top-level module of this name that does not lie in the ``folder``."""
    loaded = sys.modules.get(name)
    spec = loaded.__spec__ if loaded else importlib.util.find_spec(name)
    origin = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
    if origin and not Path(origin).resolve().is_relative_to(folder):
        raise ValueError(
            f"{readable(path)}: it imports {name} from beside it, and Python takes that from {readable(origin)}; "
            "give the file beside it another name"
        )


def _imports(path: Path) -> list[tuple[str, int]]:
    """(module, how many levels up it is looked for) of every import at the top level of a file."""
    plain = [(alias.name, 0) for node in _statements(path) if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in _statements(path) if isinstance(node, ast.ImportFrom)]
    return [*plain, *((node.module or "", node.level) for node in froms)]


@functools.cache
def _installed(package: str) -> bool:
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _statements(path: Path) -> list[ast.stmt]:
    """The top level of a file. Raises ValueError if it is not Python."""
    status = path.stat()
    return _parsed(path, (status.st_mtime_ns, status.st_size))


@functools.cache
def _parsed(path: Path, stamp: tuple[int, int]) -> list[ast.stmt]:
    """The parsed file. ``stamp`` makes an edited file a new entry."""
    try:
        return ast.parse(path.read_bytes(), filename=str(path)).body
    except SyntaxError as error:
        raise ValueError(f"{path}: line {error.lineno} is not valid Python ({error.msg})") from None
    except ValueError:
        raise ValueError(f"{path}: this is not a Python file") from None


def _light(node: ast.stmt) -> bool:
    """Whether a statement may be needed by Options and is quick to run."""
    if isinstance(node, ast.Import):
        return all(alias.name in LIGHT for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in LIGHT
    return isinstance(node, (ast.Assign, ast.AnnAssign, ast.ClassDef))
