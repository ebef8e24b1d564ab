"""A small convolutional network: convolutions of stride 2 (cheaper than pooling), global mean, linear head."""

from typing import Literal

from pydantic import Field

from unlearning_audit.models import ImageOptions, Module, nn


class Options(ImageOptions):
    """``channels`` of each convolution; ``norm``: batch, group (of ``groups`` groups) or none after each."""

    channels: tuple[int, ...] = Field((16, 32, 64), min_length=1)
    norm: Literal["batch", "group", "none"] = "batch"
    groups: int = Field(8, ge=1)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the network, which maps images [n, *shape] to logits [n, classes], as a sequence of layers, in which each
    3 × 3 convolution halves the image, rounding up.

    Raises ValueError for samples that are not images, and for channels that ``groups`` does not divide if
    ``norm`` is group.
    """
    from unlearning_audit.models._layers import headed, normalisation, standardise

    layers: list[nn.Module] = [standardise(options, shape)]
    inputs = shape[0]
    for outputs in options.channels:
        bias = options.norm == "none"  # a layer that normalises has a bias of its own
        layers.append(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=bias))
        layers += [normalisation(options.norm, outputs, options.groups), nn.ReLU()]
        inputs = outputs
    return headed(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
