"""GPT-NeoX (Black et al. 2022), the architecture of Pythia, from transformers: rotary positions, parallel layers."""

from unlearning_audit.models import Module, _text

LIBRARIES = ("transformers.models.gpt_neox.modeling_gpt_neox",)

#: Signals that can be read of this model, because it predicts tokens.
READINGS = ("tokens", "generations", "sampled")


class Options(_text.Causal):
    """The size, or the weights to start from. Pythia-70m: 6 layers, 512 wide, 8 heads, 50,304 tokens."""


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
    from transformers import GPTNeoXConfig

    from unlearning_audit.models._passage import causal

    config = GPTNeoXConfig(
        vocab_size=options.vocabulary, max_position_embeddings=shape[0], hidden_size=options.width,
        num_hidden_layers=options.layers, num_attention_heads=options.heads, intermediate_size=4 * options.width,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return causal(config, shape, options)
