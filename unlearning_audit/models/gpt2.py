"""GPT-2 (Radford et al. 2019), from transformers: learned positions, output weights tied to the tokens'."""

from unlearning_audit.models import Module, _text

LIBRARIES = ("transformers.models.gpt2.modeling_gpt2",)

#: Signals that can be read of this model, because it predicts tokens.
READINGS = ("tokens", "generations", "sampled")


class Options(_text.Causal):
    """The size, or the weights to start from. GPT-2 small: 12 layers, 768 wide, 12 heads, 50,257 tokens."""


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
    from transformers import GPT2Config

    from unlearning_audit.models._passage import causal

    config = GPT2Config(
        vocab_size=options.vocabulary, n_positions=shape[0], n_embd=options.width, n_layer=options.layers,
        n_head=options.heads, bos_token_id=None, eos_token_id=None,
        activation_function="gelu_pytorch_tanh",  # the same function as gelu_new, in one kernel: a fifth of a step
    )  # fmt: skip
    return causal(config, shape, options)
