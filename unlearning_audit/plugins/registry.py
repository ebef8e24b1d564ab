"""Find plug-ins of all kinds, from data to readers, by name: one file each, the library's or a user's."""

import dataclasses
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Container
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from unlearning_audit.plugins import imports, syntax
from unlearning_audit.plugins.declarations import OFFERS, Protocol, Quantity, renamed
from unlearning_audit.plugins.guard import LIBRARY, PluginError, guard, readable
from unlearning_audit.plugins.settings import Settings


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of plug-in.

    Parameters
    ----------
    noun
        The name of the kind in sentences.
    parts
        What each file defines, "value or rows" if one of two suffices; names in capitals are constants. A file is
        recognised by the first part.
    takes
        Function → the parameters that it may name, of functions whose parameters are checked. An attack may name
        signals as well.
    """

    noun: str
    parts: tuple[str, ...]
    takes: dict[str, tuple[str, ...]]

    @property
    def with_article(self) -> str:
        """The noun with its article, such as "a method" or "an attack"."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    def marks(self, names: Container[str]) -> bool:
        """Return whether a file that defines ``names`` is of this kind."""
        return any(part in names for part in self.parts[0].split(" or "))


KINDS = {
    "methods": Kind("method", ("unlearn",), {"unlearn": ("stack", "forget", "retain", "options")}),
    "attacks": Kind("attack", ("score",), {"score": ("logits", "y", "shadow", "options", "rng")}),
    "models": Kind("model", ("build",), {"build": ("options", "shape", "classes")}),
    "data": Kind("data source", ("load",), {"load": ("options", "root")}),
    "protocols": Kind("protocol", ("draw", "blocks", "PROTOCOL"), {}),
    "readers": Kind(
        "reader of result files",
        ("files", "table or read"),
        {
            "files": ("place", "options"),
            "table": ("path", "options"),
            "read": ("paths", "options", "root"),
            "joined": ("models",),
        },
    ),
    "signals": Kind("signal", ("measure",), {"measure": ("network", "x", "y")}),
    "metrics": Kind(
        "metric",
        ("value or rows",),
        {
            "value": ("models", "options"),
            "rows": ("evaluation", "options", "rng"),
            "effects": ("evaluation", "options"),
        },
    ),
}

#: Kinds of parameters that take what no other parameter names.
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: The functions by which attacks score texts from the signals of their tokens, and metrics read such signals.
OF_TEXTS = {"attacks": "text_score", "metrics": "text_readings"}


class Module(ModuleType):
    """The imported file of a plug-in."""

    __file__: str


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """Return the names of the library's own plug-ins of a ``kind``, sorted."""
    return tuple(sorted(p.stem for p in (LIBRARY / kind).glob("*.py") if not p.stem.startswith("_")))


def source_file(kind: str, name: str, file: str | None = None) -> Path:
    """Return the absolute path of the file that defines ``name``: the library's own, or the user's ``file``.

    Raises ValueError with one sentence if there is no such file.
    """
    if file is None:
        if name not in names(kind):
            raise ValueError(f"{name!r} is not one of the {kind}: {', '.join(names(kind))}")
        return LIBRARY / kind / f"{name}.py"
    if not Path(file).is_file():
        raise ValueError(no_file(file))
    return Path(file).resolve()


def no_file(file: str | Path) -> str:
    """Return a sentence that there is no file at this path: nothing, or a folder in its place."""
    if Path(file).is_dir():
        return f"{str(file)!r} is a folder; give the Python file itself, such as {str(Path(file) / 'mine.py')!r}"
    return f"file {str(file)!r} does not exist; give a path relative to the working directory"


@functools.cache
def defining(kind: str, identifier: str) -> tuple[str, ...]:
    """Return the library's plug-ins of this kind whose files define a function or constant ``identifier``, sorted."""
    return tuple(name for name in names(kind) if defines(kind, name, file=None, identifier=identifier))


def defines(kind: str, name: str, file: str | None, identifier: str) -> bool:
    """Return whether a plug-in's file defines a function or constant ``identifier``. An imported module of that name
    does not count."""
    module = load(kind, name, file)
    return hasattr(module, identifier) and not isinstance(getattr(module, identifier), ModuleType)


def constant(kind: str, name: str, file: str | None, identifier: str) -> Any:
    """Return the value of a constant of a plug-in's file; None if the file does not define it."""
    return getattr(load(kind, name, file), identifier, None)


def adapter(kind: str) -> str | None:
    """Return the name of the plug-in that runs users' functions which are no plug-ins of this kind themselves, such as
    the method "classic": its file defines ``ADAPTER``. Return None if no file of this kind defines it."""
    return next(iter(defining(kind, "ADAPTER")), None)


def has_published_function(kind: str, path: Path, *, named: bool = False) -> bool:
    """Return whether a user's file has a published function, which the adapter of its ``kind`` runs, and is no plug-in
    itself.

    Such a file defines no ``Options``, and its kind has an adapter. Either the study names the function (``named``), or
    the function has the name that plug-ins of this kind use, such as unlearn, but another first parameter than theirs,
    or parameters that cannot be known without running the file.
    """
    defined, this_kind = syntax.defined(path), KINDS[kind]
    if adapter(kind) is None or "Options" in defined:
        return False
    mark = this_kind.parts[0]
    if named or mark not in defined:
        return named
    # (parameters, whether it takes further ones), or None. Only the first parameter is compared.
    signature = syntax.signature(path, mark)
    return not (signature and signature[0][:1] == [syntax.Parameter(this_kind.takes[mark][0], required=True)])


def _check(kind: str, module: Module, path: Path) -> None:
    """Check that a user's file defines the parts of its kind, that its functions require no other parameters than their
    kind's (those of attacks and metrics may name signals too), and that its ``Options`` are settings. Parameters with a
    default may have any name. Raises ValueError
    that names what is missing or wrong."""
    for part in KINDS[kind].parts:
        if not any(hasattr(module, name) for name in part.split(" or ")):
            raise ValueError(f"{path}: {part} is missing; every file of {kind} defines it")
    signals = declared_in(module) if kind in ("attacks", "metrics") else ()
    for name, expected in KINDS[kind].takes.items():
        function, known = getattr(module, name, None), (*expected, *signals)
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters.values()
            # The name of a parameter that the function does not use may begin with "_".
            required = [p.name for p in parameters if p.default is p.empty and p.kind not in VARIADIC]
            unknown = [parameter for parameter in required if parameter.lstrip("_") not in known]
            if unknown:
                where = f"{readable(path)} line {function.__code__.co_firstlineno}: {name}"
                raise ValueError(f"{where} may have the parameters ({', '.join(known)}), found {unknown[0]!r}")
    if not (isinstance(module.Options, type) and issubclass(module.Options, Settings)):
        raise ValueError(f"{path}: class Options cannot be read; it must derive from Settings")


def call(kind: str, module: ModuleType, name: str, *values: Any, **signals: Any) -> Any:
    """Call the function ``name`` of a plug-in and return its result. It gets those of ``values`` and ``signals`` that
    its parameters name. The names of ``values``, in their order, are those that `KINDS` lists for this function. A
    parameter "_rng" counts as "rng". A function with ``*args`` gets all values, in their order, and all signals."""
    function = getattr(module, name)
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters):
        return function(*values, **signals)
    given = {**dict(zip(KINDS[kind].takes[name], values, strict=True)), **signals}
    return function(**{p.name: given[p.name.lstrip("_")] for p in parameters if p.name.lstrip("_") in given})


def options(kind: str, name: str, file: str | None = None) -> type[Settings]:
    """Return the ``Options`` class of a plug-in; `Settings`, which has no fields, if it does not define one. Raises
    ValueError if the plug-in is unknown or cannot be imported."""
    return getattr(load(kind, name, file), "Options", Settings)


def quantities(name: str, file: str | None = None, key: str = "") -> tuple[Quantity, ...]:
    """Return the quantities that a metric declares, by which its rows may be named, under their names in the study; if
    it declares none, one that is called as the metric itself.

    Parameters
    ----------
    key
        The study's name of the metric, which precedes the quantities' names if it differs from the file's
        (`declarations.name_in_study`).

    Raises
    ------
    ValueError
        If the metric is unknown or cannot be imported.
    """
    module, stem = load("metrics", name, file), source_file("metrics", name, file).stem
    return _renamed(getattr(module, "QUANTITIES", (Quantity(""),)), key or stem, stem)


@functools.cache
def _renamed(quantities: tuple[Quantity, ...], key: str, stem: str) -> tuple[Quantity, ...]:
    """Return the quantities under their names in a study, for a metric in the file ``stem`` that the study calls
    ``key``."""
    return tuple(renamed(quantity, key, stem) for quantity in quantities)


def declared(kind: str, name: str, file: str | None = None, constant_name: str = "NEEDS") -> tuple[str, ...]:
    """Return the names in a constant of a plug-in's file, such as NEEDS, which is one text or a tuple; () without the
    constant."""
    return declared_in(load(kind, name, file), constant_name)


def declared_in(module: ModuleType, constant_name: str = "NEEDS") -> tuple[str, ...]:
    """Return the names in a constant of an imported file, such as NEEDS, which is one text or a tuple; () without the
    constant."""
    value = getattr(module, constant_name, None)
    return (value,) if isinstance(value, str) else tuple(value or ())


def needed_signals(kind: str, name: str, file: str | None = None) -> dict[str, str | None]:
    """Return signal → its file, for the signals in the NEEDS of an attack or metric (``kind``). The file is None for a
    signal of the library; a user's own signal is a file of its name beside the user's attack or metric."""
    files: dict[str, str | None] = {}
    for need in declared(kind, name, file):
        # The file of a user's signal. Without a ``file``, any path will do, because it is not looked at.
        if need in names("signals"):
            files[need] = None
        elif file and (own := Path(file).resolve().with_name(f"{need}.py")).is_file():
            files[need] = str(own)
    return files


@functools.cache
def offering(offer: str) -> str:
    """Return the names of the library's protocols that offer ``offer``, as a choice in words: "one or another"."""
    return " or ".join(name for name in names("protocols") if offer in protocol(name).offers)


def lacking(offers: tuple[str, ...], name: str, file: str | None = None, kind: str = "metrics") -> tuple[str, ...]:
    """Return what a metric, or an attack, needs of `OFFERS` that is not among a protocol's ``offers``; () if one of the
    offers is in the metric's ``DEFAULT``, so that the metric is computed anyway."""
    if set(offers).intersection(declared(kind, name, file, constant_name="DEFAULT")):
        return ()
    return tuple(need for need in declared(kind, name, file) if need in OFFERS and need not in offers)


@functools.cache
def defaults(offers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the library's metrics that are computed by default with these ``offers``: their ``DEFAULT`` names an offer
    among them, and nothing that they need is lacking. They are in the order of ``offers``, then of their names."""
    wanted = {name: declared("metrics", name, constant_name="DEFAULT") for name in names("metrics")}
    # (Position of the offer, name of the metric): sorted, they are in the order of offers, then by name.
    found = [(offers.index(offer), name) for name, some in wanted.items() for offer in some if offer in offers]
    return tuple(name for _, name in sorted(found) if not lacking(offers, name))


def protocol(name: str, file: str | None = None) -> Protocol:
    """Return the declaration ``PROTOCOL`` of a protocol. Raises ValueError if the protocol is unknown or cannot be
    imported."""
    return cast(Protocol, load("protocols", name, file).PROTOCOL)


def printed(model: Any) -> str:
    """Return the name of a chosen model in papers: ``PRINTED`` of its file with options in place of braces, or else its
    name.

    ``model`` has ``name``, ``file`` and ``options``.
    """
    text = constant("models", model.name, model.file, "PRINTED")
    return str(model.name if text is None else text.format(**model.options))


def load(kind: str, name: str, file: str | None = None) -> Module:
    """Import and return the module that defines ``name``. Raises ValueError if it is unknown or incomplete, or if its
    import fails."""
    path = source_file(kind, name, file)
    if file is None:
        return cast(Module, importlib.import_module(f"unlearning_audit.{kind.replace('/', '.')}.{name}"))
    return _load(kind, path, path.stat().st_mtime_ns)


class _Uncached(SourceFileLoader):
    """A loader that always runs a user's file from its source. Python would leave a __pycache__ beside the file, and
    reuse it if an edit within the same second keeps the file's size."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


@functools.cache
def _load(kind: str, path: Path, stamp: int) -> Module:
    """Import and check a user's file. ``stamp``, its time of modification, makes an edited file a new entry of the
    cache.

    Raises ValueError for a file that is not Python or lacks what its kind defines, and PluginError if its code fails as
    it is imported.
    """
    module_name = f"unlearning_user_{kind}_{path.stem}"
    loader = _Uncached(module_name, str(path))
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None  # it has a loader
    module = cast(Module, importlib.util.module_from_spec(spec))
    syntax.statements(path)  # raises ValueError with a sentence if the file is not Python
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what functions import when they are called
    sys.modules[module_name] = module
    try:
        with imports.neighbours(path), guard(path):
            loader.exec_module(module)
        module.__dict__.setdefault("Options", Settings)  # a file without options takes none
        _check(kind, module, path)
    except PluginError as error:
        del sys.modules[module_name]
        raise PluginError(f"{error} (when it was imported)", error.file, error.line, error.trace) from error
    return module
