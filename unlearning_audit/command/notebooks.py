"""A function out of a notebook, with what it refers to, as a file of its own."""

import ast
import builtins
import json
import symtable
from dataclasses import dataclass
from pathlib import Path

BUILTIN = frozenset(dir(builtins))


@dataclass(frozen=True)
class _Statement:
    """A statement of a notebook's top level: its ``text``, the names that it ``defines`` and ``uses``, and whether it
    ``imports``. ``again``: names that it defines from what they were before, as ``class Data(Data)`` does."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    imports: bool
    again: frozenset[str] = frozenset()


def extracted(notebook: Path, function: str) -> str:
    """Source of ``function`` and of all definitions, imports and values of the notebook that it refers to, directly or
    not; nothing else of the notebook is in it, and nothing is run.

    Raises ValueError for a file that is no notebook, and for a function that it does not define.
    """
    statements = _statements(notebook)
    functions = [
        name
        for statement in statements
        if statement.text.startswith(("def ", "class ", "@"))
        for name in statement.defines
    ]
    if function not in functions:
        listed = ", ".join(functions) or "none"
        raise ValueError(f"{notebook}: it defines no function {function!r}; it has {listed}: name one with --function")
    numbers: set[int] = set()
    # What is defined twice counts as it was defined last, as after running all cells.
    waiting, queued = [(function, len(statements))], {function}
    while waiting:
        name, end = waiting.pop()
        at = max(
            (number for number, statement in enumerate(statements[:end]) if name in statement.defines), default=None
        )
        if at is not None and at not in numbers:
            numbers.add(at)
            fresh = statements[at].uses - queued - BUILTIN
            queued |= fresh
            waiting += [(name, len(statements)) for name in sorted(fresh)]
            waiting += [(name, at) for name in sorted(statements[at].again)]
    numbers |= {number for number, statement in enumerate(statements) if statement.imports and "*" in statement.defines}
    lines = [f'"""{function} of {notebook.name}, with what it refers to."""', ""]
    imports = [statements[number].text for number in sorted(numbers) if statements[number].imports]
    definitions = [f"\n{statements[number].text}" for number in sorted(numbers) if not statements[number].imports]
    return "\n".join([*lines, *dict.fromkeys(imports), *definitions, ""])


def _statements(notebook: Path) -> list[_Statement]:
    """Statements of all cells of code in their order, without commands of the notebook itself (%, !); cells that are no
    Python are left out."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{notebook}: this is no notebook that can be read ({type(error).__name__})") from None
    statements: list[_Statement] = []
    for source in sources:
        plain = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
        try:
            body = ast.parse(plain).body
        except SyntaxError:
            continue
        statements += [_read(node, plain) for node in body]
    return statements


def _read(node: ast.stmt, source: str) -> _Statement:
    text = "\n".join([*(f"@{ast.unparse(decorator)}" for decorator in getattr(node, "decorator_list", ())),
                      ast.get_source_segment(source, node) or ast.unparse(node)])  # fmt: skip
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = frozenset((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        return _Statement(text, names, frozenset(), imports=True)
    if isinstance(node, ast.ClassDef):
        uses = _outside(node)
        again = {node.name} & set().union(*map(_loaded, (*node.bases, *node.keywords, *node.decorator_list)))
        return _Statement(text, frozenset([node.name]), uses, imports=False, again=frozenset(again))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return _Statement(text, frozenset([node.name]), _outside(node), imports=False)
    uses = frozenset(_loaded(node))
    stored = frozenset(
        child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
    )
    return _Statement(text, stored, uses, imports=False, again=stored & uses)


def _outside(node: ast.stmt) -> frozenset[str]:
    """Names that a function or class refers to and does not define itself, as parameters and variables of its own."""
    top = symtable.symtable(ast.unparse(node), "notebook", "exec")
    names, tables = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}, top.get_children()
    while tables:
        table = tables.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        tables += table.get_children()
    return frozenset(names)


def _loaded(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)}
