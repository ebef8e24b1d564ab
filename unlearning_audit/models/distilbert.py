"""DistilBERT (Sanh et al. 2019) as a classifier of sentences, from transformers, on the mean of its last states."""

from pydantic import Field

from unlearning_audit.models import Module, _text

LIBRARIES = ("transformers.models.distilbert.modeling_distilbert",)


class Options(_text.Size):
    """The size, or the weights to start from; the last layer is new. DistilBERT: 6 layers, 768 wide, 12 heads, 30,522
    tokens."""

    vocabulary: int = Field(2048, ge=2, le=1_000_000)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the classifier, which maps tokens int [n, *shape] to logits [n, classes], without dropout.

    Raises ValueError for samples that are not rows of tokens, for weights that cannot be read, and for rows longer than
    the model's positions.
    """
    from transformers import DistilBertConfig

    from unlearning_audit.models._sentence import encoder

    config = DistilBertConfig(
        vocab_size=options.vocabulary, dim=options.width, n_layers=options.layers, n_heads=options.heads,
        hidden_dim=4 * options.width, max_position_embeddings=shape[0],
    )  # fmt: skip
    return encoder(config, shape, classes, options.weights)
