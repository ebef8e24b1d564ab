"""Residual networks for small images (He et al. 2016, section 4.2): a 3 × 3 stem, no pooling, basic blocks."""

from typing import Any

import torch.nn.functional as F  # noqa: N812 (torch's own habit)
from torch import Tensor, nn

from unlearning_audit.models._layers import normalisation, standardise

Sizes = tuple[int, ...]


def convolution(inputs: int, outputs: int, stride: int, kernel: int = 3) -> nn.Conv2d:
    """Return a convolution without bias whose padding keeps the image's size at stride 1.

    Parameters
    ----------
    inputs, outputs
        Numbers of channels.
    kernel
        The kernel's width in pixels, an odd number.
    """
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class PaddedShortcut(nn.Module):
    """A shortcut without parameters (option A of He et al. 2016): every second pixel, and zeros for the channels that
    ``outputs`` are more than ``inputs``, half of them before and half after."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        added = outputs - inputs  # channels of zeros, before and after those of the input
        self.before, self.after = added // 2, added - added // 2

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` [n, inputs, h, w] at half its size, with channels of zeros added: [n, outputs, h/2, w/2],
        rounded up."""
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.after))


class Block(nn.Module):
    """A residual block: two convolutions, each normalised, and a shortcut around both.

    ``inputs`` and ``outputs``: numbers of channels; ``stride`` of the first convolution; ``norm`` and ``groups``: those
    of `normalisation`. ``project``: where the shortcut changes shape, it is a 1 × 1 convolution instead of a
    `PaddedShortcut`.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, norm: str, groups: int, project: bool) -> None:
        super().__init__()
        self.conv1, self.norm1 = convolution(inputs, outputs, stride), normalisation(norm, outputs, groups)
        self.conv2, self.norm2 = convolution(outputs, outputs, 1), normalisation(norm, outputs, groups)
        if stride == 1 and inputs == outputs:
            self.shortcut: nn.Module = nn.Identity()
        elif project:
            self.shortcut = nn.Sequential(
                convolution(inputs, outputs, stride, kernel=1), normalisation(norm, outputs, groups)
            )
        else:
            self.shortcut = PaddedShortcut(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output for ``x`` [n, inputs, h, w]."""
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network with ``blocks[i]`` blocks of ``widths[i]`` channels in stage i. Each stage after the first
    halves the image.

    ``options``: those of the model, with ``norm`` ("batch", or "group" of ``groups`` groups). ``shape``: that of an
    image. ``project``: where a shortcut changes shape, use a 1 × 1 convolution (option B) instead of padding (option
    A). ``large_stem``: start with a 7 × 7 convolution of stride 2 and 3 × 3 max-pooling of stride 2, instead of a 3 × 3
    convolution.
    """

    head = "linear"

    def __init__(
        self, options: Any, shape: Sizes, classes: int, widths: Sizes, blocks: Sizes, project: bool, large_stem: bool
    ) -> None:
        super().__init__()
        norm, groups = options.norm, options.groups
        self.standardise = standardise(options, shape)
        stride, kernel = (2, 7) if large_stem else (1, 3)
        self.stem, self.norm = convolution(shape[0], widths[0], stride, kernel), normalisation(norm, widths[0], groups)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if large_stem else nn.Identity()
        stages, inputs = [], widths[0]
        for stage, (outputs, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                stages.append(Block(inputs, outputs, stride, norm, groups, project))
                inputs = outputs
        self.blocks = nn.Sequential(*stages)
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [n, classes] for images ``x`` [n, channels, height, width] in [0, 1]."""
        x = F.relu(self.norm(self.stem(self.standardise(x))))
        logits: Tensor = self.linear(self.blocks(self.pool(x)).mean((2, 3)))
        return logits
