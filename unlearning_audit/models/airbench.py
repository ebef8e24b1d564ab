"""A network for CIFAR-10 that learns in a few epochs: airbench (Jordan 2024), half as wide by default.

The paper's network has widths 64, 256, 256. Its first layer whitens patches of the training images. Here it whitens
patches of a stationary Markov field instead, so that no weight depends on data that may have to be forgotten.
"""

from typing import Literal

from pydantic import Field

from unlearning_audit.models import ImageOptions, Module, nn


class Options(ImageOptions):
    """``widths``: channels of each block of two convolutions; ``norm``: batch, or group of ``groups`` groups."""

    widths: tuple[int, ...] = Field((32, 128, 128), min_length=1)
    norm: Literal["batch", "group"] = "batch"
    groups: int = Field(8, ge=1)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the network, which maps images [n, *shape] to logits [n, classes], as a sequence of layers. Convolutions
    start as the identity on the channels that input and output have in common (Jordan 2024).

    Raises ValueError for samples that are not images, for images too small to be halved once per block, and for widths
    that ``groups`` does not divide if ``norm`` is group.
    """
    from unlearning_audit.models._layers import GlobalMaxPool, PatchWhitening, headed, normalisation, standardise

    whitening = PatchWhitening(shape[0])
    layers: list[nn.Module] = [standardise(options, shape), whitening, nn.ReLU()]
    least = 2 ** len(options.widths) + 1  # whitening takes one pixel, and each block halves the image
    if min(shape[1:]) < least:
        problem = f"airbench with {len(options.widths)} widths needs images of at least {least} × {least} pixels"
        raise ValueError(problem)
    inputs = whitening.channels
    for width in options.widths:
        for pooled in (True, False):
            convolution = nn.Conv2d(inputs, width, 3, padding=1, bias=False)
            nn.init.dirac_(convolution.weight.data[:inputs])  # the identity on the first channels
            layers.append(convolution)
            if pooled:
                layers.append(nn.MaxPool2d(2))
            layers += [normalisation(options.norm, width, options.groups), nn.ReLU()]
            inputs = width
    return headed(*layers, GlobalMaxPool(), nn.Flatten(), nn.Linear(inputs, classes))
