"""Llama (Touvron et al. 2023), from transformers: rotary positions, gated layers, root-mean-square norms."""

from unlearning_audit.models import Module, _text

LIBRARIES = ("transformers.models.llama.modeling_llama",)

#: Signals that can be read of this model, because it predicts tokens.
READINGS = ("tokens", "generations", "sampled")

#: This model reads a folder of transformers for which the study names no model.
READS_FOLDERS = True


class Options(_text.Causal):
    """The size, or the weights to start from. Llama-2-7b: 32 layers, 4,096 wide, 32 heads, 32,000 tokens."""


def build(options: Options, shape: tuple[int, ...], classes: int) -> Module:
    """Return the language model as a classifier of two classes: is a passage predicted or not? It has no dropout.

    The configuration holds for a freshly drawn model; weights that ``options`` name bring their own. No token begins,
    ends or pads a text.

    Parameters
    ----------
    shape
        The shape of one passage, (length,).
    classes
        Not used, as the two classes are fixed.

    Raises
    ------
    ValueError
        For samples that are not rows of tokens, for weights that cannot be read, and for passages longer than the
        model's positions.
    """
    from transformers import LlamaConfig

    from unlearning_audit.models._passage import causal

    # Gated layers have 8/3 of the width, rounded up: three matrices of this size weigh as much as two of 4 × the width.
    config = LlamaConfig(
        vocab_size=options.vocabulary, max_position_embeddings=shape[0], hidden_size=options.width,
        num_hidden_layers=options.layers, num_attention_heads=options.heads, num_key_value_heads=options.heads,
        intermediate_size=-(-8 * options.width // 3), bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    return causal(config, shape, options)
