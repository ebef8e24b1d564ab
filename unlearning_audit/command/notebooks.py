"""A function out of a notebook, with what it refers to, as a file of its own."""

import ast
import builtins
import json
from dataclasses import dataclass
from pathlib import Path

BUILTIN = frozenset(dir(builtins))


@dataclass(frozen=True)
class _Statement:
    """A statement of a notebook's top level: its ``text``, and the names that it ``defines`` and ``uses``."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    imports: bool


def extracted(notebook: Path, function: str) -> str:
    """Source of ``function`` and of all definitions, imports and values of the notebook that it refers to, directly or
    not; nothing else of the notebook is in it, and nothing is run.

    Raises ValueError for a file that is no notebook, and for a function that it does not define.
    """
    statements = _statements(notebook)
    functions = [name for one in statements if one.text.startswith(("def ", "class ", "@")) for name in one.defines]
    if function not in functions:
        listed = ", ".join(functions) or "none"
        raise ValueError(f"{notebook}: it defines no function {function!r}; it has {listed}: name one with --function")
    chosen: set[int] = set()
    waiting, known = [function], {function}
    while waiting:
        name = waiting.pop()
        # What is defined twice counts as it was defined last, as after running all cells.
        at = max((number for number, one in enumerate(statements) if name in one.defines), default=None)
        if at is not None:
            chosen.add(at)
            fresh = statements[at].uses - known - BUILTIN
            known |= fresh
            waiting += sorted(fresh)
    chosen |= {number for number, one in enumerate(statements) if one.imports and "*" in one.defines}
    lines = [f'"""{function} of {notebook.name}, with what it refers to."""', ""]
    imports = [statements[number].text for number in sorted(chosen) if statements[number].imports]
    others = [f"\n{statements[number].text}" for number in sorted(chosen) if not statements[number].imports]
    return "\n".join([*lines, *dict.fromkeys(imports), *others, ""])


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
    text = "\n".join([*(f"@{ast.unparse(one)}" for one in getattr(node, "decorator_list", ())),
                      ast.get_source_segment(source, node) or ast.unparse(node)])  # fmt: skip
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = frozenset((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        return _Statement(text, names, frozenset(), imports=True)
    uses = frozenset(
        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    )  # fmt: skip
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return _Statement(text, frozenset([node.name]), uses, imports=False)
    stored = frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return _Statement(text, stored, uses, imports=False)
