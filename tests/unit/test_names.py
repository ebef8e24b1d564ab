"""Names say what a thing is: pronouns, determiners and bare participles are no names."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from unlearning_audit.plugins import source

#: What says nothing of what a name stands for.
WORDS = {
    "found", "own", "one", "ones", "known", "asked", "said", "made", "shown", "held", "kept", "told", "which",
    "every", "each", "other", "others", "another", "such", "these", "those", "them", "they", "it", "its", "this",
    "that", "taken", "seen", "wanted", "needed", "meant", "put", "counted", "called", "done", "gone", "begun",
    "chosen", "began", "came", "what", "who", "whose", "some", "few", "many", "theirs", "ours", "mine", "yours",
    "himself", "itself", "themselves", "here", "there", "thus", "drawn", "given", "named", "written",
}  # fmt: skip

#: Of all bindings so many may be such words.
SHARE = 0.01

#: A screen: so many lines has a function at most, besides its docstring.
LINES = 60

FOLDERS = ("unlearning_audit", "scripts", "snakemake_logger_plugin_unlearning")


def bindings(text: str) -> Iterator[str]:
    """Every name that a module binds: variables, parameters, functions, classes, attributes that are set, aliases."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def poor(names: Iterator[str]) -> tuple[Counter, int]:
    """Which of the names are such words, and how many names there are."""
    counts = Counter(names)
    return Counter({name: n for name, n in counts.items() if name.strip("_") in WORDS}), counts.total()


@pytest.mark.parametrize("folders", [FOLDERS, ("tests",)], ids=["library", "tests"])
def test_fewer_than_one_binding_in_a_hundred_says_nothing(folders):
    root = source.SCRIPTS.parent
    files = [path for folder in folders for path in sorted(Path(root, folder).rglob("*.py"))]
    words, total = poor(name for path in files for name in bindings(path.read_text(encoding="utf-8")))
    assert total > 10_000
    assert words.total() < SHARE * total, words.most_common(10)


def test_such_words_are_counted_wherever_they_are_bound():
    text = "def told(own, *, x=1):\n    found = [one for one in own]\n    self.known = found\nimport a as other\n"
    words, total = poor(bindings(text))
    assert words == {"told": 1, "own": 1, "found": 1, "one": 1, "known": 1, "other": 1}
    assert total == 7
    assert poor(bindings("def score(logits, *, rows):\n    values = [row for row in rows]\n"))[0] == {}


def long(text: str) -> list[tuple[str, int]]:
    """Functions of a module that do not fit on a screen, and their lines without the docstring."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    lengths = []
    for node in functions:
        docstring = node.body[0] if ast.get_docstring(node) is not None else None
        besides = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
        lengths.append((node.name, node.end_lineno - node.lineno + 1 - besides))
    return [(name, lines) for name, lines in lengths if lines > LINES]


def test_every_function_fits_on_a_screen():
    root = source.SCRIPTS.parent
    files = [path for folder in FOLDERS for path in sorted(Path(root, folder).rglob("*.py"))]
    assert {path.name: functions for path in files if (functions := long(path.read_text(encoding="utf-8")))} == {}


def test_a_function_is_measured_without_its_docstring():
    body = "    x = 1\n" * LINES
    assert long(f"def f():\n{body}") == [("f", LINES + 1)]
    assert long(f'def f():\n    """Say\n    it."""\n{body[10:]}') == []
