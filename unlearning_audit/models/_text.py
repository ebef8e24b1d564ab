"""Options that language models and classifiers of sentences share. The module is quick to import."""

from pydantic import Field, model_validator

from unlearning_audit.plugins.settings import Settings
from unlearning_audit.training.recipe import Recipe


class Size(Settings):
    """``vocabulary``: at least the number of different tokens in the data; ``layers`` of ``width`` units with ``heads``
    each; ``weights``: a folder or a model of the hub to start from, which determines the size."""

    vocabulary: int = Field(512, ge=2, le=1_000_000)
    layers: int = Field(2, ge=1, le=1_000)
    width: int = Field(64, ge=2, le=100_000)
    heads: int = Field(2, ge=1, le=1_000)
    weights: str | None = None


class Adapter(Settings):
    """Low-rank factors of ``rank`` beside every linear layer, or beside those whose names end with one of ``targets``,
    scaled by ``alpha``/``rank``. Only the factors are trained and stored."""

    rank: int = Field(8, ge=1, le=100_000)
    alpha: float = Field(16.0, gt=0)
    targets: tuple[str, ...] | None = None


class Causal(Size):
    """The options of `Size`, and: ``base``, the recipe by which one model is trained on the public text, from which all
    others start; ``adapter``: keep ``weights`` fixed and train low-rank factors beside them."""

    base: Recipe | None = None
    adapter: Adapter | None = None

    @model_validator(mode="after")
    def _adapters_have_weights(self) -> "Causal":
        """Return the options. Raise ValueError for an adapter without weights, or with a base recipe that would train
        these weights."""
        if self.adapter is not None and (self.weights is None or self.base is not None):
            raise ValueError("adapter needs weights, the folder of the frozen model, and no base")
        return self
