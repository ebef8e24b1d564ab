"""Public functions of the statistics say the shapes of their arrays."""

import ast
from pathlib import Path

import pytest
from unlearning_audit import stats

FILES = sorted(path for path in Path(stats.__file__).parent.glob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_array_of_a_public_function_has_a_shape(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            signature = ast.unparse(node.args) + ast.unparse(node.returns)
            assert signature.count("np.ndarray") == signature.count("[np.ndarray, "), node.name
