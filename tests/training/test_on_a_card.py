"""What only a real card shows: memory that runs out in the midst of a recording, private steps whose batches are filled
up, recorded optimisers, and low-rank adapters. Where there is none, the pretended card stands for it."""

import logging

import numpy as np
import pytest
import torch
from unlearning_audit.models import gpt2, llama
from unlearning_audit.plugins import registry
from unlearning_audit.training import lanes, private
from unlearning_audit.training.bank import Bank
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.streams import Rows

from bank_cases import GPU, RECIPE, SEEDS, conv, fresh, largest_gap, mlp, rows, unlearned
from text_cases import LENGTH, passages, save_models
from text_cases import rows as text_rows

PLACES = ("cpu", "cuda")


def back(bank: Bank) -> Bank:
    """The bank with its weights and statistics in main memory."""
    for state in (bank.parameters, bank.buffers):
        state.update({name: value.cpu() for name, value in state.items()})
    return bank


def wide() -> torch.nn.Module:
    """A convolution whose step takes some MiB of the card, so that memory can be measured out."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 512, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(512, 4),
    )  # fmt: skip


def images(build=wide, **settings) -> Bank:
    """Untrained models of large batches of images."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (2048, 2, 32, 32), dtype=np.uint8), rng.integers(0, 4, 2048)
    recipe = Recipe(lr=0.01, momentum=0.9, batch_size=256, epochs=2)
    return Bank.create(build, x, y, SEEDS, recipe=recipe, backend="serial", **settings)


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


@GPU
@pytest.mark.parametrize("lanes_that_fit", [1.5, 3.5])
def test_memory_that_runs_out_while_lanes_are_recorded_costs_no_number(
    monkeypatch, little_memory, caplog, lanes_that_fit
):
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "8")
    everything = Rows(np.tile(np.arange(2048), (len(SEEDS), 1)))
    ample = images(device="cuda")
    ample.train(everything)
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "1")
    one = images(device="cuda")
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
    scarce = images(device="cuda")
    little_memory(int(lanes_that_fit * lane))
    with caplog.at_level(logging.WARNING):
        scarce.train(everything)
    assert "used up" in caplog.text
    assert largest_gap(back(ample), back(one)) < 1e-3
    assert largest_gap(back(ample), back(scarce)) < 1e-3


@GPU
def test_private_batches_that_are_filled_up_give_what_the_processor_gives():
    """Without noise, whose generators differ."""
    banks = []
    for place in PLACES:
        bank = fresh(mlp, dtype=torch.float64, device=place)
        recipe = RECIPE.model_copy(update={"dp": private.Privacy(epsilon=1e6)})
        private.descend(bank, rows(SEEDS)[1], recipe, 0.0)
        banks.append(back(bank))
    assert largest_gap(*banks) < 1e-9 < 1e-3 < largest_gap(banks[0], fresh(mlp, dtype=torch.float64))


@GPU
def test_a_budget_is_spent_on_a_card_as_on_the_processor():
    spent = []
    for place in PLACES:
        bank = fresh(mlp, device=place, recipe=RECIPE.model_copy(update={"dp": private.Privacy(epsilon=5.0)}))
        bank.train(rows(SEEDS)[1])
        spent.append(bank.privacy)
    assert spent[0] == spent[1]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Folders of saved language models, by kind."""
    folder = tmp_path_factory.mktemp("weights")
    save_models(folder)
    return folder


@GPU
@pytest.mark.parametrize("adapter", [None, {"rank": 2, "alpha": 6.0}], ids=["whole", "adapter"])
@pytest.mark.parametrize("module", [gpt2, llama], ids=["gpt2", "llama"])
@pytest.mark.parametrize("method", ["graddiff", "npo", "simnpo", "rmu", "undial", "ga_plus"])
def test_language_models_unlearn_as_on_the_processor(weights, module, adapter, method):
    banks, seeds = [], SEEDS[:2]
    options = module.Options(weights=str(weights / module.__name__.split(".")[-1]), adapter=adapter)
    for place in PLACES:
        x = passages()
        bank = Bank.create(
            lambda: module.build(options, (LENGTH,), 2), x, np.zeros(len(x), np.int64), seeds, device=place,
            recipe=Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=2), backend="serial", dtype=torch.float64,
        )  # fmt: skip
        bank.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
        plugin = registry.load("methods", method)
        plugin.unlearn(bank, *text_rows(seeds), plugin.Options(lr=0.001, batch_size=8, epochs=1))
        banks.append((bank.logits(np.arange(12)), back(bank)))
    (logits, first), (others, second) = banks
    assert largest_gap(first, second) < 1e-5
    assert np.abs(logits - others).max() < 1e-3


@GPU
@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw", "rmsprop"])
@pytest.mark.parametrize("augment", ["none", "crop_flip"])
def test_every_optimiser_is_recorded_as_it_steps(optimiser, augment):
    recipe = RECIPE.model_copy(update={"optimiser": optimiser, "lr": 0.01, "augment": augment, "schedule": "one_cycle"})
    banks = [fresh(conv, backend="serial", dtype=torch.float64, device=place, recipe=recipe) for place in PLACES]
    for bank in banks:
        bank.train(rows(SEEDS)[1])
    logits = [bank.logits() for bank in banks]
    assert largest_gap(*map(back, banks)) < 1e-5
    assert np.abs(logits[0] - logits[1]).max() < 1e-3


@GPU
@pytest.mark.parametrize("name", ["scrub", "salun", "fisher", "ssd", "neggrad_plus", "l1_sparse", "competition_first"])
def test_methods_on_convolutions_end_where_the_processor_ends(name):
    ends = []
    for place in PLACES:
        bank = fresh(conv, backend="serial", dtype=torch.float64, device=place)
        bank.train(rows(SEEDS)[1])
        ends.append(back(unlearned(bank, name)))
    assert largest_gap(*ends) < 1e-4
