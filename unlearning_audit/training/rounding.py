"""Round weights to fewer bits, as before deployment, and read the predictions of the rounded models."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unlearning_audit.training.stack import ModelStack


def rounded(weight: Tensor, bits: int) -> Tensor:
    """Return the ``weight`` [models, outputs, …] rounded to the nearest of 2^bits − 1 levels, symmetric about 0 and
    scaled by each output's largest weight. An output whose weights are all 0 stays.

    Raises ValueError below two bits, for which there are no such levels.
    """
    if bits < 2:
        raise ValueError(f"weights take two bits at least, not {bits}")
    most = 2 ** (bits - 1) - 1  # levels on either side of 0
    # The distance between levels: the largest weight of each output over ``most``, [models, outputs, 1, …].
    step = weight.abs().flatten(2).amax(dim=2).reshape(*weight.shape[:2], *[1] * (weight.ndim - 2)) / most
    return torch.where(step > 0, torch.round(weight / torch.where(step > 0, step, 1.0)) * step, weight)


def answers(stack: ModelStack, rows: np.ndarray, bits: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
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
        phi, right = zip(*(answers(_merged(stack, model), rows, bits) for model in range(len(stack))), strict=True)
        return np.concatenate(phi), np.concatenate(right)
    predictions = []
    for count in bits:
        coarse = stack.copy()
        coarse.edit(partial(_coarse, count, stack.turned))
        predictions.append(coarse.predictions(rows))
    phi, right = (np.stack(arrays, axis=1) for arrays in zip(*predictions, strict=True))
    return phi, right


def _coarse(bits: int, turned: set[str], name: str, value: Tensor) -> Tensor:
    """Return the ``value`` [models, …] of the parameter ``name``, `rounded` to ``bits`` if it is a matrix or a kernel,
    else unchanged.

    ``turned``: the names of parameters that are stored as [models, inputs, outputs].
    """
    if value.ndim < 3:  # a bias or the weights of a norm
        return value
    return rounded(value.mT, bits).mT.contiguous() if name in turned else rounded(value, bits)


def _merged(stack: ModelStack, model: int) -> ModelStack:
    """Return a stack of the one model with the number ``model``, whose adapters are merged into its weights as for
    deployment."""
    adapted: Any = stack.extract(model)
    plain, labels = adapted.plain(), stack.labels if stack.labels.ndim == 1 else stack.labels[[model]]
    return ModelStack.create(
        lambda: plain, stack.x.cpu().numpy(), labels.cpu().numpy(), [stack.seeds[model]],
        device=stack.device, dtype=stack.dtype,
    )  # fmt: skip
