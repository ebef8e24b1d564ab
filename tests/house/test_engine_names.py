"""The engine knows no plug-in by its name: what it has to know, files declare."""

import ast
import re
from pathlib import Path

import pytest
from unlearning_audit.plugins import registry

LIBRARY = Path(registry.__file__).resolve().parents[1]
SCRIPTS = LIBRARY.parent / "scripts"
ROOMS = tuple(registry.KINDS)
ENGINE = [path.parent for path in sorted(LIBRARY.glob("*/__init__.py")) if path.parent.name not in ROOMS]

#: Words that mean more than a file: what every study compares with, stages and populations, fields and columns.
CONCEPTS = {
    "none", "retrain", "sham", "external", "relearn", "population", "shadow", "random", "accuracy", "published",
    "records", "requests", "table",
}  # fmt: skip

#: File → the names in it that are no plug-ins: studies to try or to start from, names of studies, libraries,
#: layers, fields, what other people call an argument. Kinds of figures are files of a room themselves.
ALLOWED = {
    "workflow/self_test.py": {"mlp", "resnet_cifar"},
    "workflow/trial.py": {"digits", "mlp"},
    "command/tiny.py": {"digits", "mlp", "swap", "finetune", "confidence"},
    "command/arrays.py": {"correctness", "entropy", "modified_entropy", "confidence"},
    "tools/printed_numbers.py": {"swap", "competition", "efficacy", "ruli"},
    "training/engine.py": {"linear"},
    "evaluation/relearned.py": {"phi"},
    "evaluation/rows.py": {"confidence"},
    "plugins/registry.py": {"reference"},
    "plugins/arguments.py": {"bad_teacher"},
    "stats/__init__.py": {"phi"},
}


def names() -> set[str]:
    """Every plug-in of the library, but for words of another meaning."""
    return {name for room in ROOMS for name in registry.names(room)} - CONCEPTS


def matches(code: str, plugins: set[str]) -> set[str]:
    """The plug-ins that code imports, that a text in it is, or that a sentence in it holds; no English sentence holds a
    name with an underscore or a digit. Docstrings do not count."""
    tree, found = ast.parse(code), set()
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found |= {node.value} | {word for word in re.findall(r"\w+", node.value) if re.search(r"[_\d]", word)}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = getattr(node, "module", None) or ""
            for path in (f"{module}.{alias.name}".strip(".").split(".") for alias in node.names):
                found |= {*path[2:3]} if path[0] == LIBRARY.name and path[1:2] and path[1] in ROOMS else set()
    return found & plugins


@pytest.mark.parametrize("folder", [*ENGINE, SCRIPTS], ids=lambda folder: folder.name)
def test_no_name_of_a_plug_in_stands_in(folder):
    plugins = names()
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder.parent).as_posix()
        if not place.startswith("report/figures/"):
            assert matches(path.read_text(), plugins) == ALLOWED.get(place, set()), place


def test_no_rule_names_a_plug_in():
    text = "".join(path.read_text() for path in SCRIPTS.parent.glob("rules/*.smk"))
    quoted = set(re.findall(r"[\"'](\w+)[\"']", text))
    assert not quoted & names()
