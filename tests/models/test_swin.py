"""The Swin transformer: weights from a file, its published size, and what cannot be read."""

import pytest
import torch
from unlearning_audit.models import swin_s

from model_cases import CIFAR, build, images, parameters

SMALL = {"depths": (1, 1, 1, 1), "heads": (1, 1, 1, 1), "width": 8, "image_size": 32}


def test_swin_takes_weights_from_a_file_but_not_their_head(tmp_path):
    """Random weights with a head of 4 classes, in torchvision's names and half precision."""
    from safetensors.torch import save_file

    model = build(swin_s, CIFAR, classes=4, seed=1, **SMALL)
    state = {
        name: value.half() if value.is_floating_point() else value for name, value in model.swin.state_dict().items()
    }
    path = tmp_path / "swin.safetensors"
    save_file(state, path)
    fresh = build(swin_s, CIFAR, classes=7, weights=str(path), **SMALL)
    assert fresh.head == "swin.head"
    assert fresh.get_submodule(fresh.head).weight.shape == (7, 64)
    for name, value in state.items():
        if not name.startswith("head."):
            assert torch.equal(fresh.swin.state_dict()[name], value.to(fresh.swin.state_dict()[name].dtype)), name
    with pytest.raises(ValueError, match=r"swin\.safetensors: these weights do not fit swin_s of these sizes"):
        build(swin_s, CIFAR, weights=str(path), **{**SMALL, "width": 16})


def test_swin_resizes_draws_nothing_in_training_and_has_the_published_size():
    model = build(swin_s, (3, 16, 16), classes=1000, image_size=64)
    assert round(parameters(model) / 1e6, 1) == 49.6  # torchvision's documentation: 49,606,258
    x = images(2, 3, 16, 16).float()
    assert model.resize(x).shape == (2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(model.train()(x), model.train()(x))
        assert torch.allclose(model.train()(x), model.eval()(x))
    assert not [name for name in model.state_dict() if not name.startswith("swin.")]


def test_unreadable_swin_weights_are_named(tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"no tensors here")
    for path in (broken, tmp_path / "absent.safetensors"):
        with pytest.raises(ValueError, match=rf"swin_s: .*{path.name} is no safetensors file"):
            build(swin_s, CIFAR, weights=str(path), **SMALL)
