"""ResNet-18 (He et al. 2016), with a stem for small images or the stem of the paper."""

from typing import Literal

from pydantic import Field

from unlearning_audit.models import ImageOptions, Module


class Options(ImageOptions):
    """``norm``: batch, or group of ``groups`` groups (for DP-SGD). ``stem``: small is a 3 × 3 convolution of stride 1,
    for images of 32 × 32 pixels; large is a 7 × 7 convolution of stride 2 and 3 × 3 max-pooling of stride 2, as in
    torchvision."""

    norm: Literal["batch", "group"] = "batch"
    groups: int = Field(32, ge=1)
    stem: Literal["small", "large"] = "small"


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return a ResNet, which maps images [n, *shape] to logits [n, classes], of four stages of two blocks, 64 to 512
    channels, with projections in the shortcuts and torch's default initialisation.

    Raises ValueError for samples that are not images, and for channels that ``groups`` does not divide if
    ``norm`` is group.
    """
    from unlearning_audit.models._resnet import ResNet

    large = options.stem == "large"
    return ResNet(options, shape, classes, (64, 128, 256, 512), (2, 2, 2, 2), project=True, large_stem=large)
