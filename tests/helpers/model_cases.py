"""Models and images that tests of models share."""

import torch
from torch import nn

CIFAR = (3, 32, 32)


def build(module, shape, classes=10, seed=0, **options) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return module.build(module.Options(**options), shape, classes)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def images(*shape: int, seed=0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
