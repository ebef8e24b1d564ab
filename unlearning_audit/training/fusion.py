"""Train long fits on a card with layers that torch's compiler has fused, if that is requested.

Batch normalisation, activations and sums only read and write the outputs of convolutions, and take half of a small
network's step. The compiler fuses them into few kernels. It needs some tens of seconds per network and a fixed batch
size, so that only long trainings gain.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn
from torch.func import functional_call

from unlearning_audit.training import card
from unlearning_audit.training.engine import Serial
from unlearning_audit.training.fitting import Fit, GroupState

#: A fit is long from this number of steps of all models together.
LONG = 20_000


def suitable(fit: Fit) -> bool:
    """Return whether a fit can gain from fusion: it has at least `LONG` steps, of all models together, and is not
    private, and its networks read images, are trained one by one in training mode, and draw no random numbers
    (dropout)."""
    stack = fit.stack
    dropouts = any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in stack.model.modules())
    plain = type(fit) is Fit and isinstance(stack.engine, Serial) and stack.x.ndim == 4 and stack.model.training
    steps_of_epoch = sum(order.steps for order, *_ in fit.orders([0]))  # the first stream of a pass sets its steps
    return plain and not dropouts and steps_of_epoch * fit.epochs * len(stack) >= LONG


@contextmanager
def fused(fit: Fit) -> Iterator[None]:
    """Within the context, full batches of ``fit`` go through layers that torch's compiler has fused, if that is
    requested (`card.compiled`) and the fit is `suitable`. Otherwise nothing changes.

    The size of a full batch is the ``batch_size`` of the first stream, or else of the first optimiser. One forward and
    backward pass is tried before, on copies of the first model's weights. If the compiler fails, that is logged, and
    the fit continues without fusion.
    """
    stack, engine = fit.stack, fit.stack.engine
    if not (isinstance(engine, Serial) and card.compiled() and suitable(fit)):
        yield
        return
    size = fit.passes[0][0].batch_size or fit.optimisers[0].batch_size
    try:
        engine.fusion = size, torch.compile(partial(functional_call, stack.model), dynamic=False)
        state = GroupState(fit, [0])
        # The first rows; if there are fewer than a batch, they are repeated.
        batch = stack.read([0], torch.arange(size).remainder(len(stack.x))[None])
        stack.forward(state.leaves, state.buffers, batch.x).sum().backward()
    except Exception as error:
        engine.fusion = None
        logging.warning("layers are not fused, for torch's compiler failed: %s", card.first_line(error))
    try:
        yield
    finally:
        engine.fusion = None
