"""What runs on a card runs on a pretended one: the same numbers, no operand in main memory, no wait within a step, and
nothing that a recording forbids. The whole matrix, every architecture with all that is done to it, is
tests/benchmarks/pretended_matrix.py."""

import inspect
import sys
import textwrap

import numpy as np
import pretended_matrix as matrix
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.plugins import registry
from unlearning_audit.training import features, losses
from unlearning_audit.training.fitting import Fit, GroupState
from unlearning_audit.training.lanes import Lane
from unlearning_audit.training.losses import distillation
from unlearning_audit.training.recording import Recorder
from unlearning_audit.training.stack import Teacher
from unlearning_audit.training.streams import Rows, Stream, balanced_labels
from unlearning_audit.training.updates import Updates

import stack_cases as cases
from pretended_card import UNREPEATABLE, CaptureError, PlaceError, pretended
from slow_cases import slow
from stack_cases import RECIPE, SEEDS, conv, fresh, home, largest_gap, masks, mlp, rows

#: A stacked network and one whose models take turns.
NETWORKS = [(mlp, "stacked"), (conv, "serial")]


@pytest.mark.parametrize(("build", "backend"), [*NETWORKS, (conv, "stacked")])
@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "cosine"},
        {"schedule": "one_cycle"},
        *({"optimiser": name, "lr": 0.01, "schedule": "cosine"} for name in ("adam", "adamw", "rmsprop")),
    ],
)
def test_a_recorded_step_repeats_what_an_ordinary_one_does(build, backend, changes):
    settings = {"backend": backend, "dtype": torch.float64, "recipe": RECIPE.model_copy(update=changes)}
    reference = fresh(build, **settings)
    reference.train(rows(SEEDS)[1])
    with pretended() as card:
        on_card = fresh(build, device="cuda", **settings)
        card.waits.clear()
        on_card.train(rows(SEEDS)[1])
        assert {wait.split(" ")[0] for wait in card.waits} == {"Stream.synchronize"}
        home(on_card)
    assert largest_gap(reference, on_card) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("build", "backend"), [NETWORKS[0], *slow(NETWORKS[1])])
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_give_the_same_numbers(name, build, backend):
    before = cases.trained(build, SEEDS[:3], backend=backend, dtype=torch.float64)
    reference = cases.unlearned(before, name, **cases.short(name))
    with pretended():
        on_card = cases.part(before, [0, 1, 2], backend=backend, device="cuda")
        on_card = home(cases.unlearned(on_card, name, **cases.short(name)))
    assert largest_gap(reference, before) > 0 or name == "none"
    assert largest_gap(reference, on_card) < 1e-6


ADAM = RECIPE.model_copy(update={"optimiser": "adam", "lr": 0.01})


def parts(stack):
    """A loss and a penalty as if they were the library's: the distance from a teacher, and ℓ1 that grows with the
    epoch."""
    teacher = stack.frozen()

    def distance(batch):
        return distillation(batch.logits, teacher(batch))

    def penalty(parameters, epoch):
        return 0.001 * epoch * sum(value.flatten(1).abs().sum(1) for value in parameters.values())

    penalty.__module__ = distance.__module__ = losses.__name__
    return distance, penalty


def fits(stack):
    """Fits with what training alone does not have, by name: passes and settings."""
    forget, retain = map(Stream, rows(stack.seeds))
    (distance, penalty), weights = parts(stack), stack.parameters.items()
    mask = {k: torch.arange(v.numel(), device=stack.device).reshape(v.shape) % 2 == 0 for k, v in weights}
    labels = Stream(forget.rows, loss=RandomLabels(stack, "other"))
    balanced = Stream(retain.rows, loss=balanced_labels(stack.labels, retain.rows))
    two = Stream(forget.rows, batch_size=6), Stream(retain.rows, weight=0.5)
    return {
        "mask": ((retain,), {"mask": mask}),
        "scale": ((retain,), {"scale": {k: torch.full_like(v, 0.5) for k, v in weights}}),
        "penalty": ((retain,), {"penalty": penalty}),
        "random labels": ((labels, retain), {}),
        "teacher": ((Stream(retain.rows, loss=distance),), {}),
        "balanced labels": ((balanced,), {}),
        "two streams": ((two,), {}),
        "record": ((Stream(forget.rows + retain.rows),), {"record": masks(stack.seeds)[1]}),
        "an optimiser for each pass": ((Stream(forget.rows, epochs=2), retain), {"optimiser": (ADAM, RECIPE)}),
        "so many steps": ((retain,), {"steps": 7}),
        "a part of the weights": ((retain,), {"only": stack.head, "training": False}),
    }


def fitted(build, backend, name, device):
    """The stack after one of `fits`, and its record."""
    stack = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64, device=device)
    passes, changes = fits(stack)[name]
    recorded = stack.fit(*passes, **{"optimiser": ADAM, "epochs": 3, "purpose": "test"} | changes) or {}
    return home(stack), {k: v.cpu() for k, v in recorded.items()}


@pytest.mark.parametrize(
    "name", ["record", *slow(*(name for name in fits(fresh(seeds=SEEDS[:2])) if name != "record"))]
)
@pytest.mark.parametrize(("build", "backend"), NETWORKS)
def test_every_kind_of_fit_is_recorded(build, backend, name):
    reference, expected = fitted(build, backend, name, "cpu")
    with pretended() as card:
        on_card, recorded = fitted(build, backend, name, "cuda")
        assert card.replays >= 3
    assert largest_gap(reference, on_card) < 1e-6
    torch.testing.assert_close(recorded, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("build", "backend"), NETWORKS)
def test_readings_are_the_same(build, backend):
    def readings(**place):
        stack = fresh(build, SEEDS[:3], backend=backend, **place)
        forget = rows(stack.seeds)[0]
        states = (
            stack.gradient(forget),
            stack.squared_gradients(forget, labels="model"),
            stack.squared_gradients(forget, per_sample=False, batch_size=4),
        )
        tensors = [stack.squared_norms(forget), *(value for state in states for value in state.values())]
        arrays = [stack.logits(), stack.logits(np.arange(5)), features.readings(stack, forget.index)]
        return [*(value.cpu().numpy() for value in tensors), *arrays]

    reference = readings()
    with pretended():
        on_card = readings(device="cuda")
    for expected, value in zip(reference, on_card, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- the same bits in every run


class Repeatable(TorchDispatchMode):
    """Raises RuntimeError for an operation that a card refuses in deterministic mode."""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        if operation._schema.name in UNREPEATABLE:
            raise RuntimeError(f"{operation} does not have a deterministic implementation")
        return operation(*arguments, **(keywords or {}))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of networks whose weights are read."""
    folder = tmp_path_factory.mktemp("weights")
    matrix.saved(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("models"))
def test_every_architecture_learns_with_operations_that_a_card_can_repeat(name, saved):
    cells = [cell for cell, (module, *_) in matrix.MODELS.items() if module == name]
    assert cells
    for cell in cells:
        stack = matrix.stack(cell, saved, "cpu", torch.float32, epochs=1)
        with Repeatable():
            stack.train(Rows(np.arange(4)[None].repeat(len(stack), 0)))


def test_repeatable_convolutions_are_asked_for_only_while_logits_are_read(monkeypatch):
    cudnn, flags = torch.backends.cudnn, []
    monkeypatch.setattr(cudnn, "benchmark", True)
    stack = fresh(conv, SEEDS[:2], backend="serial")
    really = stack.state
    stack.state = lambda model: (flags.append((cudnn.benchmark, cudnn.deterministic)), really(model))[1]
    stack.logits()
    assert flags == [(False, True)] * 2
    assert (cudnn.benchmark, cudnn.deterministic) == (True, False)


# ---------------------------------------------------------------- the card sees what it should


def edited(owner: type, method: str, text: str, replacement: str):
    """A method of ``owner`` with a fault planted in its source."""
    source = textwrap.dedent(inspect.getsource(getattr(owner, method)))
    assert text in source, method
    scope = dict(vars(sys.modules[owner.__module__]))
    exec(source.replace(text, replacement), scope)
    return scope[method]


def much(device):
    """A stack after fits with all that a step may have: jitter, passes of several streams, labels drawn anew, a
    teacher, a penalty that changes with the epoch, a rate that does."""
    stack = fresh(conv, SEEDS[:1], backend="serial", dtype=torch.float64, device=device)
    forget, retain = rows(stack.seeds)
    retain, (distance, penalty) = Rows(retain.index[:, :11]), parts(stack)
    recipe = RECIPE.model_copy(update={"batch_size": 5, "schedule": "cosine"})  # the third batch is smaller
    shifted = recipe.model_copy(update={"augment": "crop_flip"})
    draws, teaching = Stream(forget, loss=RandomLabels(stack, "other")), Stream(retain, loss=distance)
    passes = draws, teaching, (Stream(retain), Stream(forget, loss=distance))
    stack.fit(*passes, optimiser=shifted, epochs=2, purpose="test", penalty=penalty)
    stack.fit(Stream(forget, loss=distance), optimiser=recipe, epochs=1, purpose="test again")
    return home(stack)


@pytest.fixture(scope="module")
def processor_stack():
    return much("cpu")


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
    "a teacher that learns": (Teacher, "__init__", ".detach().clone() for k, v in stack.p", " for k, v in stack.p"),
}


@pytest.mark.parametrize("fault", [None, *slow(*FAULTS)])
def test_a_planted_fault_is_seen_and_without_one_there_is_nothing_to_see(monkeypatch, processor_stack, fault):
    if fault is not None:
        owner, method, text, replacement = FAULTS[fault]
        monkeypatch.setattr(owner, method, edited(owner, method, text, replacement))
    try:
        with pretended():
            gap = largest_gap(processor_stack, much("cuda"))
    except (CaptureError, PlaceError, RuntimeError, ValueError):  # such as shapes that do not fit
        gap = np.nan
    assert (gap < 1e-6) == (fault is None)
