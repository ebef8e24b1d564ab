"""What every unlearning method must hold, those of tomorrow included."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from unlearning_audit.plugins import registry

from stack_cases import SEEDS, conv, largest_gap, mlp, part, rows, same, short, state, trained, unlearned

METHODS = registry.names("methods")
#: Methods that return their input, and why that is right.
IDENTITIES = {"none": "the control"}


@pytest.fixture(scope="module")
def original():
    return trained(mlp)


@pytest.fixture(scope="module")
def doubles():
    settings = {"dtype": torch.float64, "recipe": trained(mlp).recipe.model_copy(update={"epochs": 1})}
    return {
        (build, backend): trained(build, SEEDS[:3], backend=backend, **settings)
        for build in (mlp, conv)
        for backend in ("stacked", "serial")
    }


@pytest.mark.parametrize("name", METHODS)
def test_it_moves_every_model_of_its_own_copy_the_same_in_any_company(name, original):
    before = {k: v.clone() for k, v in state(original).items()}
    whole = unlearned(original, name)
    assert all(torch.equal(v, before[k]) for k, v in state(original).items())
    assert all(v.isfinite().all() for v in state(whole).values())
    moved = torch.stack([(v != before[k]).flatten(1).any(1) for k, v in whole.parameters.items()]).any(0)
    assert moved.tolist() == [name not in IDENTITIES] * len(SEEDS)
    for models in ([5, 2], [2, 7, 0], [6], list(range(7, -1, -1))):
        assert same(unlearned(part(original, models), name), whole, slots_b=models), models
    split = part(original, list(range(8)))
    split.engine.width = 3
    assert same(unlearned(split, name), whole)


@pytest.mark.parametrize("build", [mlp, conv])
@pytest.mark.parametrize("name", METHODS)
def test_stacked_and_serial_agree(name, build, doubles):
    stacked, serial = (unlearned(doubles[build, backend], name, **short(name)) for backend in ("stacked", "serial"))
    assert largest_gap(stacked, serial) < 1e-12


@pytest.mark.parametrize(
    ("side", "name", "options"),
    [
        *((0, name, {}) for name in ("finetune", "retrain", "ftfinal", "retrfinal", "l1_sparse")),
        (0, "scrub", {"msteps": 0}), (0, "fisher", {"whole_class": "keep"}), (1, "neggrad", {}), (1, "npo", {}),
    ],
)  # fmt: skip
def test_it_reads_nothing_of_the_one_side(side, name, options, original):
    """0: of forget, 1: of retain."""
    stack = part(original, [0])
    clean, unread = unlearned(stack, name, **options), rows(stack.seeds)[side].index[0]
    stack.x, stack.labels = stack.x.clone(), stack.labels.clone()
    stack.x[unread], stack.labels[unread] = torch.nan, 10**6
    assert same(unlearned(stack, name, **options), clean)


@pytest.mark.parametrize("name", METHODS)
def test_its_options_can_be_read_without_torch_and_say_what_they_mean(name):
    light, module = registry.options("methods", name), registry.load("methods", name)
    assert light.model_json_schema() == module.Options.model_json_schema()
    assert module.Options.__doc__
    assert module.__doc__


@pytest.mark.slow
def test_no_method_imports_the_compiler():
    """torch.func.grad and torch.optim's classes would, and backward with a gradient given imports its symbols (sympy):
    each costs every process seconds."""
    code = """
import sys
sys.path[:0] = ["scripts", "tests/helpers"]
from stack_cases import SEEDS, trained, unlearned
from unlearning_audit.plugins import registry
stack = trained(seeds=SEEDS[:2])
for name in registry.names("methods"):
    if name != "classic":
        unlearned(stack, name)
        assert not {"torch._dynamo", "sympy"} & set(sys.modules), name
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", [name for name in METHODS if hasattr(registry.load("methods", name), "TUNE")])
def test_what_may_be_tuned_is_allowed_and_holds_the_published_setting(name):
    module = registry.load("methods", name)
    for option, declared in module.TUNE.items():
        values = declared if isinstance(declared, list) else [declared["low"], declared["high"]]
        assert not option.endswith("lr") or declared["log"] is True, "sizes of steps differ by factors"
        assert option != "epochs" or declared["low"] >= 1, "a setting that does nothing is none"
        for value in values:
            module.Options(**{option: value})
        published = module.Options.model_fields[option].default
        if isinstance(published, (int, float)) and not isinstance(published, bool):
            assert values == sorted(set(values)), option
            assert values[0] <= published <= values[-1], option
