"""ResNet-18 (He et al. 2016), with the stem for small images or that of the paper."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unlearning_audit.models import ImageOptions

if TYPE_CHECKING:
    from torch import nn


class Options(ImageOptions):
    """``norm``: batch, or group of ``groups`` groups (for DP-SGD). ``stem``: small is a 3 × 3 convolution of stride 1,
    for images of 32 × 32 pixels; large a 7 × 7 convolution of stride 2 and 3 × 3 max-pooling of stride 2, as in
    torchvision."""

    norm: Literal["batch", "group"] = "batch"
    groups: int = Field(32, ge=1)
    stem: Literal["small", "large"] = "small"


def build(options: Options, shape: tuple[int, ...], classes: int) -> "nn.Module":
    """64 to 512 channels in four stages of two blocks, projections in the shortcuts, torch's default initialisation."""
    from unlearning_audit.models._layers import standardise
    from unlearning_audit.models._resnet import ResNet

    return ResNet(
        standardise(options, shape),
        shape[0],
        classes,
        widths=(64, 128, 256, 512),
        blocks=(2, 2, 2, 2),
        norm=options.norm,
        groups=options.groups,
        project=True,
        large_stem=options.stem == "large",
    )
