"""ResNet-20 to -110 for CIFAR, with parameter-free shortcuts (He et al. 2016, section 4.2, option A)."""

from typing import Literal

from pydantic import Field, field_validator

from unlearning_audit.models import ImageOptions, Module, nn

#: The name that reports print.
PRINTED = "resnet{depth}"


class Options(ImageOptions):
    """``depth``: 6 k + 2 layers with weights; ``norm``: batch, or group of ``groups`` groups (for DP-SGD)."""

    depth: int = 20
    norm: Literal["batch", "group"] = "batch"
    groups: int = Field(8, ge=1)

    @field_validator("depth")
    @classmethod
    def _whole_blocks(cls, depth: int) -> int:
        """Return ``depth``. Raise ValueError unless it is 6 k + 2 with k of at least 1."""
        if depth < 8 or depth % 6 != 2:
            raise ValueError(f"depth {depth} is not 6 k + 2 with k of at least 1; choose 20, 32, 44, 56 or 110")
        return depth


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the network, which maps images [n, *shape] to logits [n, classes]. Weights of convolutions and of the head
    are drawn from the normal distribution of He et al. (2015).

    Raises ValueError for samples that are not images, and for channels that ``groups`` does not divide if
    ``norm`` is group.
    """
    from unlearning_audit.models._resnet import ResNet

    blocks = ((options.depth - 2) // 6,) * 3
    model = ResNet(options, shape, classes, (16, 32, 64), blocks, project=False, large_stem=False)
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
    return model
