"""What runs on a card runs on a pretended one: the same numbers, no operand in main memory, no wait within a step, and
nothing that a recording forbids. The whole matrix, every architecture with all that is done to it, is
tests/benchmarks/pretended_matrix.py."""

import inspect
import textwrap

import numpy as np
import pytest
import torch
from unlearning_audit.bank import lanes
from unlearning_audit.bank.lanes import Lane
from unlearning_audit.plugins import registry

from bank_cases import OPTIONS, RECIPE, SEEDS, SHORT, conv, fresh, largest_gap, masks, mlp, rows
from pretended_card import CaptureError, PlaceError, pretended


def home(bank):
    """The bank, with its weights in main memory."""
    for state in (bank.parameters, bank.buffers):
        state.update({name: value.cpu() for name, value in state.items()})
    return bank


def both(build, backend, run, seeds=SEEDS, **settings):
    """The bank after ``run(bank)`` on the processor, that on the pretended card, and the card."""
    banks = []
    here = fresh(build, seeds, backend=backend, **settings)
    run(here)
    with pretended() as card:
        there = fresh(build, seeds, backend=backend, device="cuda", **settings)
        card.waits.clear()
        run(there)
        waits = dict(card.waits)
        banks = here, home(there)
    return *banks, waits


@pytest.mark.parametrize(("build", "backend"), [(mlp, "stacked"), (conv, "serial"), (conv, "stacked")])
@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "cosine"},
        {"schedule": "one_cycle"},
        *({"optimiser": name, "lr": 0.01, "schedule": "cosine"} for name in ("adam", "adamw", "rmsprop")),
    ],
)
def test_a_recorded_step_repeats_what_an_ordinary_one_does(build, backend, changes):
    recipe = RECIPE.model_copy(update=changes)
    here, there, waits = both(
        build, backend, lambda bank: bank.train(rows(bank.seeds)[1]), dtype=torch.float64, recipe=recipe
    )
    assert largest_gap(here, there) < 1e-6
    assert not {wait for wait in waits if not wait.startswith("Stream.synchronize")}


@pytest.mark.parametrize("name", registry.names("methods"))
@pytest.mark.parametrize("build", [mlp, conv])
def test_methods_give_the_same_numbers(name, build):
    module = registry.load("methods", name)
    fields = module.Options.model_fields
    options = module.Options(**{k: v for k, v in SHORT.items() if k in fields} | OPTIONS.get(name, {}))

    def run(bank):
        forget, retain = rows(bank.seeds)
        bank.train(retain + forget, record=masks(bank.seeds)[1])
        module.unlearn(bank, forget, retain, options)

    here, there, _ = both(build, "stacked" if build is mlp else "serial", run, SEEDS[:3])
    assert largest_gap(here, there) < 1e-5


@pytest.mark.parametrize(
    "ask",
    [
        lambda bank: [bank.logits(), bank.logits(np.arange(5))],
        lambda bank: [*bank.gradient(rows(bank.seeds)[0]).values()],
        lambda bank: [bank.squared_norms(rows(bank.seeds)[0])],
        lambda bank: [*bank.squared_gradients(rows(bank.seeds)[0], labels="model").values()],
        lambda bank: [*bank.squared_gradients(rows(bank.seeds)[0], per_sample=False, batch_size=4).values()],
    ],
    ids=["logits", "gradient", "squared norms", "curvature by the model's labels", "curvature by batches"],
)
@pytest.mark.parametrize("build", [mlp, conv])
def test_readings_are_the_same(build, ask):
    backend = "stacked" if build is mlp else "serial"
    here = ask(fresh(build, SEEDS[:3], backend=backend))
    with pretended():
        there = ask(fresh(build, SEEDS[:3], backend=backend, device="cuda"))
        there = [value.cpu() if isinstance(value, torch.Tensor) else value for value in there]
    for expected, value in zip(here, there, strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(expected), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- the card sees what it should


def edited(method: str, text: str, replacement: str):
    """A method of `Lane` with a fault planted in its source."""
    source = textwrap.dedent(inspect.getsource(getattr(Lane, method)))
    assert text in source, method
    scope = dict(vars(lanes))
    exec(source.replace(text, replacement), scope)
    return scope[method]


WEIGHT = "self.stream.weight *"
FAULTS = {
    "rows rebound, not copied": ("advance", "self.rows.copy_(rows)", "self.rows = rows"),
    "statistics not put back": ("_recorded", "*self.buffers.values(), ", ""),
    "weights not put back": ("_recorded", "*self.leaves.values(), ", ""),
    "a constant from main memory": ("step", WEIGHT, "torch.tensor([self.stream.weight], device=self.rate.device) *"),
    "a boolean index": ("step", ".mean(-1)).sum()", ".mean(-1))[torch.ones(1, dtype=torch.bool, device='cuda')].sum()"),
    "random numbers": ("step", WEIGHT, "torch.rand((), device='cuda', dtype=torch.float64) *"),
    "a tensor left in main memory": ("step", WEIGHT, "torch.ones(1, dtype=torch.float64) *"),
    "a number read from the card": ("step", WEIGHT, "float(self.rate.item() * 0 + 1) *"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(monkeypatch, fault):
    method, text, replacement = FAULTS[fault]
    recipe = RECIPE.model_copy(update={"schedule": "cosine"})
    monkeypatch.setattr(Lane, method, edited(method, text, replacement))
    try:
        here, there, _ = both(
            conv, "serial", lambda bank: bank.train(rows(bank.seeds)[1]), SEEDS[:3], dtype=torch.float64, recipe=recipe
        )
    except (CaptureError, PlaceError):
        return
    assert not largest_gap(here, there) < 1e-6
