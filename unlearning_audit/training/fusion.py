"""Train long fits on a card with layers that torch's compiler has fused, if that is requested.

Batch normalisation, activations and sums only read and write the outputs of convolutions, and take half of a small
network's step. The compiler fuses them into few kernels. It needs some tens of seconds per network and a fixed batch
size, so that only long trainings gain.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from unlearning_audit.training import card
from unlearning_audit.training.chunks import used_up
from unlearning_audit.training.engine import Fusion, Serial
from unlearning_audit.training.fitting import Fit

#: A fit is long from this number of steps of all models together.
LONG = 20_000


def suitable(fit: Fit) -> bool:
    """Return whether a fit can gain from fusion: it is long and not private, and its networks read images, are trained
    one by one and draw no random numbers."""
    stack = fit.stack
    random = any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in stack.model.modules())
    plain = isinstance(stack.engine, Serial) and stack.x.ndim == 4 and stack.model.training and not random
    if type(fit) is not Fit or not plain:
        return False
    steps = sum(order.steps for order, *_ in fit.orders([0]))
    return steps * fit.epochs * len(stack) >= LONG


@contextmanager
def fused(fit: Fit) -> Iterator[None]:
    """Within the context, full batches of ``fit`` go through fused layers, if that is requested and the fit is
    `suitable`.

    One step is tried before, on copies of the weights. If the compiler fails, log it, and the fit continues without
    fusion. Errors of exhausted memory are raised.
    """
    engine = fit.stack.engine
    if not (isinstance(engine, Serial) and card.compiled() and suitable(fit)):
        yield
        return
    stream = fit.passes[0][0]
    size = stream.batch_size or fit.optimisers[0].batch_size
    start = time.monotonic()
    try:
        engine.fusion = Fusion(fit.stack.model, size)
        rehearse(fit, size)
        print(f"layers were fused in {time.monotonic() - start:.0f} s", flush=True)
    except Exception as error:
        if used_up(error):
            raise
        engine.fusion = None
        logging.warning("layers are not fused, for torch's compiler failed: %s", card.sentence(error))
    try:
        yield
    finally:
        engine.fusion = None


def rehearse(fit: Fit, size: int) -> None:
    """Run one step of ``size`` samples of the first model, forward and backward, on copies of its weights."""
    stack = fit.stack
    group = stack.engine.groups(len(stack))[0]
    rows = torch.arange(size).remainder(len(stack.x)).expand(len(group), -1)
    leaves, buffers = fit.copy_state(group)
    stack.forward(leaves, buffers, stack.read(group, rows).x).sum().backward()
