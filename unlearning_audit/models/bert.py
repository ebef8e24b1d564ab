"""BERT (Devlin et al. 2019) as a classifier of sentences, from transformers, on the mean of its last states."""

from pydantic import Field

from unlearning_audit.models import Module, _text

LIBRARIES = ("transformers.models.bert.modeling_bert",)


class Options(_text.Size):
    """The size, or the weights to start from; the last layer is new. BERT-base: 12 layers, 768 wide, 12 heads, 30,522
    tokens."""

    vocabulary: int = Field(2048, ge=2, le=1_000_000)


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the classifier, which maps tokens int [n, *shape] to logits [n, classes], without dropout and without
    BERT's pooling layer.

    Raises ValueError for samples that are not rows of tokens, for weights that cannot be read, and for rows longer than
    the model's positions.
    """
    from transformers import BertConfig

    from unlearning_audit.models._sentence import encoder

    config = BertConfig(
        vocab_size=options.vocabulary, hidden_size=options.width, num_hidden_layers=options.layers,
        num_attention_heads=options.heads, intermediate_size=4 * options.width, max_position_embeddings=shape[0],
    )  # fmt: skip
    model = encoder(config, shape, classes, options.weights)
    model.trunk.pooler = None
    return model
