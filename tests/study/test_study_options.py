"""Every option of every plug-in takes its own type and says so of any other."""

import math
import re
import typing

import pytest
from unlearning_audit.plugins import registry
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.study import reading

from study_cases import PRIVATE, changed
from study_sentences import sentence

# ---------------------------------------------------------------- options of plug-ins

OPTIONS = [
    (kind, name, field)
    for kind in ("data", "models", "protocols", "methods", "attacks")
    for name in registry.names(kind)
    for field in registry.options(kind, name).model_fields
]


def with_option(kind: str, name: str, field: str, value) -> tuple[dict, str]:
    """A study with one option of one plug-in set, and the option's path."""
    where = {"data": "data", "models": "model", "protocols": "protocol"}.get(kind)
    config = changed()
    if where:
        config["defaults"][where] = {"name": name, field: value}
        return config, f"defaults.{where}.{field}"
    config["defaults"][kind] = {name: {field: value}}
    return config, f"defaults.{kind}.{name}.{field}"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "field"), OPTIONS)
def test_every_option_of_every_plug_in_refuses_other_types(kind, name, field):
    annotation = registry.options(kind, name).model_fields[field].annotation
    mapping = typing.get_origin(annotation) is dict or any(
        isinstance(cls, type) and issubclass(cls, Settings) for cls in (annotation, *typing.get_args(annotation))
    )
    for wrong in ("no such choice/", [[1], "a"]) if mapping else ({"x": 1}, [[1], "a"], [True]):
        config, path = with_option(kind, name, field, wrong)
        assert re.match(rf"config\.yaml: {re.escape(path)}(\.\d)?: must be ", sentence(config))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "field"), OPTIONS)
def test_numbers_are_numbers(kind, name, field):
    """No option that takes a number takes it as text, takes true for it, or takes NaN or infinity."""
    annotation = str(registry.options(kind, name).model_fields[field].annotation)
    if "tuple" in annotation or "dict" in annotation or not re.search(r"\b(int|float)\b", annotation):
        return
    wrong = ["3", True, math.nan, math.inf] + [3.7] * ("float" not in annotation)
    for value in wrong:
        config, path = with_option(kind, name, field, value)
        assert sentence(config).startswith(f"config.yaml: {path}: must be ")


def test_private_training_may_augment():
    """A step reads one random view of each sample, of which the accountant counts one gradient."""
    (first, *_) = reading.read(changed(PRIVATE, ("defaults/recipe/augment", "crop_flip"))).scenarios
    assert (first.recipe.augment, first.recipe.dp.epsilon) == ("crop_flip", 8)


def test_only_what_means_the_same_is_converted():
    """A list for a tuple, a whole number for a real one, a number as a key."""
    config = changed(
        ("defaults/recipe", "{epochs: 9, lr: 1, schedule: multistep, milestones: [3, 6], dp: {epsilon: .inf}}"),
        ("defaults/protocol/sensitivity", "{3: 2, 8: 0.5}"),
        ("scenarios", "{1: {}, 2: {data: {size: 0.5}}, 3: {data: {size: 5}}}"),
        ("tables", ""), ("figures", ""),
    )  # fmt: skip
    first, second, third = reading.read(config).scenarios
    assert first.recipe.milestones == (3, 6)
    assert (first.recipe.lr, type(first.recipe.lr)) == (1.0, float)
    assert first.recipe.dp is None
    options = registry.options("protocols", "swap")(**first.protocol.options)
    assert options.sensitivity == {3: 2.0, 8: 0.5}
    assert registry.options("models", "mlp")(**first.model.options).hidden == (16,)
    assert (second.name, second.use.size, type(second.use.size)) == ("2", 0.5, float)
    assert (third.use.size, type(third.use.size)) == (5, int)
