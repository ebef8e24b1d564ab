"""Nothing that learns or unlearns mixes what lies on a device with what lies in main memory.

Torch's `meta` device stands for a GPU: it has shapes and no numbers, so it is everywhere, and every operation can be
asked where its operands are. Numbers that come back (`Tensor.cpu`) are zeros there; what they are on a real GPU is
tested where there is one, here and in test_lanes.py.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from test_lanes import COSINE, fit
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from unlearning_audit.plugins import registry
from unlearning_audit.training import lanes, updates
from unlearning_audit.training.streams import Rows

from bank_cases import GPU, SEEDS, SHORT, conv, fresh, largest_gap, masks, mlp, rows, trained, unlearned
from pretended_card import UNREPEATABLE
from slow_cases import slow

#: Operations that move numbers between devices.
MOVES = ("aten::_to_copy", "aten::copy_")


class Repeatable(TorchDispatchMode):
    """Raises RuntimeError for an operation that a card refuses in deterministic mode."""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        if operation._schema.name in UNREPEATABLE:
            raise RuntimeError(f"{operation} does not have a deterministic implementation")
        return operation(*arguments, **(keywords or {}))


class OnePlace(Repeatable):
    """Raises RuntimeError for an operation on tensors of several devices, too. Single numbers may come from anywhere,
    and what lies on the device may be indexed from main memory."""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        name, used = operation._schema.name, arguments
        if "index" in name and isinstance(arguments[1], (list, tuple)) and arguments[0].is_meta:
            used = (arguments[0], *arguments[2:])
        tensors = [leaf for leaf in tree_leaves((used, keywords)) if isinstance(leaf, torch.Tensor) and leaf.ndim]
        places = {tensor.device.type for tensor in tensors}
        if len(places) > 1 and name not in MOVES:
            raise RuntimeError(f"{operation} has operands on {' and '.join(sorted(places))}")
        return super().__torch_dispatch__(operation, types, arguments, keywords)


@pytest.fixture(autouse=True)
def numbers_come_back_as_zeros(monkeypatch):
    really = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda self: torch.zeros(self.shape, dtype=self.dtype) if self.is_meta else really(self)
    )


def moved(bank, device="meta"):
    """The bank on the device, as `Bank.create` puts it there."""
    bank.device = device
    bank.model.to(device)
    for state in (bank.parameters, bank.buffers, bank.updates or {}):
        state.update({name: value.to(device) for name, value in state.items()})
    bank.x, bank.labels = bank.x.to(device), bank.labels.to(device)
    bank._places.clear()
    return bank


def on_device(build):
    backend = "stacked" if build is mlp else "serial"
    return moved(trained(build, SEEDS[:3], backend=backend))


@pytest.mark.slow
@pytest.mark.parametrize("build", [mlp, *slow(conv)])
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_unlearn_where_the_models_are(name, build):
    bank = on_device(build)
    with OnePlace():
        after = unlearned(bank, name)
    assert {value.device.type for value in (after.parameters | after.buffers).values()} == {"meta"}


@pytest.mark.parametrize("augment", ["none", "crop_flip"])
@pytest.mark.parametrize("build", [mlp, conv])
def test_training_stays_where_the_models_are(build, augment):
    if build is mlp and augment != "none":
        return
    bank = on_device(build)
    bank.recipe = bank.recipe.model_copy(update={"augment": augment})
    with OnePlace():
        recorded = bank.train(rows(bank.seeds)[1], record=masks(bank.seeds)[1])
    assert {value.device.type for value in (bank.parameters | recorded).values()} == {"meta"}


@pytest.mark.parametrize("build", [mlp, conv])
def test_lanes_stay_where_the_models_are(build, monkeypatch):
    def descend(parameters, gradients, velocity, *, lr, **settings):
        """Instead of torch's fused kernel, which has no form without numbers."""
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(lr * gradient)

    monkeypatch.setattr(updates, "sgd", descend)
    bank = moved(fresh(build, SEEDS[:3], backend="stacked" if build is mlp else "serial"))
    bank.model.train()
    with OnePlace():
        lanes.run(fit(bank, optimiser=COSINE.model_copy(update={"augment": "crop_flip" if build is conv else "none"})))
    assert {value.device.type for value in bank.parameters.values()} == {"meta"}


@pytest.mark.parametrize("build", [mlp, conv])
def test_readings_come_from_where_the_models_are(build):
    bank = on_device(build)
    forget, _ = rows(bank.seeds)
    with OnePlace():
        assert {value.device.type for value in bank.gradient(forget).values()} == {"meta"}
        assert bank.squared_norms(forget).is_meta
        for labels in ("observed", "model"):
            assert all(value.is_meta for value in bank.squared_gradients(forget, labels=labels).values())
        assert bank.logits().shape[:2] == (3, len(bank.x))


# ---------------------------------------------------------------- the same bits in every run


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The tiny networks of the whole matrix, and the folder of those whose weights are read."""
    file = Path(__file__).parents[1] / "benchmarks" / "pretended_matrix.py"
    matrix = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(file.stem, file))
    spec.loader.exec_module(matrix)
    folder = tmp_path_factory.mktemp("weights")
    matrix.saved(folder)
    return matrix, folder


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("models"))
def test_every_architecture_learns_with_operations_that_a_card_can_repeat(name, networks):
    matrix, folder = networks
    cells = [cell for cell, (module, *_) in matrix.MODELS.items() if module == name]
    assert cells
    for cell in cells:
        bank = matrix.bank(cell, folder, "cpu", torch.float32, epochs=1)
        with Repeatable():
            bank.train(Rows(np.arange(4)[None].repeat(len(bank), 0)))


@GPU
@pytest.mark.parametrize("build", [mlp, conv])
@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_on_a_gpu_agree_with_the_processor(name, build):
    backend = "stacked" if build is mlp else "serial"
    fields = registry.load("methods", name).Options.model_fields
    short = {option: value for option, value in SHORT.items() if option in fields}
    on_processor, on_card = (trained(build, SEEDS[:3], backend=backend, dtype=torch.float64) for _ in range(2))
    on_processor, on_card = (unlearned(bank, name, **short) for bank in (on_processor, moved(on_card, "cuda")))
    for state in (on_card.parameters, on_card.buffers):
        state.update({key: value.cpu() for key, value in state.items()})
    assert largest_gap(on_processor, on_card) < 1e-6  # learning rates are rounded to single precision there


@GPU
def test_logits_from_a_gpu_repeat_themselves_and_agree_with_the_processor(monkeypatch):
    bank = trained(conv, SEEDS[:3], backend="serial", dtype=torch.float64)
    on_processor = bank.logits()
    moved(bank, "cuda")
    on_card = []
    for benchmark in (False, True):
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", benchmark)
        on_card += [bank.logits(), bank.logits(np.arange(7))]
    assert abs(on_card[0] - on_processor).max() < 1e-5
    assert np.array_equal(on_card[0], on_card[2])
    assert np.array_equal(on_card[1], on_card[3])


def test_repeatable_convolutions_are_asked_for_only_while_logits_are_read(monkeypatch):
    cudnn, flags = torch.backends.cudnn, []
    monkeypatch.setattr(cudnn, "benchmark", True)
    bank = trained(conv, SEEDS[:2], backend="serial")
    really = bank.state
    bank.state = lambda model: (flags.append((cudnn.benchmark, cudnn.deterministic)), really(model))[1]
    bank.logits()
    assert flags == [(False, True)] * 2
    assert (cudnn.benchmark, cudnn.deterministic) == (True, False)
