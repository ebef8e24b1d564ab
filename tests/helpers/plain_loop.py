"""The ordinary way to train one model of a bank, to compare methods with."""

import torch
from torch import nn

from bank_cases import batches, rows, unlearned


class Plain:
    """One model of a bank as a module, its batches, and an optimiser of torch.optim."""

    def __init__(self, bank, model, kind=torch.optim.SGD, **settings):
        self.bank, self.x, self.y = bank, bank.x.double(), bank.labels
        self.forget, self.retain = rows(bank.seeds)
        self.seed, self.m, self.model = bank.seeds[model], model, bank.extract(model)
        self.kind, self.settings = kind, settings
        self.optimiser = kind(self.model.parameters(), **settings)

    def read(self, side, key, size, passes):
        """For each pass the batches of ``side`` (forget, retain, or Rows) that the stream ``key`` reads."""
        side = getattr(self, side) if isinstance(side, str) else side
        return batches(side, self.m, self.seed, key, size, passes)

    def logits(self, index, model=None):
        return (model or self.model)(self.x[index])

    def loss(self, index):
        return nn.functional.cross_entropy(self.logits(index), self.y[index])

    def step(self, loss, optimiser=None):
        optimiser = optimiser or self.optimiser
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def assert_plain(bank, name, loop, **options):
    """The method gives what ``loop(bank, model)`` leaves in its module, for every model."""
    after = unlearned(bank, name, **options)
    for m in range(len(bank)):
        for k, v in loop(bank, m).model.state_dict().items():
            assert (after.parameters[k][m] - v).abs().max() < 1e-12, (m, k)
