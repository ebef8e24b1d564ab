"""Architectures: sizes as published, pieces by hand, and equality of stacked and single models."""

import functools

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn
from unlearning_audit.models import (
    CIFAR10_MEAN,
    CIFAR10_STD,
    airbench,
    cnn,
    linear,
    mlp,
    resnet18,
    resnet_cifar,
    swin_s,
)
from unlearning_audit.models._layers import GlobalMaxPool, PatchWhitening
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from model_cases import CIFAR, build, images, parameters

# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(("depth", "published"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_cifar_resnets_have_the_size_that_he_et_al_print(depth, published):
    model = build(resnet_cifar, CIFAR, depth=depth)
    assert round(parameters(model) / 1e6, 1 if published == 1.7 else 2) == published
    assert sum(isinstance(m, nn.Conv2d | nn.Linear) for m in model.modules()) == depth


def test_resnet18_has_11_17_million_parameters():
    assert parameters(build(resnet18, CIFAR)) == parameters(build(resnet18, CIFAR, norm="group")) == 11_173_962


@pytest.mark.slow  # importing torchvision takes seconds
def test_the_large_stem_of_resnet18_is_that_of_torchvision():
    """The same sizes, and the same answers from the same weights: both number convolution, norm, …, shortcut in one
    order."""
    import torchvision

    reference = torchvision.models.resnet18(num_classes=10).eval()
    model = build(resnet18, (3, 64, 64), stem="large", mean=[0.0], std=[1.0]).eval()
    assert parameters(model) == parameters(reference) == 11_181_642
    for value, counterpart in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        value.copy_(counterpart)
    x = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (model(x) - reference(x)).abs().max() < 1e-4 * reference(x).abs().max()


# ---------------------------------------------------------------- shape of every model

GREY = {"mean": [0.1307], "std": [0.3081]}
SMALL = [
    (linear, (64,), {}),
    (linear, (1, 8, 8), {}),
    (mlp, (64,), {}),
    (mlp, CIFAR, {"hidden": [16], "activation": "tanh"}),
    (cnn, CIFAR, {}),
    (cnn, (1, 28, 28), {"norm": "group", **GREY}),
    (cnn, (1, 8, 8), {"norm": "none", "channels": [4], **GREY}),
    (resnet_cifar, CIFAR, {}),
    (resnet_cifar, (1, 28, 28), {"depth": 8, "norm": "group", **GREY}),
    (resnet18, CIFAR, {"norm": "group"}),
    (airbench, CIFAR, {}),
    (airbench, (1, 28, 28), {"norm": "group", "widths": [8, 16], **GREY}),
]


@pytest.mark.parametrize(("module", "shape", "options"), SMALL)
def test_logits_come_from_a_linear_head_that_is_named(module, shape, options):
    model = build(module, shape, classes=7, **options).double().eval()
    x, head = images(5, *shape), model.get_submodule(model.head)
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_(torch.arange(7))
    assert torch.equal(model(x), torch.arange(7, dtype=torch.float64).expand(5, 7))


@pytest.mark.parametrize(("module", "shape", "options"), SMALL)
def test_the_same_seed_gives_the_same_model_and_training_draws_nothing(module, shape, options):
    first, second, third = (list(build(module, shape, seed=seed, **options).parameters()) for seed in (3, 3, 4))
    assert all(map(torch.equal, first, second))
    assert not all(map(torch.equal, first, third))
    before = torch.get_rng_state()
    build(module, shape, **options).train()(images(4, *shape).float())
    assert torch.equal(torch.get_rng_state(), before)


def test_an_mlp_is_a_plain_chain_and_equals_matrix_products():
    model = build(mlp, (2, 3), hidden=(5, 4)).double()
    assert [type(layer) for layer in model] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert [type(layer) for layer in build(mlp, (6,), hidden=(5,))] == [nn.Linear, nn.ReLU, nn.Linear]
    x = images(8, 2, 3) - 0.5
    by_hand = x.reshape(8, 6)
    for layer in (model[1], model[3]):
        by_hand = (by_hand @ layer.weight.T + layer.bias).clamp(min=0)
    assert torch.allclose(model(x), by_hand @ model[5].weight.T + model[5].bias, rtol=0, atol=1e-14)


# ---------------------------------------------------------------- pieces


def test_images_are_standardised_inside_and_constants_are_not_saved():
    model = build(cnn, CIFAR, norm="none").double()
    assert not [name for name in model.state_dict() if "mean" in name or "std" in name]
    x = images(4, *CIFAR)
    mean, std = (torch.tensor(v, dtype=torch.float32).double().view(3, 1, 1) for v in (CIFAR10_MEAN, CIFAR10_STD))
    plain = build(cnn, CIFAR, norm="none", mean=[0.0], std=[1.0]).double()
    plain.load_state_dict(model.state_dict())
    assert torch.allclose(model(x), plain((x - mean) / std), rtol=0, atol=1e-13)
    assert not torch.allclose(model(x), plain(x), atol=1e-3)


@pytest.mark.parametrize(("module", "pixels"), [(resnet_cifar, 8), (resnet18, 4)])
def test_a_residual_network_with_silent_blocks_passes_its_input_on(module, pixels):
    # With the second norm of every block set to zero, only stem, shortcuts and head are left.
    model = build(module, CIFAR).double().eval()
    for block in model.blocks:
        nn.init.zeros_(block.norm2.weight)
    x = images(3, *CIFAR)
    y = torch.relu(model.norm(model.stem(model.standardise(x))))
    for block in model.blocks:
        y = torch.relu(block.shortcut(y))
    assert torch.allclose(model(x), model.linear(y.mean((2, 3))), rtol=0, atol=1e-12)
    assert y.shape[2:] == (pixels, pixels)


@pytest.mark.parametrize(
    ("module", "shape", "options"),
    [
        (mlp, (64,), {}),
        *((module, (3, 8, 8), {"norm": norm}) for module in (cnn, resnet_cifar) for norm in ("batch", "group")),
        (airbench, (3, 9, 9), {"widths": [16, 16, 16]}),
    ],
)
def test_stacked_models_train_and_answer_as_single_ones(module, shape, options):
    x, seeds = np.random.default_rng(0).random((12, *shape)).astype(np.float32), range(2)
    create = functools.partial(
        ModelStack.create, functools.partial(module.build, module.Options(**options), shape, 4), x, np.arange(12) % 4,
        seeds, recipe=Recipe(lr=0.01, batch_size=6, epochs=1), dtype=torch.float64,
    )  # fmt: skip
    stacked, serial = create(backend="stacked"), create(backend="serial")
    for stack in (stacked, serial):
        stack.train(Rows(np.tile(np.arange(12), (2, 1))))
    for name, value in (serial.parameters | serial.buffers).items():
        torch.testing.assert_close((stacked.parameters | stacked.buffers)[name], value, rtol=1e-9, atol=1e-11)
    assert bool(serial.buffers) is (options.get("norm", "batch") == "batch" and module is not mlp)


# ---------------------------------------------------------------- options and files


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (resnet_cifar, {"depth": 18}, "depth 18 is not 6 k"),
        (resnet_cifar, {"depth": 2}, "depth 2 is not 6 k"),
        (cnn, {"mean": [0.5], "std": [0.2, 0.2]}, "mean and std must have one number each"),
        (cnn, {"mean": [0.5], "std": [0.0]}, "std be positive"),
    ],
)
def test_impossible_options_are_refused(module, options, message):
    with pytest.raises(ValidationError, match=message):
        module.Options(**options)


@pytest.mark.parametrize(
    ("module", "shape", "options", "message"),
    [
        (cnn, (64,), {}, r"needs images \[channels, height, width\], not samples of shape \(64,\)"),
        (resnet18, (1, 28, 28), {}, r"mean and std have 3 numbers but the images 1 channel"),
        (cnn, CIFAR, {"norm": "group", "groups": 6}, "groups: 16 channels cannot be cut into 6"),
        (airbench, (1, 8, 8), GREY, "3 widths needs images of at least 9 × 9 pixels"),
        (swin_s, (1, 28, 28), {}, "swin_s needs images with 3 channels"),
    ],
)
def test_models_that_do_not_fit_the_samples_say_so(module, shape, options, message):
    with pytest.raises(ValueError, match=message):
        build(module, shape, **options)


# ---------------------------------------------------------------- airbench


@pytest.mark.parametrize("channels", [1, 3])
def test_patches_of_the_field_that_is_assumed_become_white(channels):
    layer = PatchWhitening(channels, pixels=0.8, colours=0.5)
    # Rows of this square root map independent numbers to patches with these correlations, [channel, row, column].
    place = [(c, i, j) for c in range(channels) for i in range(2) for j in range(2)]
    field = torch.tensor(
        [[0.8 ** (abs(i - k) + abs(j - m)) * 0.5 ** (c != d) for d, k, m in place] for c, i, j in place]
    )
    patches = torch.linalg.cholesky(field.double()).T.reshape(-1, channels, 2, 2)
    whitened = layer.double()(patches).flatten(1)
    half = whitened.shape[1] // 2
    assert half == 4 * channels
    torch.testing.assert_close(whitened[:, :half].T @ whitened[:, :half], torch.eye(half).double(), rtol=0, atol=1e-5)
    assert torch.equal(whitened[:, half:], -whitened[:, :half])
    assert not layer.state_dict()


def test_convolutions_of_airbench_start_as_the_identity():
    model = build(airbench, CIFAR, widths=[24, 24]).double().eval()
    x = images(3, *CIFAR)
    y = torch.relu(model[1](model[0](x)))
    scale = (1 + model[5].eps) ** -0.5  # of each of four norms, whose statistics are still 0 and 1
    y = nn.functional.max_pool2d(nn.functional.max_pool2d(y, 2), 2).amax((2, 3)) * scale**4
    assert torch.allclose(model(x), model.get_submodule(model.head)(y), rtol=0, atol=1e-12)


def test_the_largest_values_and_their_gradients_are_those_of_torchs_pooling():
    """Bit for bit after a ReLU, where equal largest values are zeros, whose gradient the ReLU drops."""
    x = (torch.randn(7, 5, 4, 4, generator=torch.Generator().manual_seed(0)) - 1.5).requires_grad_()
    actual, expected = (pool(x.relu()) for pool in (GlobalMaxPool(), nn.AdaptiveMaxPool2d(1)))
    assert (actual == 0).any()
    assert torch.equal(actual, expected)
    weight = torch.arange(1.0, 6).reshape(5, 1, 1)
    slopes = [torch.autograd.grad((out * weight).sum(), x)[0] for out in (actual, expected)]
    assert torch.equal(*slopes)
