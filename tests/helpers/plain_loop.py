"""The ordinary way to train one model of a stack, to compare methods with."""

from itertools import chain

import torch
from torch import nn
from torch.nn.functional import log_softmax

from stack_cases import batches, rows, unlearned


class Plain:
    """One model of a stack as a module, its batches, and an optimiser of torch.optim."""

    def __init__(self, stack, model, kind=torch.optim.SGD, **settings):
        self.stack, self.x, self.y = stack, stack.x.double(), stack.labels
        self.forget, self.retain = rows(stack.seeds)
        self.seed, self.m = stack.seeds[model], model
        self.model, self.original = stack.extract(model), stack.extract(model)
        self.optimiser = kind(self.model.parameters(), **settings)

    def read(self, side, key, size, passes):
        """For each pass the batches of ``side`` (forget, retain, or Rows) that the stream ``key`` reads."""
        side = getattr(self, side) if isinstance(side, str) else side
        return batches(side, self.m, self.seed, key, size, passes)

    def all(self, *stream):
        """The batches of all passes, one after the other."""
        return [*chain(*self.read(*stream))]

    def logits(self, index, model=None):
        return (model or self.model)(self.x[index])

    def taught(self, index, model=None):
        """What a teacher, the original by default, answers."""
        return self.logits(index, model or self.original).detach()

    def loss(self, index):
        return nn.functional.cross_entropy(self.logits(index), self.y[index])

    def step(self, loss, optimiser=None):
        optimiser = optimiser or self.optimiser
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def divergence(teacher, student, temperature):
    """T²·KL(teacher ‖ student), mean over samples, by its definition."""
    p, q = log_softmax(teacher / temperature, -1), log_softmax(student / temperature, -1)
    return temperature**2 * (p.exp() * (p - q)).sum(1).mean()


def assert_plain(stack, name, loop, options, kind=torch.optim.SGD):
    """The method with ``options`` gives what ``loop`` leaves in a `Plain`, for every model. The optimiser of the loop
    has the learning rate, momentum and weight decay of the options, as far as these give them."""
    settings = {key: options[key] for key in ("lr", "momentum", "weight_decay") if key in options}
    after = unlearned(stack, name, **options)
    for m in range(len(stack)):
        plain = Plain(stack, m, kind, **settings)
        loop(plain)
        for k, v in plain.model.state_dict().items():
            assert (after.parameters[k][m] - v).abs().max() < 1e-12, (m, k)
