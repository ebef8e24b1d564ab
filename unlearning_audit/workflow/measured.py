"""Measure a user's signal of each network of a stack."""

import numpy as np

from unlearning_audit.plugins import registry
from unlearning_audit.plugins.registry import Module
from unlearning_audit.training.lazy import ModelStack

#: How many samples a network reads at a time.
PORTION = 500


def measured(module: Module, stack: ModelStack, rows: np.ndarray) -> np.ndarray:
    """Return what the function ``measure`` of a signal's file gives for each network of a stack and for the samples
    ``rows``, float64 [models, rows, …]. A network reads `PORTION` samples at a time. Raises ValueError unless there is
    one entry for each sample."""
    import torch

    def of_network(model: int) -> torch.Tensor:
        """Return the signal of the network with the number ``model`` in the stack, for all ``rows`` of the function
        around this one: float64 [rows, …]."""
        network, values = stack.extract(model).eval(), []
        for portion in torch.as_tensor(rows).split(PORTION):
            batch = stack.read([model], portion[None])  # of one model, whose samples and labels are the entries 0
            value = registry.call("signals", module, "measure", network, batch.x[0], batch.labels[0])
            if np.shape(value)[:1] != (len(portion),):
                demand = f"measure must return an array ({len(portion)}, …), one entry for each sample"
                raise ValueError(f"{demand}, it returned one of shape {tuple(np.shape(value))}")
            values.append(torch.as_tensor(value).detach().double().cpu())
        return torch.cat(values)

    return torch.stack([of_network(model) for model in range(len(stack))]).numpy()
