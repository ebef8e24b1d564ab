"""What runs on a card runs on a pretended one: the same numbers, no operand in main memory, no wait within a step, and
nothing that a recording forbids. The whole matrix, every architecture with all that is done to it, is
tests/benchmarks/pretended_matrix.py."""

import importlib.util
import inspect
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.plugins import registry
from unlearning_audit.training import features, losses
from unlearning_audit.training.bank import Teacher
from unlearning_audit.training.fitting import Fit, GroupState
from unlearning_audit.training.lanes import Lane
from unlearning_audit.training.losses import distillation
from unlearning_audit.training.recording import Recorder
from unlearning_audit.training.streams import Rows, Stream, balanced_labels
from unlearning_audit.training.updates import Updates

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
    reference = fresh(build, seeds, backend=backend, **settings)
    run(reference)
    with pretended() as card:
        on_card = fresh(build, seeds, backend=backend, device="cuda", **settings)
        card.waits.clear()
        run(on_card)
        waits = dict(card.waits)
        banks = reference, home(on_card)
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
    reference, on_card, waits = both(
        build, backend, lambda bank: bank.train(rows(bank.seeds)[1]), dtype=torch.float64, recipe=recipe
    )
    assert largest_gap(reference, on_card) < 1e-6
    assert not {wait for wait in waits if not wait.startswith("Stream.synchronize")}


#: A stacked network and one whose models take turns.
STACKED, SERIAL = (mlp, "stacked"), (conv, "serial")


@pytest.fixture(scope="module", params=[STACKED, SERIAL], ids=["mlp", "conv"])
def trained_banks(request):
    """Models trained on the processor and on the card, with recorded updates, as they lie in main memory; and the
    network and engine."""
    build, backend = request.param

    def run(bank):
        retain, forget = masks(bank.seeds)
        bank.train(Rows.where(retain | forget), record=forget)

    reference, on_card, _ = both(build, backend, run, SEEDS[:3], dtype=torch.float64)
    return reference, on_card, build, backend


def everything(bank):
    """Weights, statistics and recorded updates, by name."""
    recorded = {f"update of {name}": value for name, value in bank.updates.items()}
    return bank.parameters | bank.buffers | recorded


def test_training_that_records_updates_gives_the_same_numbers(trained_banks):
    reference, on_card = map(everything, trained_banks[:2])
    assert reference.keys() == on_card.keys()
    for name, value in reference.items():
        torch.testing.assert_close(on_card[name].cpu(), value, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "trained_banks", [STACKED, pytest.param(SERIAL, marks=pytest.mark.slow)], indirect=True, ids=["mlp", "conv"]
)
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_give_the_same_numbers(name, trained_banks):
    trained, _, build, backend = trained_banks
    module = registry.load("methods", name)
    fields = module.Options.model_fields
    options = module.Options(**{k: v for k, v in SHORT.items() if k in fields} | OPTIONS.get(name, {}))

    def run(bank):
        for own, start in ((bank.parameters, trained.parameters), (bank.buffers, trained.buffers)):
            own.update({k: v.clone().to(bank.device) for k, v in start.items()})
        bank.updates = {k: v.clone().to(bank.device) for k, v in trained.updates.items()}
        module.unlearn(bank, *rows(bank.seeds), options)

    reference, on_card, _ = both(build, backend, run, SEEDS[:3], dtype=torch.float64)
    assert largest_gap(reference, trained) > 0 or name == "none"
    assert largest_gap(reference, on_card) < 1e-6


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


@pytest.mark.slow
@pytest.mark.parametrize("name", fits(fresh(seeds=SEEDS[:2])))
@pytest.mark.parametrize("build", [mlp, conv])
def test_every_kind_of_fit_is_recorded(build, name):
    def run(bank):
        passes, changes = fits(bank)[name]
        return bank.fit(*passes, **{"optimiser": ADAM, "epochs": 3, "purpose": "test"} | changes)

    backend, sums = "stacked" if build is mlp else "serial", []
    reference = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64)
    sums.append(run(reference))
    with pretended() as card:
        on_card = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64, device="cuda")
        sums.append(run(on_card))
        assert card.replays >= 3
        home(on_card)
        sums[1] = sums[1] and {k: v.cpu() for k, v in sums[1].items()}
    assert largest_gap(reference, on_card) < 1e-6
    for k, v in (sums[0] or {}).items():
        torch.testing.assert_close(sums[1][k], v, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda bank: [bank.logits(), bank.logits(np.arange(5))],
        lambda bank: [*bank.gradient(rows(bank.seeds)[0]).values()],
        lambda bank: [bank.squared_norms(rows(bank.seeds)[0])],
        lambda bank: [*bank.squared_gradients(rows(bank.seeds)[0], labels="model").values()],
        lambda bank: [*bank.squared_gradients(rows(bank.seeds)[0], per_sample=False, batch_size=4).values()],
        lambda bank: [features.readings(bank, rows(bank.seeds)[0].index)],
    ],
    ids=["logits", "gradient", "squared norms", "curvature by the model's labels", "curvature by batches", "features"],
)
@pytest.mark.parametrize("build", [mlp, conv])
def test_readings_are_the_same(build, ask):
    backend = "stacked" if build is mlp else "serial"
    reference = ask(fresh(build, SEEDS[:3], backend=backend))
    with pretended():
        on_card = ask(fresh(build, SEEDS[:3], backend=backend, device="cuda"))
        on_card = [value.cpu() if isinstance(value, torch.Tensor) else value for value in on_card]
    for expected, value in zip(reference, on_card, strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(expected), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- the card sees what it should


def edited(owner: type, method: str, text: str, replacement: str):
    """A method of ``owner`` with a fault planted in its source."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, method)))
    assert text in source, method
    scope = dict(vars(sys.modules[owner.__module__]))
    exec(source.replace(text, replacement), scope)
    return scope[method]


def much(bank):
    """Fits with all that a step may have: jitter, passes of several streams, labels drawn anew, a teacher, a penalty
    that changes with the epoch, a rate that does."""
    forget, retain = rows(bank.seeds)
    retain, teacher = Rows(retain.index[:, :11]), bank.frozen()

    def distance(batch):
        return distillation(batch.logits, teacher(batch))

    def penalty(parameters, epoch):
        return 0.01 * epoch * sum(value.flatten(1).abs().sum(1) for value in parameters.values())

    penalty.__module__ = distance.__module__ = losses.__name__  # as if they were the library's
    recipe = RECIPE.model_copy(update={"batch_size": 5, "schedule": "cosine"})  # the third batch is smaller
    shifted = recipe.model_copy(update={"augment": "crop_flip"})
    draws, teaching = Stream(forget, loss=RandomLabels(bank, "other")), Stream(retain, loss=distance)
    passes = draws, teaching, (Stream(retain), Stream(forget, loss=distance))
    bank.fit(*passes, optimiser=shifted, epochs=2, purpose="test", penalty=penalty)
    bank.fit(Stream(forget, loss=distance), optimiser=recipe, epochs=1, purpose="test again")


@pytest.fixture(scope="module")
def processor_bank():
    """What `much` leaves on the processor."""
    bank = fresh(conv, SEEDS[:1], backend="serial", dtype=torch.float64)
    much(bank)
    return bank


def card_bank():
    """The same on the card."""
    with pretended():
        bank = fresh(conv, SEEDS[:1], backend="serial", dtype=torch.float64, device="cuda")
        much(bank)
        return home(bank)


LOSS, COPY = "loss = _reduced(stream.loss, batch, whole if pieces > 1 else None)", 'state["labels"].copy_('
FAULTS = {
    "a constant from main memory": (Fit, "_losses", LOSS, f"{LOSS} * torch.tensor([1.0], device='cuda')"),
    "a boolean index": (Fit, "_losses", LOSS, f"{LOSS}[torch.ones(1, dtype=torch.bool, device='cuda')]"),
    "random numbers": (Fit, "_losses", LOSS, f"{LOSS} * torch.rand((), device='cuda', dtype=torch.float64)"),
    "a tensor left in main memory": (Fit, "_losses", LOSS, f"{LOSS} * torch.ones(1, dtype=torch.float64)"),
    "a number read from the card": (Fit, "_losses", LOSS, f"{LOSS} * (batch.x.sum().item() * 0 + 1)"),
    "rows not copied": (Recorder, "run", "row_place.copy_(rows)", "pass"),
    "rows rebound, not copied": (Recorder, "run", "row_place.copy_(rows)", "row_place = rows"),
    "jitter not copied": (Recorder, "run", "jitter_place.copy_(jitter)", "pass"),
    "one kind for all shapes": (Recorder, "run", "*(tuple(rows.shape) for rows, _ in inputs)", "0"),
    "one kind for all passes": (Recorder, "run", "kind = (number, ", "kind = (0, "),
    "a recording that is not replayed": (Recorder, "run", "graph.replay()", "pass"),
    "an epoch that stands still": (GroupState, "turn", "self.epoch.fill_(epoch)", "pass"),
    "labels of the first epoch": (RandomLabels, "begin", COPY, "len("),
    "labels elsewhere than recorded": (RandomLabels, "begin", COPY, "state.__setitem__('labels', "),
    "a rate that stands still": (Updates, "set_rate", "self.rate.fill_(rate)", "pass"),
    "models that are not given back": (Lane, "finish", "self.fit.write_back(self.group, *self.state)", "pass"),
    "a teacher that learns": (Teacher, "__init__", ".detach().clone() for k, v in bank.p", " for k, v in bank.p"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(monkeypatch, processor_bank, fault):
    owner, method, text, replacement = FAULTS[fault]
    monkeypatch.setattr(owner, method, edited(owner, method, text, replacement))
    try:
        after = card_bank()
    except (CaptureError, PlaceError, RuntimeError, ValueError):  # such as shapes that do not fit
        return
    assert not largest_gap(processor_bank, after) < 1e-6


def test_without_a_fault_there_is_nothing_to_see(processor_bank):
    assert largest_gap(processor_bank, card_bank()) < 1e-6


@pytest.fixture
def matrix():
    """tests/benchmarks/pretended_matrix.py."""
    file = Path(__file__).parents[1] / "benchmarks" / "pretended_matrix.py"
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(file.stem, file))
    spec.loader.exec_module(module)
    return module
