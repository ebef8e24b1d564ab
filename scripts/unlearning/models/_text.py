"""Options that models of text share; quick to import."""

from pydantic import Field

from unlearning.bank.recipe import Recipe
from unlearning.plugins.settings import Settings


class Size(Settings):
    """``vocabulary``: at least the number of different tokens in the data; ``layers`` of ``width`` units with ``heads``
    each; ``weights``: a folder or a model of the hub to start from, which has a size of its own."""

    vocabulary: int = Field(512, ge=2)
    layers: int = Field(2, ge=1)
    width: int = Field(64, ge=2)
    heads: int = Field(2, ge=1)
    weights: str | None = None


class Causal(Size):
    """As `Size`; ``base``: the recipe by which one model learns the public text first, from which all others start."""

    base: Recipe | None = None
