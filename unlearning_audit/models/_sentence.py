"""Classifiers of sentences: they map rows of tokens to one logit per class and ignore padding."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PretrainedConfig

from unlearning_audit.models._bag import mean_over_tokens
from unlearning_audit.models._passage import pretrained, undropped


class Encoder(nn.Module):
    """A classifier of sentences: a bidirectional ``trunk`` of transformers, and a linear layer on the mean of its last
    hidden states."""

    head = "output"

    def __init__(self, trunk: Any, classes: int) -> None:
        super().__init__()
        self.trunk, self.vocabulary = trunk, trunk.config.vocab_size
        self.output = nn.Linear(trunk.config.hidden_size, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits [n, classes] for tokens ``x`` int [n, length], negative where a row is padded."""
        # Added to the attention scores [n, heads, from, to]; a mask of two axes would be inspected for its values.
        blocked = torch.zeros_like(x, dtype=self.output.weight.dtype).masked_fill(x < 0, -1e9)[:, None, None, :]
        states = self.trunk(input_ids=x.clamp_min(0).long(), attention_mask=blocked).last_hidden_state
        logits: Tensor = self.output(mean_over_tokens(states, x))
        return logits


def encoder(config: PretrainedConfig, shape: tuple[int, ...], classes: int, weights: str | None) -> Encoder:
    """Return a classifier of sentences: an encoder, and a new last layer for ``classes``.

    The encoder is freshly drawn by ``config``, or read if ``weights`` names a folder or a model of the hub.

    Parameters
    ----------
    shape
        The shape of one sample, (length,).

    Raises
    ------
    ValueError
        For samples that are not rows of tokens, for weights that cannot be read, and for rows longer than the model's
        positions.
    """
    if len(shape) != 1:
        raise ValueError(f"a model of sentences needs tokens [length], not samples of shape {tuple(shape)}")
    if weights is None:
        trunk = AutoModel.from_config(undropped(config), attn_implementation="eager")
    else:
        trunk = copy.deepcopy(pretrained(AutoModel, weights, Path(weights).resolve(), "eager"))
    positions = trunk.config.max_position_embeddings
    if shape[0] > positions:
        raise ValueError(f"sentences have {shape[0]} tokens, but the model {positions} positions; shorten data.length")
    return Encoder(trunk.float(), classes)
