"""Stacked linear layers: right, and blind to a model's place in the stack; single models as torch computes them."""

import itertools
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn
from unlearning_audit.training.engine import Serial, Stacked, StackedChain, chain_layers, choose_engine, unwrapped
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows, Stream

from stack_cases import CLASSES, RECIPE, largest_gap, mlp, samples

torch.set_num_threads(1)
#: (models, batch, in, out): odd sizes, whose models do not start at a multiple of 64 bytes by themselves.
SHAPES = [(16, 13, 9, 10), (13, 5, 33, 9), (8, 61, 10, 3), (5, 3, 6, 128), (15, 2, 9, 100), (9, 64, 64, 10)]


def everything(tensors):
    """Output and all gradients of a stacked linear layer, weighted by something that is not constant."""
    x, weight, bias = (tensor.requires_grad_() for tensor in tensors)
    out = StackedChain.apply(x, ("linear",), weight, bias)
    total = (out * torch.linspace(-1, 1, out[0].numel()).view(out.shape[1:])).sum()
    return [out.detach(), *torch.autograd.grad(total, (x, weight, bias))]


@pytest.mark.parametrize("shape", SHAPES)
def test_linear_does_not_depend_on_slot_or_neighbours(shape):
    models, batch, inputs, outputs = shape
    rng = torch.Generator().manual_seed(0)
    sizes = (models, batch, inputs), (models, outputs, inputs), (models, outputs)
    tensors = [torch.randn(size, generator=rng) for size in sizes]
    whole = everything([tensor.clone() for tensor in tensors])
    for slots in ([models - 1, 2], [2, models - 1, 0], [3], list(range(models - 1, -1, -1))):
        part = everything([tensor[slots].clone() for tensor in tensors])
        assert all(torch.equal(p, w[slots]) for p, w in zip(part, whole, strict=True)), slots


def test_groups_cover_every_model_and_no_model_is_alone():
    assert Stacked(nn.Linear(2, 2), width=4).groups(9) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 8]]
    assert Serial(nn.Linear(2, 2)).groups(3) == [[0], [1], [2]]


class Squared(nn.Sequential):
    """A chain by its layers, whose forward is another."""

    def forward(self, x):
        return super().forward(x * x)


class Plain(nn.Sequential):
    """A chain with a name of its own."""


def chain(*layers, kind=nn.Sequential):
    """A network of 6 inputs: a linear layer of 6 units, what is given, and a linear layer of the classes."""
    return kind(nn.Linear(6, 6), *layers, nn.Linear(6, CLASSES))


def shared():
    act = nn.ReLU()
    return chain(act, nn.Linear(6, 6), act)


def repeated():
    linear = nn.Linear(6, 6)
    return chain(nn.ReLU(), linear, nn.ReLU(), linear)


def hooked():
    model = shared()
    model[0].register_forward_hook(lambda layer, inputs, output: 2 * output)
    return model


#: Networks, and whether they are plain chains of linear and elementwise layers.
NETWORKS = {
    "flat": (lambda: nn.Sequential(nn.Flatten(), *chain(nn.ReLU())), True),
    "without bias": (lambda: chain(nn.Tanh(), nn.Linear(6, 6, bias=False)), True),
    "shared": (shared, True),
    "in place": (lambda: chain(nn.ReLU(inplace=True)), True),
    "named": (lambda: chain(nn.Tanh(), kind=Plain), True),
    "squared": (lambda: chain(nn.ReLU(), kind=Squared), False),
    "repeated": (repeated, False),
    "flat inside": (lambda: chain(nn.Flatten(), nn.ReLU()), False),
    "hooked": (hooked, False),
    "orthogonal": (lambda: chain(nn.utils.parametrizations.orthogonal(nn.Linear(6, 6)), nn.ReLU()), False),
    "sigmoid": (lambda: chain(nn.Sigmoid()), False),
    "nested": (lambda: chain(nn.Sequential(nn.Linear(6, 6))), False),
    "one layer": (lambda: nn.Linear(6, CLASSES), False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_trained_is_the_network_that_answers(name):
    build, is_chain = NETWORKS[name]
    x, y = samples(mlp)
    ends = []
    for backend, groups in (("stacked", [[0, 1]]), ("serial", [[0], [1]])):
        stack = ModelStack.create(build, x, y, [1, 2], backend=backend, dtype=torch.float64)
        assert (chain_layers(stack.model) is not None) == is_chain
        inputs = stack.scaled(stack.x).expand(2, -1, -1)
        for group in groups:
            states = ({k: v[group] for k, v in state.items()} for state in (stack.parameters, stack.buffers))
            with torch.no_grad():
                answers = stack.engine.forward(*states, inputs[group])
            assert np.abs(answers.numpy() - stack.logits()[group]).max() < 1e-6
        norms = stack.squared_norms(Rows(np.tile(np.arange(5), (2, 1))))
        for m, row in itertools.product(range(2), range(5)):
            model = stack.extract(m).eval()
            nn.functional.cross_entropy(model(inputs[m, row : row + 1]), torch.from_numpy(y[row : row + 1])).backward()
            assert norms[m, row] == pytest.approx(sum(float((p.grad**2).sum()) for p in model.parameters()), rel=1e-9)
        stack.fit(Stream(Rows(np.tile(np.arange(40), (2, 1)))), optimiser=RECIPE, epochs=2, purpose="test")
        ends.append(stack)
    assert largest_gap(*ends) < 1e-9


def test_a_flattening_of_some_axes_makes_no_chain():
    assert chain_layers(nn.Sequential(nn.Flatten(2), nn.Linear(4, 3))) is None


#: Chains with elementwise layers first, in a row, and last, where nothing may be overwritten that is still needed.
CHAINS = [
    ("flatten", 12, "relu", 5, "tanh", 7, "relu", 3),
    ("tanh", 12, "tanh", "relu", 4, "relu"),
    (12, 5, "relu", "tanh", 3, "tanh"),
]
KINDS = {"relu": nn.ReLU, "tanh": nn.Tanh, "flatten": nn.Flatten}


@pytest.mark.parametrize("trained", ["all", "last", "first bias", "input"])
@pytest.mark.parametrize("layers", CHAINS)
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_of_a_chain_are_those_of_the_modules(layers, trained, bias):
    widths = [layer for layer in layers if type(layer) is int]
    pairs = iter(zip([12, *widths], widths, strict=False))
    model = nn.Sequential(
        *(KINDS[layer]() if layer in KINDS else nn.Linear(*next(pairs), bias=bias) for layer in layers)
    )
    model.double()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 6, 12)))
    names = [name for name, _ in model.named_parameters()]
    targets = {"all": names, "last": names[-2:], "first bias": names[1:2], "input": []}[trained]
    parameters = {k: torch.stack([v.detach() * f for f in (1, 2, -1)]) for k, v in model.named_parameters()}
    of = [x.requires_grad_()] if trained == "input" else [parameters[name].requires_grad_() for name in targets]
    weights = torch.linspace(-1, 1, 3 * 6 * widths[-1], dtype=torch.float64).view(3, 6, -1)
    reference = torch.stack(
        [torch.func.functional_call(model, {k: v[m] for k, v in parameters.items()}, (x[m],)) for m in range(3)]
    )
    out = Stacked(model).forward(parameters, {}, x)
    assert (out - reference).abs().max() < 1e-12
    actual, expected = (torch.autograd.grad((total * weights).sum(), of) for total in (out, reference))
    for a, b in zip(actual, expected, strict=True):
        assert (a - b).abs().max() < 1e-12 < b.abs().max()


def test_the_engine_is_chosen_by_cost_unless_told():
    small = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    large = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    image = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4, 2))
    chosen = *map(choose_engine, (small, large, image)), choose_engine(small, "serial"), choose_engine(image, "stacked")
    assert [*map(type, chosen)] == [Stacked, Serial, Serial, Serial, Stacked]


class Tied(nn.Module):
    """Input and output weights are one tensor; running statistics; a weight of the module itself."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4, bias=False)
        self.last.weight = self.first.weight
        self.shift = nn.Parameter(torch.randn(4))

    def forward(self, x, reading=None):
        hidden = self.norm(self.first(x)) + self.shift
        return hidden if reading == "hidden" else self.last(hidden)


def lasting(serial, leaves, buffers, x, reading):
    """A step through views that are made once."""
    with serial.persistent_views(leaves, buffers):
        (serial.forward(leaves, buffers, x, reading) ** 2).sum().backward()
        assert all(leaf.grad is None for leaf in leaves.values())
        serial.add_view_gradients()


def ordinary(serial, leaves, buffers, x, reading):
    (serial.forward(leaves, buffers, x, reading) ** 2).sum().backward()


def functional(serial, leaves, buffers, x, reading):
    single = {k: v[0] for k, v in (leaves | buffers).items()}
    (torch.func.functional_call(serial.model, single, (x[0],), {"reading": reading}) ** 2).sum().backward()


@pytest.mark.parametrize("reading", [None, "hidden"])
def test_a_serial_step_is_that_of_functional_call_bit_for_bit(reading):
    torch.manual_seed(0)
    model, x = Tied(), torch.randn(1, 6, 4)
    before = {name: value.clone() for name, value in model.state_dict(keep_vars=True).items()}
    serial, ends = Serial(model), []
    for way in (functional, ordinary, lasting):
        torch.manual_seed(1)
        leaves = {k: torch.randn(1, *v.shape).requires_grad_() for k, v in model.named_parameters()}
        buffers = {k: v.clone()[None] for k, v in model.named_buffers()}
        way(serial, leaves, buffers, x, reading)
        ends.append([*(leaf.grad for leaf in leaves.values()), *buffers.values()])
    for expected, *others in zip(*ends, strict=True):
        assert all(other is expected is None or torch.equal(other, expected) for other in others)
    for name, value in model.state_dict(keep_vars=True).items():  # the module has its own weights again
        assert torch.equal(value, before[name])


def test_words_that_wrap_a_model_are_left_out_but_not_its_own():
    model = nn.Sequential(OrderedDict(module=nn.Linear(2, 3), head=nn.Linear(3, 2)))
    state = model.state_dict()
    for words in ("", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."):
        assert unwrapped({f"{words}{name}": value for name, value in state.items()}, model) == state
