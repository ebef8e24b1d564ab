"""Find out what a Python file defines at its top level by parsing it, without running it."""

import ast
import functools
from pathlib import Path
from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter of a function: its ``name``, and whether it is ``required``."""

    name: str
    required: bool


def defined(path: Path) -> set[str]:
    """Return the names that a file defines at its top level, and ``Class.method`` for those methods of its classes
    whose names do not begin with "_". Names that it imports, or that it defines within if or try, are left out. Raises
    ValueError if the file is not Python."""
    identifiers = set()
    for node in statements(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            identifiers.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = (child.name for child in node.body if isinstance(child, ast.FunctionDef))
            identifiers |= {f"{node.name}.{name}" for name in functions if not name.startswith("_")}
        # The left sides of "a = b = 1", or the one of "a: int = 1" and of a loop.
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [name for target in targets if target for name in ast.walk(target)]
        identifiers |= {name.id for name in names if isinstance(name, ast.Name)}
    return identifiers


def signature(path: Path, function: str) -> tuple[list[Parameter], bool] | None:
    """Return the parameters that ``function`` takes by name, and whether it takes further keywords.

    For a method, the parameters of the class's constructor are listed too. The file is parsed, not run. Returns None if
    a decorator, a parent class or a missing function leaves the parameters open.

    Parameters
    ----------
    function
        "name" or "Class.method".
    """
    name, _, method = function.partition(".")
    node = next((child for child in statements(path) if getattr(child, "name", None) == name), None)
    if not method or not isinstance(node, ast.ClassDef):
        return _parameters(node, bound=bool(method))
    child_of = {getattr(child, "name", ""): child for child in node.body}
    # A class without __init__ takes nothing. With a parent class, __init__ may be inherited: then this is None.
    may_take = "__init__" in child_of or node.bases
    constructor = _parameters(child_of.get("__init__"), bound=True) if may_take else ([], False)
    of_method = _parameters(child_of.get(method), bound=True)
    if constructor is None or of_method is None:
        return None
    # A parameter of both calls is listed once, as the constructor's: in a dict, the last of equal names counts.
    (made_with, makes_more), (called_with, takes_more) = constructor, of_method
    by_name = {parameter.name: parameter for parameter in reversed([*made_with, *called_with])}
    return list(by_name.values())[::-1], makes_more or takes_more


def _parameters(node: ast.AST | None, *, bound: bool) -> tuple[list[Parameter], bool] | None:
    """Return the named parameters of one function, and whether it takes further keywords; None if it has a decorator,
    or if ``node`` is no function. ``bound``: leave out the first parameter, the object of a method."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    positional = [*node.args.posonlyargs, *node.args.args][int(bound) :]  # a method's first is the object
    required = len(positional) - len(node.args.defaults)
    parameters = [Parameter(child.arg, required=i < required) for i, child in enumerate(positional)]
    keyword_only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    parameters += [Parameter(child.arg, required=default is None) for child, default in keyword_only]
    return parameters, node.args.kwarg is not None


def constant(path: Path, name: str) -> object:
    """Return the value of a constant at a file's top level, by parsing the file; None if the constant does not exist.

    Raises ValueError if the value is not a literal.
    """
    for node in statements(path):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            try:
                return ast.literal_eval(node.value)
            except ValueError:
                raise ValueError(f"{path}: {name} must be a plain value, such as a text in quotes") from None
    return None


def statements(path: Path) -> list[ast.stmt]:
    """Return the statements at a file's top level. Raises ValueError if the file is not Python."""
    status = path.stat()
    return _parsed(path, (status.st_mtime_ns, status.st_size))


@functools.cache
def _parsed(path: Path, stamp: tuple[int, int]) -> list[ast.stmt]:
    """Return the statements at a file's top level. Raises ValueError if the file is not Python. ``stamp`` makes an
    edited file a new entry of the cache."""
    try:
        return ast.parse(path.read_bytes(), filename=str(path)).body
    except SyntaxError as error:
        raise ValueError(f"{path}: line {error.lineno} is not valid Python ({error.msg})") from None
    except ValueError:
        raise ValueError(f"{path}: this is not a Python file") from None
