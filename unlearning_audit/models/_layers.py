"""Layers that several image models use."""

import torch
from torch import Tensor, nn

from unlearning_audit.models import ImageOptions


class Layers(nn.Sequential):
    """A sequence of layers; ``head`` is the name of the final one."""

    head: str


def headed(*layers: nn.Module) -> Layers:
    """Return the layers as a sequence whose last layer is the head: ``head`` is its name."""
    model = Layers(*layers)
    model.head = str(len(model) - 1)
    return model


class Standardise(nn.Module):
    """A layer that computes (x − mean) / std for each channel of x [n, channels, height, width].

    The constants are not part of the state, so that saved models hold trained weights only.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, options: ImageOptions) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(options.mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(options.std).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return standardised images, [n, channels, height, width]."""
        return (x - self.mean) / self.std


class PatchWhitening(nn.Module):
    """A convolution that whitens the 2 × 2 patches of x [n, c, h, w] and adds their negatives: [n, 8 c, h − 1, w − 1].

    The whitened coordinates are uncorrelated with variance 1 for a stationary Markov field in which neighbouring pixels
    have the correlation ``pixels`` and channels the correlation ``colours``. In CIFAR-10 these are .93 and .87 on
    average. The filters are not part of the state.
    """

    filters: Tensor

    def __init__(self, channels: int, pixels: float = 0.95, colours: float = 0.9) -> None:
        super().__init__()
        self.channels = 8 * channels  # of the output: 4 · channels coordinates of a patch, and their negatives
        # The correlation of two numbers of a patch is a product of three: between their channels, between their rows
        # and between their columns.
        line = torch.tensor([[1, pixels], [pixels, 1]], dtype=torch.float64)
        between = torch.full((channels, channels), colours, dtype=torch.float64).fill_diagonal_(1)
        variances, directions = torch.linalg.eigh(torch.kron(between, torch.kron(line, line)))
        # A principal direction over the square root of its variance gives a coordinate of variance 1.
        filters = (directions / variances.sqrt()).T.reshape(-1, channels, 2, 2).float()
        self.register_buffer("filters", torch.cat([filters, -filters]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the whitened patches of images ``x`` [n, c, h, w] and their negatives: [n, 8 c, h − 1, w − 1]."""
        return nn.functional.conv2d(x, self.filters)


def standardise(options: ImageOptions, shape: tuple[int, ...]) -> Standardise:
    """Return the layer that standardises images of ``shape``. Raises ValueError for samples that are not images, or if
    the number of channels does not fit ``options``."""
    if len(shape) != 3:
        raise ValueError(f"this model needs images [channels, height, width], not samples of shape {tuple(shape)}")
    if len(options.mean) not in (1, shape[0]):
        raise ValueError(
            f"mean and std have {len(options.mean)} numbers but the images {shape[0]} channel(s); give one "
            "for each channel (MNIST: mean [0.1307], std [0.3081])"
        )
    return Standardise(options)


def normalisation(kind: str, channels: int, groups: int) -> nn.Module:
    """Return a layer that normalises ``channels``, by its ``kind``: "batch" statistics, "group" statistics of each
    sample, or, for "none", not at all.

    Parameters
    ----------
    groups
        The number of groups of channels, for "group" only.

    Raises
    ------
    ValueError
        If the channels cannot be divided into equal groups.
    """
    if kind == "none":
        return nn.Identity()
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if channels % groups:
        raise ValueError(f"groups: {channels} channels cannot be cut into {groups} equal groups; choose a divisor")
    return nn.GroupNorm(groups, channels)


class GlobalMaxPool(nn.Module):
    """A layer that takes the largest value of every channel: [b, c, h, w] → [b, c, 1, 1].

    AdaptiveMaxPool2d(1) computes the same, but its gradient on a graphics card is not deterministic.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the largest value of every channel of ``x`` [b, c, h, w]: [b, c, 1, 1]."""
        return x.amax((2, 3), keepdim=True)
