"""Optimisers that step through torch's own functional kernels.

The classes of torch.optim import torch's compiler on first use, which takes nearly five seconds per process. These
optimisers call the same kernels (torch.optim.sgd.sgd, …) and store the state themselves. None is fused: fused kernels
treat the last elements of a tensor differently, so that a model's bits would depend on its position in the stack.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd


class Stepper:
    """The base of the optimisers of ``parameters``, with the learning rate ``lr``, ``momentum`` and ``weight_decay`` as
    in torch.optim. The current learning rate is ``param_groups[0]["lr"]``, as in torch. ``kept``: what a step changes
    besides the parameters, each a tensor for every parameter that is 0 at first, such as velocities.

    For steps that are replayed from CUDA graphs, ``rate`` is a tensor [] that holds the learning rate, so that a graph
    follows a schedule; counts of steps are then on the parameters' device. For other steps it is None.
    """

    def __init__(
        self, parameters: list[Tensor], *, lr: float, momentum: float, weight_decay: float, rate: Tensor | None = None
    ) -> None:
        self.parameters = parameters
        self.param_groups = [{"lr": lr}]
        self.momentum, self.weight_decay, self.rate = momentum, weight_decay, rate
        self.kept = self._kept()

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        self.param_groups[0]["lr"] = rate
        if self.rate is not None:
            self.rate.fill_(rate)

    def state(self) -> list[Tensor]:
        """Return the tensors that a step changes besides the parameters, themselves and not copies."""
        return [value for values in self.kept for value in values]

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient once. The others stay."""
        positions = [i for i, parameter in enumerate(self.parameters) if parameter.grad is not None]
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        if positions:
            kept = [[values[i] for i in positions] for values in self.kept]
            self._update([self.parameters[i] for i in positions], gradients, *kept)

    def _zeros(self) -> list[Tensor]:
        """Return a tensor of zeros for each parameter, of its shape."""
        return [torch.zeros_like(parameter) for parameter in self.parameters]

    def _counts(self) -> list[Tensor]:
        """Return a count of steps for each parameter, a tensor [] that is 0 at first."""
        # On a card Adam's corrections are computed in the precision of these counts, elsewhere in double precision.
        if self.rate is None:
            return [torch.zeros((), dtype=torch.float32) for _ in self.parameters]
        return [torch.zeros((), dtype=torch.float64, device=self.rate.device) for _ in self.parameters]

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of torch's kernel that say the learning rate and the kind of kernel. For steps that are
        replayed from CUDA graphs, the rate is the tensor ``rate``, and the kernel is one that a graph may hold."""
        if self.rate is None:
            return {"lr": self.param_groups[0]["lr"], "foreach": True}
        return {"lr": self.rate, "foreach": self.rate.is_cuda, "capturable": self.rate.is_cuda}

    def _kept(self) -> list[list[Tensor]]:
        """Return the tensors ``kept`` at the start: two of each parameter's shape, and its count of steps."""
        return [self._zeros(), self._zeros(), self._counts()]

    def _update(self, parameters: list[Tensor], gradients: list[Tensor], *kept: list[Tensor]) -> None:
        """Update some ``parameters``, and what is ``kept`` of them, by their ``gradients``."""
        raise NotImplementedError


class SGD(Stepper):
    """Stochastic gradient descent with momentum and L2 penalty, as torch.optim.SGD.

    Velocities start at 0. Without dampening, the first step then equals torch's first step.
    """

    def _kept(self) -> list[list[Tensor]]:
        """Return the velocity of each parameter; nothing without momentum."""
        return [self._zeros()] if self.momentum else []

    def _update(self, parameters: list[Tensor], gradients: list[Tensor], *kept: list[Tensor]) -> None:
        """Update some ``parameters`` and, with momentum, their velocities by their ``gradients``."""
        if self.rate is not None:  # torch's only kernel that takes the learning rate as a tensor
            buffers: list[Tensor | None] = [*kept[0]] if kept else [None for _ in parameters]
            sgd(
                parameters, gradients, buffers, fused=True, lr=self.rate, momentum=self.momentum,
                weight_decay=self.weight_decay, dampening=0, nesterov=False, maximize=False,
            )  # fmt: skip
            return
        # The same as torch's sgd in three calls for all tensors: its loop over tensors costs a tenth of a small
        # network's step. Gradients change in place, because nothing reads them later.
        if self.weight_decay:
            torch._foreach_add_(gradients, parameters, alpha=self.weight_decay)
        for velocity in kept:
            torch._foreach_mul_(velocity, self.momentum)
            torch._foreach_add_(velocity, gradients)
        torch._foreach_add_(parameters, kept[0] if kept else gradients, alpha=-self.param_groups[0]["lr"])


class Adam(Stepper):
    """Adam with L2 penalty, as torch.optim.Adam with its default β and ε."""

    kernel: Callable[..., None] = staticmethod(adam)

    def _update(self, parameters: list[Tensor], gradients: list[Tensor], *kept: list[Tensor]) -> None:
        """Update some ``parameters``, both moments of their gradients and their counts of steps."""
        first, second, steps = kept
        self.kernel(
            parameters, gradients, first, second, [], steps, weight_decay=self.weight_decay, amsgrad=False, beta1=0.9,
            beta2=0.999, eps=1e-8, maximize=False, **self._settings(),
        )  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay, as torch.optim.AdamW."""

    kernel = staticmethod(adamw)


class RMSprop(Stepper):
    """RMSprop with momentum, as torch.optim.RMSprop with its default α and ε."""

    def _update(self, parameters: list[Tensor], gradients: list[Tensor], *kept: list[Tensor]) -> None:
        """Update some ``parameters``, the mean squares of their gradients, their velocities and counts of steps."""
        square, velocity, steps = kept
        rmsprop(
            parameters, gradients, square, [], velocity if self.momentum else [], steps, alpha=0.99, eps=1e-8,
            weight_decay=self.weight_decay, momentum=self.momentum, centered=False, **self._settings(),
        )  # fmt: skip
