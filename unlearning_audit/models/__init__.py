"""Models: one file per architecture, ``Options`` and ``build(options, shape, classes) -> nn.Module``.

``shape`` is the shape of one sample, such as (64,) or (3, 32, 32). A model maps float [n, *shape], or tokens int [n,
length], to logits [n, classes]. Images are in [0, 1], and every image model standardises them itself. ``model.head`` is
the dotted name of its final linear layer, or None if no layer is the final one alone. A built model draws no random
numbers (it has no dropout), so that it runs under ``torch.func``. Options can be checked without torch: ``nn``, its
layers, is imported when it is first used. What the files are written with is imported from here.
"""

from pydantic import model_validator

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.lazy import Module, Tensor, nn

__all__ = ["CIFAR10_MEAN", "CIFAR10_STD", "ImageOptions", "Module", "Settings", "Tensor", "nn"]

CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class ImageOptions(Settings):
    """``mean`` and ``std`` of pixels in [0, 1], one for each channel or one for all. The defaults are CIFAR-10's."""

    mean: tuple[float, ...] = CIFAR10_MEAN
    std: tuple[float, ...] = CIFAR10_STD

    @model_validator(mode="after")
    def _consistent(self) -> "ImageOptions":
        """Return the options. Raise ValueError unless ``mean`` and ``std`` have equally many numbers, at least one, and
        ``std`` is positive."""
        if len(self.mean) != len(self.std) or not self.mean or min(self.std) <= 0:
            raise ValueError("mean and std must have one number each for every channel, and std be positive")
        return self
