"""Public functions of the statistics say the shapes of their arrays, in annotations that can be evaluated."""

import ast
import typing
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from unlearning_audit import stats

FILES = sorted(path for path in Path(stats.__file__).parent.glob("*.py") if path.name != "__init__.py")


def bare(text: str) -> list[str]:
    """Names of public functions in a module's ``text`` with an array of which no shape is said."""
    names = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            annotations = [ast.unparse(argument.annotation) for argument in arguments if argument.annotation]
            annotations += [ast.unparse(node.returns)] if node.returns else []
            if any(part.count("np.ndarray") > part.count("[np.ndarray, ") for part in annotations):
                names.append(node.name)
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_array_of_a_public_function_has_a_shape(path):
    assert bare(path.read_text(encoding="utf-8")) == []


def test_what_is_returned_has_the_shape_that_is_said():
    from unlearning_audit.stats import crossed, decide, intervals, rates, records, simultaneous

    rng = np.random.default_rng(0)
    calls = [
        (intervals.mean_influence, {"value": rng.random((3, 5)), "weight": np.ones((3, 5))}),
        (decide.holm, {"p": rng.random((2, 4))}),
        (records.conformal, {"score": rng.random(6), "heldout": rng.random(9)}),
        (records.discoveries, {"p": rng.random(6)}),
        (simultaneous.deviations, {"correlation": np.eye(3), "rng": rng, "draws": 7}),
        (rates.predicted, {"logits": rng.random((2, 5, 3))}),
        (crossed.per_model, {"value": rng.random((2, 5)), "weight": np.ones((2, 5))}),
    ]
    names = {name: getattr(jaxtyping, name) for name in ("Bool", "Float", "Int", "Shaped")}
    for function, arguments in calls:
        hints = typing.get_type_hints(function, {**function.__globals__, **names}, names)
        answer = function(**arguments)
        for name, value in {**arguments, "return": answer}.items():
            kinds = typing.get_args(hints[name]) if typing.get_origin(hints[name]) is tuple else (hints[name],)
            for kind, array in zip(kinds, value if isinstance(value, tuple) else (value,), strict=True):
                assert isinstance(array, kind), (function.__name__, name)
    assert not isinstance(rng.random((2, 3)), jaxtyping.Float[np.ndarray, "n"])
