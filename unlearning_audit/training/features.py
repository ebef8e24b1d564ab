"""Features: the inputs of a model's last layer."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.training.engine import State, forward_one, images_last, repeatable
from unlearning_audit.training.stack import ModelStack

#: Samples that are processed at once.
CHUNK = 64


def readings(stack: ModelStack, index: np.ndarray) -> np.ndarray:
    """Return the inputs of each model's last layer for its samples ``index`` int64 [models, rows], in evaluation mode.

    The result is float32 [models, rows, width], with 0 where the index is −1 (no sample). For a language model it is
    the mean over the states that predict the scored tokens. For a last layer that runs many times on a
    sample, such as a convolution at each pixel, it is the mean over these times. Raises PluginError for a model whose
    last layer is not called as a module, once and with one row per sample.
    """
    stack.model.eval()
    compute = partial(of_passages if "layer" in stack.readings else of_layer, stack)
    per_model = []
    for model, samples in enumerate(torch.from_numpy(index)):
        states = stack.by_chunks(model, samples[samples >= 0], CHUNK, compute)
        filled = states.new_zeros((len(samples), states.shape[1]))  # 0 where there is no sample
        filled[samples >= 0] = states
        per_model.append(filled.numpy())
    return np.stack(per_model)


def of_passages(stack: ModelStack, weights: tuple[State, State], x: Tensor) -> Tensor:
    """Return, for each sample, the mean of a language model's states after its last block and norm, over the positions
    from which scored tokens are predicted: [n, width]. NaN for a sample without scored tokens.

    Parameters
    ----------
    weights
        The parameters and the buffers of one model.
    x
        int [n, length]: the samples' tokens, negative where they are not scored.
    """
    states = stack.output(weights, x, f"layer {stack.model.layers}")  # [n, length − 1, width]
    scored = (x[:, 1:] >= 0).to(states.dtype).unsqueeze(-1)
    return (states * scored).sum(1) / scored.sum(1)


@torch.no_grad()
@repeatable()
def of_layer(stack: ModelStack, weights: tuple[State, State], x: Tensor) -> Tensor:
    """Return the inputs of one model's final layer, [n, width]. A hook keeps them during one forward pass.

    Parameters
    ----------
    weights
        The parameters and the buffers of the model.
    x
        [n, …]: the samples.

    Raises
    ------
    PluginError
        If the layer is not called as a module, once and with one row per sample.
    """
    layer, inputs = stack.model.get_submodule(str(stack.final_layer)), []

    def note(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Keep the layer's input in the list ``inputs`` of the function around this one: the first of the arguments of
        its call, whether it is given by position or name."""
        inputs.append((*arguments, *keywords.values())[0])

    with layer.register_forward_pre_hook(note, with_kwargs=True):
        forward_one(stack.model, *weights, images_last(stack.scaled(x)))
    if len(inputs) != 1 or len(inputs[0]) != len(x):
        how = f"with {len(inputs[0])} rows for {len(x)} samples" if len(inputs) == 1 else f"{len(inputs)} times"
        raise PluginError(
            f"what goes into the last layer {stack.final_layer!r} cannot be read: a forward pass runs it {how}; "
            "call it as a module, once and with a row for each sample, or leave out the metrics that read features"
        )
    return _pooled(inputs[0], layer)


def _pooled(value: Tensor, layer: nn.Module) -> Tensor:
    """Return the inputs ``value`` of a ``layer`` as [n, width].

    For a convolution [n, width, …] it is the mean over the pixels, and for a linear layer that runs at several
    positions [n, …, width] the mean over the positions. Any other input [n, …] is flattened.
    """
    if isinstance(layer, _ConvNd):
        return value.flatten(2).mean(2)
    if isinstance(layer, nn.Linear) and value.ndim > 2:
        return value.flatten(1, -2).mean(1)
    return value.flatten(1)
