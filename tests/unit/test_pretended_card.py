"""What runs on a card runs on a pretended one: the same numbers, no operand in main memory, no wait within a step, and
nothing that a recording forbids. The whole matrix, every architecture with all that is done to it, is
tests/benchmarks/pretended_matrix.py."""

import importlib.util
import inspect
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.bank import lanes, losses, recording
from unlearning_audit.bank.lanes import Lane
from unlearning_audit.bank.losses import distillation
from unlearning_audit.bank.recording import Recorder
from unlearning_audit.bank.streams import Stream, balanced_labels, fit_labels
from unlearning_audit.methods._labels import RandomLabels
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

    here, there, _ = both(build, "stacked" if build is mlp else "serial", run, SEEDS[:3], dtype=torch.float64)
    assert largest_gap(here, there) < 1e-6


def fits(bank):
    """Fits with what training alone does not have, by name: a function that runs each on ``bank``."""
    forget, retain = rows(bank.seeds)
    mask = {
        k: torch.arange(v.numel(), device=bank.device).reshape(v.shape) % 2 == 0 for k, v in bank.parameters.items()
    }
    scale = {k: torch.full_like(v, 0.5) for k, v in bank.parameters.items()}
    labels, teacher = RandomLabels(bank, "other"), bank.frozen()

    def penalty(parameters, epoch):
        return 0.001 * epoch * sum(value.flatten(1).abs().sum(1) for value in parameters.values())

    def distance(batch):
        return distillation(batch.logits, teacher(batch))

    penalty.__module__ = distance.__module__ = losses.__name__  # as if they were the library's
    two = Stream(forget, batch_size=6), Stream(retain, weight=0.5)
    return {
        "mask": ((Stream(retain),), {"mask": mask}),
        "scale": ((Stream(retain),), {"scale": scale}),
        "penalty": ((Stream(retain),), {"penalty": penalty}),
        "random labels": ((Stream(forget, loss=labels), Stream(retain)), {}),
        "teacher": ((Stream(retain, loss=distance),), {}),
        "balanced labels": ((Stream(retain, loss=balanced_labels(bank.labels, retain)),), {}),
        "two streams": ((two,), {}),
        "record": ((Stream(forget + retain),), {"record": masks(bank.seeds)[1]}),
        "an optimiser for each pass": ((Stream(forget, epochs=2), Stream(retain)), {"optimiser": (ADAM, RECIPE)}),
        "so many steps": ((Stream(retain),), {"steps": 7}),
        "a part of the weights": ((Stream(retain),), {"only": bank.head, "training": False}),
    }


ADAM = RECIPE.model_copy(update={"optimiser": "adam", "lr": 0.01})


@pytest.mark.parametrize("name", fits(fresh(seeds=SEEDS[:2])))
@pytest.mark.parametrize("build", [mlp, conv])
def test_every_kind_of_fit_is_recorded(build, name):
    def run(bank):
        passes, changes = fits(bank)[name]
        return bank.fit(*passes, **{"optimiser": ADAM, "epochs": 3, "purpose": "test"} | changes)

    backend, sums = "stacked" if build is mlp else "serial", []
    here = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64)
    sums.append(run(here))
    with pretended() as card:
        there = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64, device="cuda")
        sums.append(run(there))
        assert card.replays >= 3
        home(there)
        sums[1] = sums[1] and {k: v.cpu() for k, v in sums[1].items()}
    assert largest_gap(here, there) < 1e-6
    for k, v in (sums[0] or {}).items():
        torch.testing.assert_close(sums[1][k], v, rtol=0, atol=1e-6)


def test_a_loss_of_the_user_is_never_recorded():
    calls = []

    def counting(batch):
        calls.append(batch.epoch)
        return fit_labels(batch)

    with pretended() as card:
        bank = fresh(seeds=SEEDS[:3], device="cuda")
        bank.fit(Stream(rows(bank.seeds)[1], loss=counting), optimiser=RECIPE, epochs=3, purpose="test")
        assert not card.replays
    assert calls == [0] * 4 + [1] * 4 + [2] * 4


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


def edited(method: str, text: str, replacement: str, owner=Lane, module=lanes):
    """A method of ``owner`` with a fault planted in its source."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, method)))
    assert text in source, method
    scope = dict(vars(module))
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


RECORDER_FAULTS = {
    "inputs not copied": ("run", "row_place.copy_(rows)", "pass"),
    "recordings of an earlier epoch": ("forget", "self._kinds.clear()", "pass"),
    "one kind for all passes": ("run", "kind = (number, ", "kind = (0, "),
}


@pytest.mark.parametrize("fault", RECORDER_FAULTS)
def test_a_fault_planted_in_the_recorder_is_seen(monkeypatch, fault):
    method, text, replacement = RECORDER_FAULTS[fault]
    monkeypatch.setattr(Recorder, method, edited(method, text, replacement, Recorder, recording))

    def run(bank):
        forget, retain = rows(bank.seeds)
        labels = RandomLabels(bank, "other")
        # Batches of three, so that either pass has several of one shape.
        recipe = RECIPE.model_copy(update={"batch_size": 3})
        bank.fit(Stream(forget, loss=labels), Stream(retain), optimiser=recipe, epochs=3, purpose="test")

    try:
        here, there, _ = both(mlp, "stacked", run, SEEDS[:3], dtype=torch.float64)
    except CaptureError:
        return
    assert not largest_gap(here, there) < 1e-6


def test_the_whole_matrix_has_all_architectures_and_ends_with_a_failure_for_a_fault(monkeypatch, capsys):
    file = Path(__file__).parents[1] / "benchmarks" / "pretended_matrix.py"
    matrix = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(file.stem, file))
    spec.loader.exec_module(matrix)
    assert {module for module, *_ in matrix.MODELS.values()} == set(registry.names("models"))
    asked = ["--models", "mlp", "--parts", "train"]
    assert matrix.main(asked) == 0
    assert capsys.readouterr().out.endswith("8 cells, 0 wrong\n")
    monkeypatch.setattr(Lane, "advance", edited("advance", "self.rows.copy_(rows)", "pass"))
    assert matrix.main(asked) == 1
    printed = capsys.readouterr().out
    # Six of eight train in lanes; class weights and recorded updates do not.
    assert (printed.count("DIFFERS"), printed.endswith("6 wrong\n")) == (6, True)
