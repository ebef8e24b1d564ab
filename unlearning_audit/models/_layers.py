"""Pieces that the image models share."""

import torch
from torch import Tensor, nn

from unlearning_audit.models import ImageOptions


class Layers(nn.Sequential):
    """Layers one after the other, of which ``head`` names the final one."""

    head: str


def headed(*layers: nn.Module) -> Layers:
    """Layers, of which the last is the head."""
    model = Layers(*layers)
    model.head = str(len(model) - 1)
    return model


class Standardise(nn.Module):
    """(x − mean) / std for each channel of x [n, channels, height, width].

    The constants are not part of the state: saved models hold trained weights only.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(options.mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(options.std).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class PatchWhitening(nn.Module):
    """2 × 2 patches of x [n, c, h, w] in uncorrelated coordinates of variance 1, and their negatives:
    [n, 8 c, h − 1, w − 1].

    For a stationary Markov field in which neighbouring pixels correlate by ``pixels`` and channels by ``colours``; in
    CIFAR-10 these are .93 and .87 on average. The filters are not part of the state.
    """

    filters: Tensor

    def __init__(self, channels: int, pixels: float = 0.95, colours: float = 0.9) -> None:
        super().__init__()
        self.channels = 8 * channels
        line = torch.tensor([[1, pixels], [pixels, 1]], dtype=torch.float64)
        between = torch.full((channels, channels), colours, dtype=torch.float64).fill_diagonal_(1)
        variances, directions = torch.linalg.eigh(torch.kron(between, torch.kron(line, line)))
        filters = (directions / variances.sqrt()).T.reshape(-1, channels, 2, 2).float()
        self.register_buffer("filters", torch.cat([filters, -filters]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(x, self.filters)


def standardise(options: ImageOptions, shape: tuple[int, ...]) -> Standardise:
    """The first layer for images of ``shape``. Raises ValueError for other samples or another number of channels."""
    if len(shape) != 3:
        raise ValueError(f"this model needs images [channels, height, width], not samples of shape {tuple(shape)}")
    if len(options.mean) not in (1, shape[0]):
        raise ValueError(
            f"mean and std have {len(options.mean)} numbers but the images {shape[0]} channel(s); give one "
            "for each channel (MNIST: mean [0.1307], std [0.3081])"
        )
    return Standardise(options)


def normalisation(kind: str, channels: int, groups: int) -> nn.Module:
    """Normalise ``channels``: ``batch`` statistics, ``group`` statistics of each sample, or ``none``.

    Raises ValueError if the groups cannot be equal.
    """
    if kind == "none":
        return nn.Identity()
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if channels % groups:
        raise ValueError(f"groups: {channels} channels cannot be cut into {groups} equal groups; choose a divisor")
    return nn.GroupNorm(groups, channels)


class GlobalMaxPool(nn.Module):
    """The largest value of every channel, [b, c, h, w] → [b, c, 1, 1]: AdaptiveMaxPool2d(1), whose own gradient on a
    card is not the same in every run."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pool ``x``."""
        return x.amax((2, 3), keepdim=True)
