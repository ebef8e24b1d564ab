"""The first layer of airbench whitens patches of the field that it assumes; its convolutions start as the identity."""

import pytest
import torch
from torch import nn
from unlearning_audit.models import airbench
from unlearning_audit.models._layers import GlobalMaxPool, PatchWhitening

from model_cases import CIFAR, build, images


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
