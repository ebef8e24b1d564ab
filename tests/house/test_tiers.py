"""What runs before a release alone has a quicker witness in every run."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def functions(text: str) -> dict[str, list[ast.expr]]:
    """Decorators of the tests of a file."""
    nodes = ast.walk(ast.parse(text))
    return {node.name: node.decorator_list for node in nodes if isinstance(node, ast.FunctionDef)}


def alone(text: str) -> list[str]:
    """Tests of a file that no run but those before a release has, in whole or in all cases, without a quicker one."""
    tests, found = functions(text), []
    whole = {
        name: [d for d in decorators if ast.unparse(d).startswith("pytest.mark.release")]
        for name, decorators in tests.items()
    }
    for name, decorators in tests.items():
        for mark in whole[name]:
            quicker = {k.arg: ast.literal_eval(k.value) for k in getattr(mark, "keywords", [])}.get("quicker")
            if quicker not in tests or whole[quicker]:
                found.append(name)
        for node in (node for decorator in decorators for node in ast.walk(decorator)):
            if isinstance(node, ast.List) and node.elts and all("release(" in ast.unparse(case) for case in node.elts):
                found.append(name)
    return found


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: path.stem)
def test_a_quicker_test_stands_for_those_before_a_release(path):
    assert alone(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "decorator",
    [
        "@pytest.mark.release",
        '@pytest.mark.release(quicker="test_gone")',
        '@pytest.mark.release(quicker="test_it")',
        '@pytest.mark.parametrize("case", [*tiers.release(1, 2)])',
    ],
)
def test_one_without_is_seen(decorator):
    assert alone(f"{decorator}\ndef test_it(): pass\n") == ["test_it"]


def test_one_with_a_quicker_one_is_not():
    assert alone('@pytest.mark.release(quicker="test_b")\ndef test_a(): pass\ndef test_b(): pass\n') == []
    assert alone('@pytest.mark.parametrize("case", [0, *tiers.release(1)])\ndef test_a(case): pass\n') == []
