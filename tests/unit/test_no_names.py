"""The engine knows no plug-in by its name: what it has to know, files declare."""

import ast
from pathlib import Path

import pytest
from unlearning_audit.plugins import registry

LIBRARY = Path(registry.__file__).resolve().parents[1]

#: Names that mean more than a file: what every study compares with, and the system of stages and axes.
CONCEPTS = {
    "none", "retrain", "external", "requests", "random", "axis", "samples", "pairs", "accuracy", "relearn",
    "population", "published", "records", "reference", "shadow", "table",
}  # fmt: skip

#: The papers' sets of attacks, which define Q, and the names of the papers, some of which protocols bear too.
SETS = {"PAPER_SET", "ADAPTIVE_SET", "PAPERS"}


def texts(path: Path) -> set[str]:
    """Every text in a file but docstrings and the sets that papers define."""
    tree = ast.parse(path.read_text())
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and {getattr(target, "id", "") for target in node.targets} & SETS:
            skipped |= {id(child) for child in ast.walk(node.value)}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in skipped)
    return {node.value for node in nodes if isinstance(node.value, str)}


@pytest.mark.parametrize("room", ["workflow", "study", "plugins"])
def test_no_name_of_a_plug_in_stands_in(room):
    kinds = ("data", "models", "protocols", "methods", "attacks", "metrics")
    names = {name for kind in kinds for name in registry.names(kind)} - CONCEPTS
    matches = {path.name: sorted(texts(path) & names) for path in sorted((LIBRARY / room).glob("*.py"))}
    matches.pop("self_test.py", None)  # tries architectures on this machine's card
    # A library of that name, what other people call an argument, and what a folder of transformers is opened as, with
    # the scores that its tokens give, which are named like the attacks that compute them.
    scores = ["loss", "min_k", "min_k_plus_plus", "zlib"]
    allowed = {
        "forkserver.py": ["art"],
        "forks.py": ["art"],
        "arguments.py": ["bad_teacher"],
        "checkpoints.py": ["llama", *scores],
        "plan_external.py": ["llama"],
    }
    assert {file: words for file, words in matches.items() if words} == {
        k: v for k, v in allowed.items() if k in matches
    }


def test_a_name_would_be_found(tmp_path):
    (tmp_path / "a.py").write_text('"""swap"""\nONE = "gpt2"\nPAPER_SET = ["shadow"]\n')
    assert texts(tmp_path / "a.py") == {"gpt2"}
