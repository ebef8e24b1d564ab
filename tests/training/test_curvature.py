"""Gradients and Fisher information against closed forms, plain loops and torch.func."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from unlearning_audit.training import curvature

from bank_cases import conv, mlp, tanh

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
    x, y = torch.randn(rows, *shape, dtype=torch.float64), torch.randint(0, 4, (rows,))
    return model, {k: v.detach() for k, v in model.named_parameters()}, dict(model.named_buffers()), x, y


def loop_squares(model, x, y, labels):
    """The definition, one backward pass per sample and label."""
    total = {k: torch.zeros_like(v) for k, v in model.named_parameters()}
    for n in range(len(x)):
        p = model(x[n : n + 1]).detach().softmax(-1)[0]
        for c in range(4):
            weight = p[c] if labels == "model" else float(c == y[n])
            model.zero_grad()
            nn.functional.cross_entropy(model(x[n : n + 1]), torch.tensor([c])).backward()
            for k, v in model.named_parameters():
                total[k] += weight * v.grad**2
    return {k: v / len(x) for k, v in total.items()}


def vmapped_squares(model, parameters, buffers, x, y, labels):
    def loss(p, sample, c):
        z = functional_call(model, {**p, **buffers}, (sample[None],))[0]
        return z.logsumexp(0) - (z * (torch.arange(4) == c)).sum()

    slopes = vmap(grad(loss), (None, 0, 0))
    total = {k: torch.zeros_like(v) for k, v in parameters.items()}
    p = functional_call(model, {**parameters, **buffers}, (x,)).softmax(-1)
    for c in range(4):
        weight = p[:, c] if labels == "model" else (y == c).double()
        for k, g in slopes(parameters, x, torch.full_like(y, c)).items():
            total[k] += (g**2 * weight.view(-1, *[1] * (g.ndim - 1))).mean(0)
    return total


@pytest.mark.parametrize("labels", ["observed", "model"])
@pytest.mark.parametrize("build", [mlp, tanh, conv])
def test_squared_gradients_three_ways(build, labels, monkeypatch):
    monkeypatch.setattr(curvature, "CHAIN", 16)
    model, parameters, buffers, x, y = case(build)
    actual = curvature.squares(labels)(model, parameters, buffers, x, y)
    plain, mapped = loop_squares(model, x, y, labels), vmapped_squares(model, parameters, buffers, x, y, labels)
    assert actual.keys() == plain.keys()
    for k in actual:
        assert (actual[k] - plain[k]).abs().max() < 1e-10
        assert (actual[k] - mapped[k]).abs().max() < 1e-10
        assert actual[k].max() > 1e-6


@pytest.mark.parametrize("build", [mlp, conv])
def test_squares_of_batch_means(build):
    model, parameters, buffers, x, y = case(build)
    actual = curvature.squares(per_sample=False, batch_size=10)(model, parameters, buffers, x, y)
    total = {k: torch.zeros_like(v) for k, v in parameters.items()}
    for start in (0, 10, 20, 30):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[start : start + 10]), y[start : start + 10]).backward()
        for k, v in model.named_parameters():
            total[k] += v.grad**2 / 4
    assert all((actual[k] - total[k]).abs().max() < 1e-10 for k in actual)


def test_squares_of_batch_means_have_no_model_labels():
    model, parameters, buffers, x, y = case(mlp)
    with pytest.raises(ValueError, match="observed labels only"):
        curvature.squares("model", per_sample=False)(model, parameters, buffers, x, y)


@pytest.mark.parametrize("build", [mlp, tanh, conv])
def test_mean_gradient_and_squared_norms_against_a_loop(build, monkeypatch):
    monkeypatch.setattr(curvature, "CHAIN", 16)
    monkeypatch.setattr(curvature, "MEAN", 10)
    model, parameters, buffers, x, y = case(build)
    gradients = []
    for n in range(len(x)):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[n : n + 1]), y[n : n + 1]).backward()
        gradients.append({k: v.grad.clone() for k, v in model.named_parameters()})
    mean = curvature.mean_gradient(model, parameters, buffers, x, y)
    for k, v in mean.items():
        assert (v - sum(g[k] for g in gradients) / len(x)).abs().max() < 1e-10
    norms = torch.stack([sum((v**2).sum() for v in g.values()) for g in gradients])
    assert (curvature.squared_norms(model, parameters, buffers, x, y) - norms).abs().max() < 1e-10


def test_logistic_regression_in_closed_form():
    """Softmax regression: ∂CE/∂W_c = (p_c − 1[y = c])·x, so F_c = mean p_c(1 − p_c)·x² under model labels, and
    ‖∇‖² = ‖p − e_y‖²·(‖x‖² + 1)."""
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(20, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    y = rng.integers(0, 4, 20)
    z = x @ w.T + b
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    model = nn.Sequential(nn.Linear(3, 4)).double()
    arguments = (
        model, {"0.weight": torch.from_numpy(w), "0.bias": torch.from_numpy(b)}, {},
        torch.from_numpy(x), torch.from_numpy(y),
    )  # fmt: skip
    spread, error = p * (1 - p), (p - np.eye(4)[y]) ** 2
    for labels, factor in (("model", spread), ("observed", error)):
        fisher = curvature.squares(labels)(*arguments)
        assert np.abs(fisher["0.weight"].numpy() - factor.T @ x**2 / 20).max() < 1e-12
        assert np.abs(fisher["0.bias"].numpy() - factor.mean(0)).max() < 1e-12
    norms = curvature.squared_norms(*arguments).numpy()
    assert np.abs(norms - error.sum(1) * ((x**2).sum(1) + 1)).max() < 1e-12


def test_on_a_card_as_many_samples_are_worked_on_at_once_as_a_gibibyte_holds_gradients_of():
    assert curvature.rows_at_once(4e3, "cpu") == curvature.rows_at_once(5e8, "cuda:0") == curvature.GENERAL == 16
    assert [curvature.rows_at_once(size, "cuda") for size in (4e3, 1.09e6, 4.47e7)] == [512, 512, 24]


def test_no_number_depends_on_how_many_samples_are_worked_on_at_once(monkeypatch):
    network = case(conv)

    def numbers():
        return curvature.squares("model")(*network), curvature.squared_norms(*network)

    squares, norms = numbers()
    monkeypatch.setattr(curvature, "rows_at_once", lambda gradient, device: 7)
    others, other_norms = numbers()
    assert all(torch.allclose(value, others[name], rtol=1e-12, atol=0) for name, value in squares.items())
    assert torch.allclose(norms, other_norms, rtol=1e-12, atol=0)
