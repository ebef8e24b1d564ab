"""The mean of a sentence's token vectors, and a small network on top: the cheapest classifier of text."""

from pydantic import Field

from unlearning_audit.models import Module, Settings


class Options(Settings):
    """``vocabulary``: at least the number of different tokens in the data; ``width`` of the token vectors and of the
    hidden layer."""

    vocabulary: int = Field(2048, ge=2, le=1_000_000)
    width: int = Field(64, ge=1, le=100_000)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the classifier, which maps tokens int [n, *shape] to logits [n, classes]: token vectors, their mean over
    all but padding, Linear, ReLU, Linear. Raises ValueError for samples that are not rows of tokens."""
    from unlearning_audit.models._bag import Bag

    if len(shape) != 1:
        raise ValueError(f"embedding_bag needs tokens [length], not samples of shape {tuple(shape)}")
    return Bag(options.vocabulary, options.width, classes)
