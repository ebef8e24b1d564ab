"""ResNet-18 (He et al. 2016) with the stem for small images: a 3 × 3 convolution of stride 1, no max-pooling."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unlearning.models import ImageOptions

if TYPE_CHECKING:
    from torch import nn


class Options(ImageOptions):
    """``norm``: batch, or group of ``groups`` groups (for DP-SGD)."""

    norm: Literal["batch", "group"] = "batch"
    groups: int = Field(32, ge=1)


def build(options: Options, shape: tuple[int, ...], classes: int) -> "nn.Module":
    """64 to 512 channels in four stages of two blocks, projections in the shortcuts, torch's default initialisation."""
    from unlearning.models._layers import standardise
    from unlearning.models._resnet import ResNet

    return ResNet(
        standardise(options, shape),
        shape[0],
        classes,
        widths=(64, 128, 256, 512),
        blocks=(2, 2, 2, 2),
        norm=options.norm,
        groups=options.groups,
        project=True,
    )
