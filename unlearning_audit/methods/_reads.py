"""What published code reads of the arguments that it is given, by reading its file and not running it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from unlearning_audit.plugins import syntax

#: Statements after which what follows may not run, where they stand in a branch.
ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def certain(path: Path, function: str, name: str) -> list[str]:
    """The attributes of the parameter ``name`` that a function, or "Class.method", reads whatever its branches decide;
    nothing after the parameter was given to other code, which may set more of them."""
    node = _node(path, function)
    if node is None or _rebound(node, name):
        return []
    targets = {attribute for attribute, store in _attributes(node, name) if store}
    reads = dict.fromkeys(attribute for attribute in _in_order(node.body, name) if attribute is not None)
    return [attribute for attribute in reads if attribute not in targets]


def names(path: Path, name: str) -> tuple[set[str], set[str]]:
    """The attributes of whatever is called ``name`` in a file, and all attributes and texts that the file names."""
    nodes = [node for statement in syntax.statements(path) for node in ast.walk(statement)]
    of_name = {attribute for node in nodes for attribute, _ in _attribute(node, name)}
    everything = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return of_name, everything | {
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _node(path: Path, function: str) -> ast.FunctionDef | None:
    first, _, method = function.partition(".")
    node = next((child for child in syntax.statements(path) if getattr(child, "name", None) == first), None)
    if method and isinstance(node, ast.ClassDef):
        node = next((child for child in node.body if getattr(child, "name", None) == method), None)
    return node if isinstance(node, ast.FunctionDef) else None


def _rebound(node: ast.AST, name: str) -> bool:
    stores = (child for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store))
    return any(child.id == name for child in stores)


def _attributes(node: ast.AST, name: str) -> Iterator[tuple[str, bool]]:
    for child in ast.walk(node):
        yield from _attribute(child, name)


def _attribute(node: ast.AST, name: str) -> Iterator[tuple[str, bool]]:
    """The attribute, or the item by a text, of ``name`` that a node is, and whether it is set there."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name) and node.value.id == name:
        key = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
        if isinstance(key, str):
            yield key, not isinstance(node.ctx, ast.Load)


def _in_order(body: list[ast.stmt], name: str) -> Iterator[str | None]:
    """Attributes that are read for certain, in the order of the code; None last where no more are certain."""
    for statement in body:
        inner = [statement.body] if isinstance(statement, (ast.For, ast.With)) else []
        heads = [child for child in ast.iter_child_nodes(statement) if not inner or child not in inner[0]]
        if isinstance(statement, (ast.If, ast.While)):
            heads = [statement.test]
        elif isinstance(statement, ast.Assign):
            heads = [statement]  # which may give the object a second name
        elif isinstance(statement, (ast.Try, ast.Match, ast.FunctionDef, ast.ClassDef, ast.Return, ast.Raise)):
            heads = [statement.value] if isinstance(statement, ast.Return) and statement.value else []
        for head in heads:
            for attribute in _expressions(head, name):
                yield attribute
                if attribute is None:
                    return
        for part in inner:
            for attribute in _in_order(part, name):
                yield attribute
                if attribute is None:
                    return
        branches = isinstance(statement, (ast.If, ast.While, ast.Try, ast.Match))
        if branches and any(isinstance(child, ENDS) or _gives_away(child, name) for child in ast.walk(statement)):
            yield None
            return


def _gives_away(node: ast.AST, name: str) -> bool:
    """Whether a node gives the object itself away, as an argument of a call does."""
    operands = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
    return any(isinstance(value, ast.Name) and value.id == name for value in operands)


def _expressions(node: ast.AST, name: str) -> Iterator[str | None]:
    """The same of an expression; parts that may be left out are."""
    if isinstance(node, (ast.Lambda, ast.comprehension, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.BoolOp):
        children = [*node.values[:1]]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    for attribute, store in _attribute(node, name):
        if not store:
            yield attribute
    for child in children:
        yield from _expressions(child, name)
    if _gives_away(node, name) or (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name
    ):
        yield None
