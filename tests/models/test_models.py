"""Architectures: sizes as published, pieces by hand, and equality of stacked and single models."""

import copy

import pytest
import torch
import torchvision
from pydantic import ValidationError
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap
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

from model_cases import CIFAR, build, images, parameters

# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(("depth", "published"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_cifar_resnets_have_the_size_that_he_et_al_print(depth, published):
    model = build(resnet_cifar, CIFAR, depth=depth)
    digits = 1 if published == 1.7 else 2
    assert round(parameters(model) / 1e6, digits) == published
    layers = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == depth


def test_resnet18_has_11_17_million_parameters():
    model = build(resnet18, CIFAR)
    # Stem and head; per stage three 3 × 3 convolutions of its width and one from the width before; three
    # projections; two numbers per channel of each of 20 batch norms.
    widths = (64, 128, 256, 512)
    stem, head = 3 * 64 * 9, 512 * 10 + 10
    stages = sum(9 * w * (3 * w + before) for w, before in zip(widths, (64, 64, 128, 256), strict=True))
    projections = 64 * 128 + 128 * 256 + 256 * 512
    norms = 2 * (64 + 4 * sum(widths) + 128 + 256 + 512)
    assert parameters(model) == stem + head + stages + projections + norms == 11_173_962
    assert parameters(build(resnet18, CIFAR, norm="group")) == 11_173_962
    assert parameters(build(resnet18, CIFAR, classes=100)) == 11_173_962 + 513 * 90


def test_the_large_stem_of_resnet18_is_that_of_torchvision():
    """The same sizes, and the same answers from the same weights."""
    reference = torchvision.models.resnet18(num_classes=10).eval()
    model = build(resnet18, (3, 64, 64), stem="large", mean=[0.0], std=[1.0]).eval()
    assert parameters(model) == parameters(reference) == 11_181_642
    matching = zip(model.state_dict().values(), in_our_order(reference), strict=True)
    for value, counterpart in matching:
        value.copy_(counterpart)
    x = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (model(x) - reference(x)).abs().max() < 1e-4 * reference(x).abs().max()


def in_our_order(network):
    """Tensors of torchvision's residual network: both number convolution, norm, …, shortcut in one order."""
    return network.state_dict().values()


# ---------------------------------------------------------------- shape of every model

SMALL = [
    (linear, (64,), {}),
    (linear, (1, 8, 8), {}),
    (mlp, (64,), {}),
    (mlp, CIFAR, {"hidden": [16], "activation": "tanh"}),
    (cnn, CIFAR, {}),
    (cnn, (1, 28, 28), {"norm": "group", "mean": [0.1307], "std": [0.3081]}),
    (cnn, (1, 8, 8), {"norm": "none", "channels": [4], "mean": [0.3], "std": [0.4]}),
    (resnet_cifar, CIFAR, {}),
    (resnet_cifar, (1, 28, 28), {"depth": 8, "norm": "group", "mean": [0.1307], "std": [0.3081]}),
    (resnet18, CIFAR, {"norm": "group"}),
    (airbench, CIFAR, {}),
    (airbench, (1, 28, 28), {"norm": "group", "widths": [8, 16], "mean": [0.1307], "std": [0.3081]}),
]


@pytest.mark.parametrize(("module", "shape", "options"), SMALL)
def test_logits_come_from_a_linear_head_that_is_named(module, shape, options):
    model = build(module, shape, classes=7, **options).double().eval()
    x = images(5, *shape)
    logits = model(x)
    assert logits.shape == (5, 7)
    head = model.get_submodule(model.head)
    assert isinstance(head, nn.Linear)
    assert {n for n in model.state_dict() if n.startswith(f"{model.head}.")} == {
        f"{model.head}.weight",
        f"{model.head}.bias",
    }
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_(torch.arange(7))
    assert torch.equal(model(x), torch.arange(7, dtype=torch.float64).expand(5, 7))


@pytest.mark.parametrize(("module", "shape", "options"), SMALL)
def test_the_same_seed_gives_the_same_model_and_training_draws_nothing(module, shape, options):
    first, second = (build(module, shape, seed=3, **options) for _ in range(2))
    third = build(module, shape, seed=4, **options)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), third.parameters(), strict=True))
    before = torch.get_rng_state()
    first.train()(images(4, *shape).float())
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


@pytest.mark.parametrize("module", [resnet_cifar, resnet18])
def test_a_residual_network_with_silent_blocks_passes_its_input_on(module):
    # With the second norm of every block set to zero, only stem, shortcuts and head are left.
    model = build(module, CIFAR).double().eval()
    for block in model.blocks:
        nn.init.zeros_(block.norm2.weight)
    x = images(3, *CIFAR)
    y = torch.relu(model.norm(model.stem(model.standardise(x))))
    for block in model.blocks:
        y = torch.relu(block.shortcut(y))
    assert torch.allclose(model(x), model.linear(y.mean((2, 3))), rtol=0, atol=1e-12)
    assert y.shape[2:] == ((8, 8) if module is resnet_cifar else (4, 4))


# ---------------------------------------------------------------- stacked models

STACKED = [
    (mlp, (64,), {}),
    (cnn, (3, 8, 8), {"norm": "batch"}),
    (cnn, (3, 8, 8), {"norm": "group"}),
    (resnet_cifar, (3, 8, 8), {"norm": "batch"}),
    (resnet_cifar, (3, 8, 8), {"norm": "group"}),
    (resnet18, (3, 8, 8), {"norm": "batch"}),
    (airbench, (3, 9, 9), {"widths": [16, 16, 16]}),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("module", "shape", "options"), STACKED)
def test_stacked_models_equal_a_loop(module, shape, options, training):
    n = 2 if module is resnet18 else 3
    singles = [build(module, shape, seed=i, **options).double() for i in range(n)]
    for i, model in enumerate(singles):  # statistics that differ between models and from their start
        model.train()
        model(images(6, *shape, seed=50 + i))
        model.train(training)
    skeleton = copy.deepcopy(singles[0])
    weights, _ = stack_module_state(singles)
    names = [name for name in singles[0].state_dict() if name not in weights]
    buffers = {name: torch.stack([model.state_dict()[name] for model in singles]) for name in names}
    x = images(n, 5, *shape, seed=9)

    stacked = vmap(lambda w, b, v: functional_call(skeleton, {**w, **b}, (v,)))(weights, buffers, x)
    loop = torch.stack([model(v) for model, v in zip(singles, x, strict=True)])

    scale = loop.abs().max()
    assert (stacked - loop).abs().max() < 1e-11 * scale
    assert bool(names) is (module is not mlp and options.get("norm") != "group")
    for name in names:
        after = torch.stack([model.state_dict()[name] for model in singles])
        assert torch.allclose(buffers[name].double(), after.double(), rtol=1e-12, atol=1e-12)
        if name.endswith("num_batches_tracked"):
            assert buffers[name].tolist() == [2 if training else 1] * n


@pytest.mark.parametrize(
    ("module", "options"), [(cnn, {"norm": "group"}), (resnet_cifar, {"norm": "group", "depth": 8})]
)
def test_gradients_of_single_samples_equal_a_loop(module, options):
    model = build(module, (3, 8, 8), **options).double()
    weights = {name: value.detach() for name, value in model.named_parameters()}
    x, y = images(4, 3, 8, 8), torch.arange(4)

    def loss(w, v, label):
        return nn.functional.cross_entropy(functional_call(model, w, (v[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    for i in range(4):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        for name, value in model.named_parameters():
            assert torch.allclose(gradients[name][i], value.grad, rtol=0, atol=1e-10 * (1 + value.grad.abs().max()))


# ---------------------------------------------------------------- options and files


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (resnet_cifar, {"depth": 18}, "depth 18 is not 6 k"),
        (resnet_cifar, {"depth": 2}, "depth 2 is not 6 k"),
        (resnet18, {"norm": "none"}, "'batch' or 'group'"),
        (cnn, {"mean": [0.5], "std": [0.2, 0.2]}, "mean and std must have one number each"),
        (cnn, {"mean": [0.5], "std": [0.0]}, "std be positive"),
        (cnn, {"channels": []}, "channels"),
        (mlp, {"hidden": [0]}, "hidden"),
        (linear, {"hidden": [3]}, "hidden"),
        (airbench, {"widths": []}, "widths"),
        (swin_s, {"width": 32}, "heads: 3 heads do not divide the width"),
        (swin_s, {"weights": "default", "width": 48}, "weights: default are those of Swin-S"),
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
        (airbench, (1, 8, 8), {"mean": [0.3], "std": [0.4]}, "3 widths needs images of at least 9 × 9 pixels"),
        (swin_s, (1, 28, 28), {}, "swin_s needs images with 3 channels"),
        (swin_s, (64,), {}, "swin_s needs images with 3 channels"),
    ],
)
def test_models_that_do_not_fit_the_samples_say_so(module, shape, options, message):
    with pytest.raises(ValueError, match=message):
        build(module, shape, **options)
