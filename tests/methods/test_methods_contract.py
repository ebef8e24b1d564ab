"""What every unlearning method must hold, those of tomorrow included."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from unlearning_audit.plugins import registry

from bank_cases import SEEDS, SHORT, conv, largest_gap, mlp, part, rows, same, state, trained, unlearned

METHODS = registry.names("methods")
#: Methods that return their input, and why that is right.
IDENTITIES = {"none": "the control"}


@pytest.fixture(scope="module")
def originals():
    return {build: trained(build) for build in (mlp, conv)}


@pytest.fixture(scope="module")
def doubles():
    seeds = SEEDS[:3]
    short = trained(mlp).recipe.model_copy(update={"epochs": 1})
    return {
        (build, backend): trained(build, seeds, backend=backend, dtype=torch.float64, recipe=short)
        for build in (mlp, conv)
        for backend in ("stacked", "serial")
    }


@pytest.mark.parametrize("name", METHODS)
def test_a_model_is_the_same_in_any_company(name, originals):
    bank = originals[mlp]
    whole = unlearned(bank, name)
    for models in ([5, 2], [2, 7, 0], [6], list(range(7, -1, -1))):
        assert same(unlearned(part(bank, models), name), whole, slots_b=models), models
    split = part(bank, list(range(8)))
    split.engine.width = 3
    assert same(unlearned(split, name), whole)


@pytest.mark.parametrize("name", METHODS)
def test_it_moves_every_model_and_stays_finite(name, originals):
    bank = originals[mlp]
    after = unlearned(bank, name)
    assert all(v.isfinite().all() for v in state(after).values())
    moved = torch.stack([(v != bank.parameters[k]).flatten(1).any(1) for k, v in after.parameters.items()]).any(0)
    assert moved.tolist() == [name not in IDENTITIES] * len(SEEDS)


@pytest.mark.parametrize("build", [mlp, conv])
@pytest.mark.parametrize("name", METHODS)
def test_stacked_and_serial_agree(name, build, doubles):
    settings = registry.load("methods", name).Options.model_fields
    short = {k: v for k, v in SHORT.items() if k in settings}
    stacked, serial = (unlearned(doubles[build, backend], name, **short) for backend in ("stacked", "serial"))
    assert largest_gap(stacked, serial) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_only_its_own_copy_changes(name, originals):
    bank = originals[mlp]
    before = {k: v.clone() for k, v in state(bank).items()}
    unlearned(bank, name)
    assert all(torch.equal(v, before[k]) for k, v in state(bank).items())


@pytest.mark.parametrize("name", ["finetune", "retrain", "ftfinal", "retrfinal", "l1_sparse", "scrub", "fisher"])
def test_it_reads_nothing_of_forget(name, originals):
    bank = part(originals[mlp], [0])
    options = {"scrub": {"msteps": 0}, "fisher": {"whole_class": "keep"}}.get(name, {})
    clean = unlearned(bank, name, **options)
    forget, _ = rows(bank.seeds)
    bank.x, bank.labels = bank.x.clone(), bank.labels.clone()
    bank.x[forget.index[0]], bank.labels[forget.index[0]] = torch.nan, 10**6
    assert same(unlearned(bank, name, **options), clean)


@pytest.mark.parametrize("name", ["neggrad", "npo"])
def test_it_reads_nothing_of_retain(name, originals):
    bank = part(originals[mlp], [0])
    clean = unlearned(bank, name)
    _, retain = rows(bank.seeds)
    bank.x, bank.labels = bank.x.clone(), bank.labels.clone()
    bank.x[retain.index[0]], bank.labels[retain.index[0]] = torch.nan, 10**6
    assert same(unlearned(bank, name), clean)


@pytest.mark.parametrize("name", METHODS)
def test_its_options_can_be_read_without_torch_and_say_what_they_mean(name):
    light, full = registry.options("methods", name), registry.load("methods", name).Options
    assert light.model_json_schema() == full.model_json_schema()
    assert full.__doc__
    assert registry.load("methods", name).__doc__


@pytest.mark.slow
def test_no_method_imports_the_compiler():
    """torch.func.grad and torch.optim's classes would, and backward with a gradient given imports its symbols (sympy):
    each costs every process seconds."""
    code = """
import sys
sys.path[:0] = ["scripts", "tests/helpers"]
from bank_cases import SEEDS, trained, unlearned
from unlearning_audit.plugins import registry
bank = trained(seeds=SEEDS[:2])
for name in registry.names("methods"):
    if name != "classic":
        unlearned(bank, name)
        assert not {"torch._dynamo", "sympy"} & set(sys.modules), name
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", [name for name in METHODS if hasattr(registry.load("methods", name), "TUNE")])
def test_what_may_be_tuned_is_allowed_and_holds_the_published_setting(name):
    module = registry.load("methods", name)
    for option, declared in module.TUNE.items():
        values = declared if isinstance(declared, list) else [declared["low"], declared["high"]]
        if option.endswith("lr"):  # sizes of steps differ by factors
            assert declared["log"] is True, option
        if option == "epochs":  # a setting that does nothing is none
            assert declared["low"] >= 1, option
        for value in values:
            module.Options(**{option: value})
        published = module.Options.model_fields[option].default
        if isinstance(published, (int, float)) and not isinstance(published, bool):
            assert values == sorted(set(values)), option
            assert values[0] <= published <= values[-1], option
