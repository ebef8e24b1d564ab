"""Gradients and Fisher information against a closed form and plain loops."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from unlearning_audit.training import curvature

from stack_cases import CLASSES, conv, mlp, tanh

torch.set_num_threads(1)


def case(build, rows=37):
    """A model in evaluation mode with buffers that are not trivial, its tensors, x and y, all float64."""
    torch.manual_seed(0)
    model = build().double()
    for buffer in model.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 2)
    model.eval()
    shape = (6,) if build is not conv else (2, 6, 6)
    x, y = torch.randn(rows, *shape, dtype=torch.float64), torch.randint(0, CLASSES, (rows,))
    return model, {k: v.detach() for k, v in model.named_parameters()}, dict(model.named_buffers()), x, y


@pytest.mark.parametrize("build", [mlp, tanh, conv])
def test_all_that_is_made_of_gradients_is_what_a_loop_over_samples_and_labels_makes_of_them(build, monkeypatch):
    monkeypatch.setattr(curvature, "CHAIN_ROWS", 16)
    monkeypatch.setattr(curvature, "MEAN_ROWS", 10)
    network = model, parameters, _, x, y = case(build)
    losses = [[cross_entropy(model(row), torch.tensor([c])) for c in range(CLASSES)] for row in x.split(1)]
    single = [[torch.autograd.grad(loss, model.parameters()) for loss in of_sample] for of_sample in losses]
    p, size = model(x).detach().softmax(-1), len(x)
    actual = {
        "mean": curvature.mean_gradient(*network),
        "observed": curvature.mean_squares(*network),
        "model": curvature.mean_squares(*network, labels="model"),
        "batches": curvature.mean_squares(*network, per_sample=False, batch_size=10),
    }
    norms = torch.zeros(size, dtype=torch.float64)
    for number, name in enumerate(parameters):
        of_label = torch.stack([torch.stack([g[number] for g in of_sample]) for of_sample in single])
        own = of_label[range(size), y]
        norms += own.flatten(1).square().sum(1)
        expected = {
            "mean": own.mean(0),
            "observed": own.square().mean(0),
            "model": torch.einsum("nc,nc...->...", p, of_label**2) / size,
            "batches": sum(part.mean(0).square() for part in own.split(10)) / 4,
        }
        for kind, value in expected.items():
            assert (actual[kind][name] - value).abs().max() < 1e-10, (kind, name)
            assert value.abs().max() > 1e-6
    assert (curvature.squared_norms(*network) - norms).abs().max() < 1e-10


def test_on_a_card_as_many_samples_are_worked_on_at_once_as_a_gibibyte_holds_gradients_of():
    assert curvature.rows_at_once(4e3, "cpu") == curvature.rows_at_once(5e8, "cuda:0") == curvature.OTHER_ROWS == 16
    assert [curvature.rows_at_once(size, "cuda") for size in (4e3, 1.09e6, 4.47e7)] == [512, 512, 24]
