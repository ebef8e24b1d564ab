"""Round weights to fewer bits, as before deployment, and read the predictions of the rounded models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.training.stack import ModelStack


def rounded(weight: Tensor, bits: int) -> Tensor:
    """Return the ``weight`` [models, outputs, …] rounded to the nearest of 2^bits − 1 levels. For each output of a
    model, levels lie at equal distances from minus to plus its largest absolute weight. An output whose weights are all
    0 stays.

    Raises ValueError below two bits, for which there are no such levels.
    """
    if bits < 2:
        raise ValueError(f"weights take two bits at least, not {bits}")
    levels_above_0 = 2 ** (bits - 1) - 1
    largest = weight.abs().flatten(2).amax(dim=2)  # of each output, [models, outputs]
    step = largest.reshape(*largest.shape, *[1] * (weight.ndim - 2)) / levels_above_0  # the distance between levels
    return torch.where(step > 0, torch.round(weight / torch.where(step > 0, step, 1.0)) * step, weight)


def rounded_predictions(stack: ModelStack, rows: np.ndarray, bits: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of models whose matrices and kernels are `rounded`, for each number of ``bits``.

    Adapters are merged into the weights first. Biases and norms keep their precision. The stack is unchanged.

    Parameters
    ----------
    stack : ModelStack
        The models.
    rows : int64 [rows]
        The samples that are predicted.
    bits : sequence of int
        Numbers of bits, at least 2.

    Returns
    -------
    phi : float32 [models, bits, rows]
        The logit-scaled confidence.
    right : bool [models, bits, rows]
        Whether the prediction is right.
    """
    if hasattr(stack.model, "merged"):  # adapters share frozen weights; merged, each model has weights of its own
        of_models = [rounded_predictions(_merged(stack, model), rows, bits) for model in range(len(stack))]
        return np.concatenate([phi for phi, _ in of_models]), np.concatenate([right for _, right in of_models])
    predictions = []
    for count in bits:
        rounded_stack = stack.copy()
        for name, value in stack.parameters.items():
            if value.ndim > 2:  # a matrix or a kernel, [models, outputs, …], or turned [models, inputs, outputs]
                turned = name in stack.turned
                weight = rounded(value.mT, count).mT.contiguous() if turned else rounded(value, count)
                rounded_stack.parameters[name] = weight
        predictions.append(rounded_stack.predictions(rows))
    phi, right = (np.stack(arrays, axis=1) for arrays in zip(*predictions, strict=True))
    return phi, right


def _merged(stack: ModelStack, model: int) -> ModelStack:
    """Return a stack of one model: that with the number ``model``, its adapters merged into its weights as for
    deployment."""
    adapted: Any = stack.extract(model)
    plain = adapted.plain()  # a network without adapters
    labels = stack.labels if stack.labels.ndim == 1 else stack.labels[[model]]
    return ModelStack.create(
        lambda: plain, stack.x.cpu().numpy(), labels.cpu().numpy(), [stack.seeds[model]],
        device=stack.device, dtype=stack.dtype,
    )  # fmt: skip
