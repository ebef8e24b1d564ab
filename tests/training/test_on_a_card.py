"""What runs on a card gives the same numbers as on the processor, with no operand in main memory, no wait within a
step, and nothing that a recording forbids. Most is tried on a pretended card, and on a real one where there is one. The
whole matrix, every architecture with all that is done to it, is tests/benchmarks/pretended_matrix.py."""

import contextlib
import logging

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.models import gpt2, llama
from unlearning_audit.plugins import registry
from unlearning_audit.training import features, lanes, losses
from unlearning_audit.training.losses import distillation
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream, class_weighted_loss

import pretended_matrix as matrix
import stack_cases as cases
import text_cases
from pretended_card import UNREPEATABLE, pretended
from slow_cases import slow
from stack_cases import GPU, RECIPE, SEEDS, conv, fresh, home, largest_gap, masks, mlp, rows

#: A stacked network and one whose models take turns.
NETWORKS = [(mlp, "stacked"), (conv, "serial")]
OPTIMISERS = ("sgd", "adam", "adamw", "rmsprop")

#: Contexts in which the device cuda is a pretended card, or the machine's own.
ON_A_CARD = pytest.mark.parametrize(
    "card", [pretended, pytest.param(contextlib.nullcontext, marks=GPU)], ids=["pretended", "real"]
)


@ON_A_CARD
@pytest.mark.parametrize(("build", "backend"), [*NETWORKS, (conv, "stacked")])
@pytest.mark.parametrize(
    "changes",
    [{"schedule": "one_cycle"}, *slow(*({"optimiser": name, "schedule": "cosine"} for name in OPTIMISERS))],
)
def test_a_recorded_step_repeats_what_an_ordinary_one_does(build, backend, changes, card):
    settings = {"backend": backend, "dtype": torch.float64, "recipe": RECIPE.model_copy(update=changes)}
    reference = fresh(build, **settings)
    reference.train(rows(SEEDS)[1])
    with card() as pretence:
        on_card = fresh(build, device="cuda", **settings)
        if pretence:
            pretence.waits.clear()
        on_card.train(rows(SEEDS)[1])
        assert not pretence or {wait.split(" ")[0] for wait in pretence.waits} == {"Stream.synchronize"}
        home(on_card)
    assert largest_gap(reference, on_card) < 1e-5  # learning rates are rounded to single precision on a card


@pytest.mark.slow
@ON_A_CARD
@pytest.mark.parametrize(("build", "backend"), NETWORKS)
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_give_the_same_numbers(name, build, backend, card):
    before = cases.trained(build, SEEDS[:3], backend=backend, dtype=torch.float64)
    reference = cases.unlearned(before, name, **cases.short(name))
    with card():
        on_card = cases.part(before, [0, 1, 2], backend=backend, device="cuda")
        on_card = home(cases.unlearned(on_card, name, **cases.short(name)))
    assert largest_gap(reference, before) > 0 or name == "none"
    assert largest_gap(reference, on_card) < 1e-6


ADAM = RECIPE.model_copy(update={"optimiser": "adam", "lr": 0.01})
SHIFTED = RECIPE.model_copy(update={"batch_size": 5, "schedule": "cosine", "augment": "crop_flip"})


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
    labels, taught = Stream(forget.rows, loss=RandomLabels(stack, "other")), Stream(retain.rows, loss=distance)
    balanced = Stream(retain.rows, loss=class_weighted_loss(stack.labels, retain.rows))
    two = Stream(forget.rows, batch_size=6), Stream(retain.rows, weight=0.5)
    return {
        "mask": ((retain,), {"mask": mask}),
        "scale": ((retain,), {"scale": {k: torch.full_like(v, 0.5) for k, v in weights}}),
        "penalty": ((retain,), {"penalty": penalty}),
        "random labels": ((labels, retain), {}),
        "teacher": ((taught,), {}),
        "balanced labels": ((balanced,), {}),
        "two streams": ((two,), {}),
        "record": ((Stream(forget.rows + retain.rows),), {"record": masks(stack.seeds)[1]}),
        "an optimiser for each pass": ((Stream(forget.rows, epochs=2), retain), {"optimiser": (ADAM, RECIPE)}),
        "so many steps": ((retain,), {"steps": 7}),
        "a part of the weights": ((retain,), {"only": stack.head, "training": False}),
        "all at once": ((labels, taught, (retain, taught)), {"optimiser": SHIFTED, "penalty": penalty}),
    }


def fitted(build, backend, name, device):
    """The stack after one of `fits`, and its record."""
    stack = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64, device=device)
    passes, changes = fits(stack)[name]
    recorded = stack.fit(*passes, **{"optimiser": ADAM, "epochs": 3, "purpose": "test"} | changes) or {}
    return home(stack), {k: v.cpu() for k, v in recorded.items()}


@ON_A_CARD
@pytest.mark.parametrize(
    ("build", "backend", "name"),
    [
        (mlp, "stacked", "an optimiser for each pass"),
        (mlp, "stacked", "record"),
        # Only pictures are shifted.
        *slow(*((*network, name) for network in NETWORKS for name in fits(fresh(seeds=SEEDS[:2]))
                if network != NETWORKS[0] or name not in ("record", "an optimiser for each pass", "all at once"))),
    ],
)  # fmt: skip
def test_every_kind_of_fit_is_recorded(build, backend, name, card):
    reference, expected = fitted(build, backend, name, "cpu")
    with card() as pretence:
        on_card, recorded = fitted(build, backend, name, "cuda")
        assert not pretence or pretence.replays >= 3
    assert largest_gap(reference, on_card) < 1e-6
    torch.testing.assert_close(recorded, expected, rtol=0, atol=1e-6)


@ON_A_CARD
@pytest.mark.parametrize(("build", "backend"), NETWORKS)
def test_readings_are_the_same(build, backend, card):
    def readings(**place):
        stack = fresh(build, SEEDS[:3], backend=backend, dtype=torch.float64, **place)
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
    with card():
        on_card = readings(device="cuda")
    for expected, value in zip(reference, on_card, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@ON_A_CARD
def test_private_batches_that_are_filled_up_give_what_the_processor_gives(card):
    """Without noise, whose generators differ; with it, the same budget is spent."""
    from unlearning_audit.training import private  # imports opacus, which takes seconds

    rate = 2**-4  # which single precision has, too
    recipe = RECIPE.model_copy(update={"lr": rate, "epochs": 1, "dp": private.Privacy(epsilon=5.0)})

    def stacks(device):
        stack, noisy = (fresh(mlp, SEEDS[:2], dtype=torch.float64, device=device, recipe=recipe) for _ in range(2))
        private.train_with_noise(stack, rows(stack.seeds)[1], 0.0)
        noisy.train(rows(stack.seeds)[1])
        return home(stack), noisy.privacy

    reference, spent = stacks("cpu")
    with card():
        on_card, spent_there = stacks("cuda")
    assert largest_gap(reference, on_card) < 1e-9 < 1e-3 < largest_gap(reference, fresh(seeds=SEEDS[:2]))
    assert spent == spent_there


@pytest.mark.slow
@ON_A_CARD
@pytest.mark.parametrize("adapter", [None, {"rank": 2, "alpha": 6.0}], ids=["whole", "adapter"])
@pytest.mark.parametrize("module", [gpt2, llama], ids=["gpt2", "llama"])
@pytest.mark.parametrize("method", ["graddiff", "npo", "simnpo", "rmu", "undial", "ga_plus"])
def test_language_models_unlearn_as_on_the_processor(tmp_path, module, adapter, method, card):
    text_cases.save_models(tmp_path)
    x, seeds = text_cases.passages(), SEEDS[:2]
    options = module.Options(weights=str(tmp_path / module.__name__.split(".")[-1]), adapter=adapter)

    def end(device):
        stack = ModelStack.create(
            lambda: module.build(options, (text_cases.LENGTH,), 2), x, np.zeros(len(x), np.int64), seeds, device=device,
            recipe=Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=2), backend="serial", dtype=torch.float64,
        )  # fmt: skip
        stack.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
        stack = cases.unlearned(stack, method, *text_cases.rows(seeds), lr=0.001, batch_size=8, epochs=1)
        return stack.logits(np.arange(12)), home(stack)

    logits, reference = end("cpu")
    with card():
        others, on_card = end("cuda")
    assert largest_gap(reference, on_card) < 1e-5
    assert np.abs(logits - others).max() < 1e-3


# ---------------------------------------------------------------- the same bits in every run


class Repeatable(TorchDispatchMode):
    """Raises RuntimeError for an operation that a card refuses in deterministic mode."""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        if operation._schema.name in UNREPEATABLE:
            raise RuntimeError(f"{operation} does not have a deterministic implementation")
        return operation(*arguments, **(keywords or {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("models"))
def test_every_architecture_learns_with_operations_that_a_card_can_repeat(name, tmp_path):
    matrix.saved(tmp_path)
    cells = [cell for cell, (module, *_) in matrix.MODELS.items() if module == name]
    assert cells
    for cell in cells:
        stack = matrix.stack(cell, tmp_path, "cpu", torch.float32, epochs=1)
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


# ---------------------------------------------------------------- memory of a real card


def wide() -> nn.Module:
    last = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 4)
    return nn.Sequential(nn.Conv2d(2, 512, 3), nn.ReLU(), *last)


def images() -> ModelStack:
    """Untrained models of large batches of images, a step of which takes some MiB of the card."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (2048, 2, 32, 32), dtype=np.uint8), rng.integers(0, 4, 2048)
    recipe = Recipe(lr=0.01, momentum=0.9, batch_size=256, epochs=2)
    return ModelStack.create(wide, x, y, SEEDS, recipe=recipe, backend="serial", device="cuda")


@GPU
@pytest.mark.parametrize("lanes_that_fit", [1.5, 3.5])
def test_memory_that_runs_out_while_lanes_are_recorded_costs_no_number(monkeypatch, request, caplog, lanes_that_fit):
    everything, original_init = Rows(np.tile(np.arange(2048), (len(SEEDS), 1))), lanes.Scheduler.__init__

    def hopeful(self, fit):
        original_init(self, fit)
        self.room, self.free = self.most, None

    def learned(at_once):
        monkeypatch.setenv("UNLEARNING_IN_FLIGHT", at_once)
        stack = images()
        stack.train(everything)
        return home(stack)

    ample = learned("8")
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    one = learned("1")
    lane = torch.cuda.max_memory_reserved() - before
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved() + int(lanes_that_fit * lane)
    request.addfinalizer(lambda: torch.cuda.set_per_process_memory_fraction(1.0))
    torch.cuda.set_per_process_memory_fraction(left / torch.cuda.get_device_properties(0).total_memory)
    monkeypatch.setattr(lanes.Scheduler, "__init__", hopeful)
    with caplog.at_level(logging.WARNING):
        scarce = learned("8")
    assert "used up" in caplog.text
    assert largest_gap(ample, one) < 1e-3
    assert largest_gap(ample, scarce) < 1e-3
