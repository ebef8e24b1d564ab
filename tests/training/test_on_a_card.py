"""What only a real card shows: its own kernels, memory that runs out in the midst of a recording, private steps whose
batches are filled up. Where there is none, the pretended card stands for it."""

import logging

import numpy as np
import pytest
import torch
from unlearning_audit.models import gpt2, llama
from unlearning_audit.plugins import registry
from unlearning_audit.training import lanes, private
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from stack_cases import GPU, RECIPE, SEEDS, conv, fresh, home, largest_gap, mlp, part, rows, short, trained, unlearned
from text_cases import LENGTH, passages, save_models
from text_cases import rows as text_rows

pytestmark = GPU
PLACES = ("cpu", "cuda")


@pytest.mark.parametrize(
    ("build", "backend", "changes"),
    [
        (mlp, "stacked", {}),
        (conv, "stacked", {}),
        *((conv, "serial", {"optimiser": kind, "lr": 0.01}) for kind in ("sgd", "adam", "adamw", "rmsprop")),
        *((conv, "serial", {"optimiser": kind, "lr": 0.01, "augment": "crop_flip"}) for kind in ("sgd", "adam")),
    ],
)
def test_recorded_training_agrees_with_the_processor(build, backend, changes):
    recipe = RECIPE.model_copy(update={"schedule": "one_cycle", **changes})
    stacks = [fresh(build, backend=backend, dtype=torch.float64, device=place, recipe=recipe) for place in PLACES]
    for stack in stacks:
        stack.train(rows(SEEDS)[1])
    logits = [stack.logits() for stack in stacks]
    assert largest_gap(*map(home, stacks)) < 1e-5  # learning rates are rounded to single precision on a card
    assert np.abs(logits[0] - logits[1]).max() < 1e-3


@pytest.mark.parametrize(("build", "backend"), [(mlp, "stacked"), (conv, "serial")])
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_agree_with_the_processor(name, build, backend):
    before = trained(build, SEEDS[:3], backend=backend, dtype=torch.float64)
    stacks = (part(before, [0, 1, 2], backend=backend, device=place) for place in PLACES)
    assert largest_gap(*(home(unlearned(stack, name, **short(name))) for stack in stacks)) < 1e-6


def test_logits_repeat_themselves_and_agree_with_the_processor(monkeypatch):
    stack = trained(conv, SEEDS[:3], backend="serial", dtype=torch.float64)
    there, on_card = part(stack, [0, 1, 2], backend="serial", device="cuda"), []
    for benchmark in (False, True):
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", benchmark)
        on_card += [there.logits(), there.logits(np.arange(7))]
    assert abs(on_card[0] - stack.logits()).max() < 1e-5
    assert np.array_equal(on_card[0], on_card[2])
    assert np.array_equal(on_card[1], on_card[3])


# ---------------------------------------------------------------- memory


def wide() -> torch.nn.Module:
    """A convolution whose step takes some MiB of the card, so that memory can be measured out."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 512, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(512, 4),
    )  # fmt: skip


def images() -> ModelStack:
    """Untrained models of large batches of images."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (2048, 2, 32, 32), dtype=np.uint8), rng.integers(0, 4, 2048)
    recipe = Recipe(lr=0.01, momentum=0.9, batch_size=256, epochs=2)
    return ModelStack.create(wide, x, y, SEEDS, recipe=recipe, backend="serial", device="cuda")


@pytest.fixture
def little_memory():
    """A function that leaves torch so many bytes of the card beside what it holds."""

    def leave(count: int) -> None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + count) / total)

    yield leave
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("lanes_that_fit", [1.5, 3.5])
def test_memory_that_runs_out_while_lanes_are_recorded_costs_no_number(
    monkeypatch, little_memory, caplog, lanes_that_fit
):
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "8")
    everything = Rows(np.tile(np.arange(2048), (len(SEEDS), 1)))
    ample = images()
    ample.train(everything)
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "1")
    one = images()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    one.train(everything)
    lane = torch.cuda.max_memory_reserved() - before
    original_init = lanes.Traffic.__init__

    def hopeful(self, fit):
        original_init(self, fit)
        self.room, self.free = self.most, None

    monkeypatch.setattr(lanes.Traffic, "__init__", hopeful)
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "8")
    scarce = images()
    little_memory(int(lanes_that_fit * lane))
    with caplog.at_level(logging.WARNING):
        scarce.train(everything)
    assert "used up" in caplog.text
    assert largest_gap(home(ample), home(one)) < 1e-3
    assert largest_gap(ample, home(scarce)) < 1e-3


# ---------------------------------------------------------------- private training


def test_private_batches_that_are_filled_up_give_what_the_processor_gives():
    """Without noise, whose generators differ; with it, the same budget is spent."""
    stacks, spent = [], []
    for place in PLACES:
        recipe = RECIPE.model_copy(update={"dp": private.Privacy(epsilon=5.0)})
        stack, noisy = (fresh(mlp, dtype=torch.float64, device=place, recipe=recipe) for _ in range(2))
        private.descend(stack, rows(SEEDS)[1], 0.0)
        stacks.append(home(stack))
        noisy.train(rows(SEEDS)[1])
        spent.append(noisy.privacy)
    assert largest_gap(*stacks) < 1e-9 < 1e-3 < largest_gap(stacks[0], fresh(mlp, dtype=torch.float64))
    assert spent[0] == spent[1]


# ---------------------------------------------------------------- language models


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Folders of saved language models, by kind."""
    folder = tmp_path_factory.mktemp("weights")
    save_models(folder)
    return folder


@pytest.mark.parametrize("adapter", [None, {"rank": 2, "alpha": 6.0}], ids=["whole", "adapter"])
@pytest.mark.parametrize("module", [gpt2, llama], ids=["gpt2", "llama"])
@pytest.mark.parametrize("method", ["graddiff", "npo", "simnpo", "rmu", "undial", "ga_plus"])
def test_language_models_unlearn_as_on_the_processor(weights, module, adapter, method):
    x, seeds, ends = passages(), SEEDS[:2], []
    options = module.Options(weights=str(weights / module.__name__.split(".")[-1]), adapter=adapter)
    for place in PLACES:
        stack = ModelStack.create(
            lambda: module.build(options, (LENGTH,), 2), x, np.zeros(len(x), np.int64), seeds, device=place,
            recipe=Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=2), backend="serial", dtype=torch.float64,
        )  # fmt: skip
        stack.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
        stack = unlearned(stack, method, *text_rows(seeds), lr=0.001, batch_size=8, epochs=1)
        ends.append((stack.logits(np.arange(12)), home(stack)))
    (logits, first), (others, second) = ends
    assert largest_gap(first, second) < 1e-5
    assert np.abs(logits - others).max() < 1e-3
