"""A second implementation of the losses for language models: sample by sample, token by token."""

import torch
from torch.func import functional_call

from text_cases import rows

MODEL = 1


def scored(x):
    """Each row with its predictions' places that count: (row, list of t)."""
    return [(row, [t for t in range(1, len(row)) if row[t] >= 0]) for row in x.tolist()]


class Written:
    """A second implementation of the losses: one sample after the other, one token after the other."""

    def __init__(self, stack, original=None):
        """``original``: the stack whose predictions are the reference, by default ``stack`` itself."""
        self.model = stack.extract(MODEL)
        self.leaves = dict(self.model.named_parameters())
        self.reference = dict((original or stack).extract(MODEL).named_parameters())
        forget, retain = rows(stack.seeds)
        self.forget, self.retain = stack.x[forget.index[MODEL]], stack.x[retain.index[MODEL]]

    def predictions(self, weights, x):
        """Of each sample the log-probabilities of its scored tokens: [(logp [t, vocabulary], own tokens)]."""
        z = functional_call(self.model, weights, (x,), {"reading": "tokens"})
        return [
            (z[i, [t - 1 for t in places]], torch.tensor([row[t] for t in places]))
            for i, (row, places) in enumerate(scored(x))
        ]

    def rise(self, row):
        """How much log p of a sample has risen above the reference's."""
        (now, then) = (self.predictions(weights, row[None])[0] for weights in (self.leaves, self.reference))
        return nll(*then).sum().detach() - nll(*now).sum()

    def per_sample(self, loss, x):
        """Mean over samples of ``loss(z of the model, z of the original, own tokens)``."""
        pairs = zip(self.predictions(self.leaves, x), self.predictions(self.reference, x), strict=True)
        return sum(loss(z, z0.detach(), tokens) for (z, tokens), (z0, _) in pairs) / len(x)

    def gradient(self, loss):
        gradients = torch.autograd.grad(loss, list(self.leaves.values()), allow_unused=True, materialize_grads=True)
        return dict(zip(self.leaves, gradients, strict=True))


def assert_step(before, after, gradient, rate=1.0):
    """One step has moved the weights of `MODEL` by the ``rate`` against the ``gradient``, which is not nothing."""
    assert max(float(g.abs().max()) for g in gradient.values()) > 1e-4
    moved = {name: before.parameters[name][MODEL] - value[MODEL] for name, value in after.parameters.items()}
    torch.testing.assert_close(moved, {name: rate * g for name, g in gradient.items()}, rtol=1e-6, atol=1e-9)


def nll(z, tokens):
    return -z.log_softmax(-1)[range(len(tokens)), tokens]


def logsigmoid(v):
    return -torch.log1p(torch.exp(-v))


def kl(z, z0, tokens):
    p = z0.softmax(-1)
    return (p * (p.log() - z.log_softmax(-1))).sum(-1).mean()


def mean_nll(z, z0, tokens):
    return nll(z, tokens).mean()


def npo_sum(z, z0, tokens):
    return -2 / 0.3 * logsigmoid(0.3 * (nll(z, tokens).sum() - nll(z0, tokens).sum()))


def npo_mean(z, z0, tokens):
    return -2 / 0.3 * logsigmoid(0.3 * (nll(z, tokens).mean() - nll(z0, tokens).mean()))


def simnpo(z, z0, tokens):
    return -2 / 0.4 * logsigmoid(0.4 * (nll(z, tokens).mean() - 0.7))


def undial(z, z0, tokens):
    lowered = z0.clone()
    for t, token in enumerate(tokens.tolist()):
        lowered[t, token] -= 2.0
    return -(lowered.softmax(-1) * z.log_softmax(-1)).sum(-1).mean()


def wga(z, z0, tokens):
    p = torch.exp(-nll(z, tokens)).detach()
    return -(p**0.5 * nll(z, tokens)).mean()


def satimp(z, z0, tokens):
    p = torch.exp(-nll(z, tokens)).detach()
    return -(p**2 * (1 - p) ** 3 * nll(z, tokens)).mean()


def flat(z, z0, tokens):
    return sum((row[int(row.argmax())] - row.sum() / len(row)) ** 2 for row in z) / len(z)


def ce_u(z, z0, tokens):
    """Of each token in turn: what the model says of all others, made to sum to one."""
    loss = 0.0
    for row, token in zip(z, tokens.tolist(), strict=True):
        rest = [v for v in range(len(row)) if v != token]
        p = row.softmax(-1).detach()
        loss = loss - sum(p[v] / p[rest].sum() * row.log_softmax(-1)[v] for v in rest)
    return loss / len(tokens)
