"""Methods for language models: the update of one full-batch step is the gradient of the loss as published."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from text_cases import bank, rows, unlearned
from unlearning.methods import _tokens

MODEL = 1


@pytest.fixture(scope="module")
def original():
    return bank()


def scored(x):
    """Each row with its predictions' places that count: (row, list of t)."""
    return [(row, [t for t in range(1, len(row)) if row[t] >= 0]) for row in x.tolist()]


class Written:
    """A second implementation of the losses: one sample after the other, one token after the other."""

    def __init__(self, made):
        self.model = made.extract(MODEL)
        self.leaves = {k: v.clone().requires_grad_() for k, v in self.model.named_parameters()}
        self.reference = {k: v.clone() for k, v in self.model.named_parameters()}
        forget, retain = rows(made.seeds)
        self.forget, self.retain = made.x[forget.index[MODEL]], made.x[retain.index[MODEL]]

    def predictions(self, weights, x):
        """Of each sample the log-probabilities of its scored tokens: [(logp [t, vocabulary], own tokens)]."""
        z = functional_call(self.model, weights, (x,), {"reading": "tokens"})
        found = []
        for i, (row, places) in enumerate(scored(x)):
            found.append((z[i, [t - 1 for t in places]], torch.tensor([row[t] for t in places])))
        return found

    def per_sample(self, one, x):
        """Mean over samples of ``one(z of the model, z of the original, own tokens)``."""
        pairs = zip(self.predictions(self.leaves, x), self.predictions(self.reference, x), strict=True)
        return sum(one(z, z0.detach(), own) for (z, own), (z0, _) in pairs) / len(x)

    def gradient(self, loss):
        found = torch.autograd.grad(loss, list(self.leaves.values()), allow_unused=True, materialize_grads=True)
        return dict(zip(self.leaves, found, strict=True))


def nll(z, own):
    return -z.log_softmax(-1)[range(len(own)), own]


def logsigmoid(v):
    return -torch.log1p(torch.exp(-v))


def kl(z, z0, own):
    p = z0.softmax(-1)
    return (p * (p.log() - z.log_softmax(-1))).sum(-1).mean()


def mean_nll(z, z0, own):
    return nll(z, own).mean()


def npo_sum(z, z0, own):
    return -2 / 0.3 * logsigmoid(0.3 * (nll(z, own).sum() - nll(z0, own).sum()))


def npo_mean(z, z0, own):
    return -2 / 0.3 * logsigmoid(0.3 * (nll(z, own).mean() - nll(z0, own).mean()))


def simnpo(z, z0, own):
    return -2 / 0.4 * logsigmoid(0.4 * (nll(z, own).mean() - 0.7))


def undial(z, z0, own):
    lowered = z0.clone()
    for t, token in enumerate(own.tolist()):
        lowered[t, token] -= 2.0
    return -(lowered.softmax(-1) * z.log_softmax(-1)).sum(-1).mean()


def wga(z, z0, own):
    p = torch.exp(-nll(z, own)).detach()
    return -(p**0.5 * nll(z, own)).mean()


def satimp(z, z0, own):
    p = torch.exp(-nll(z, own)).detach()
    return -(p**2 * (1 - p) ** 3 * nll(z, own)).mean()


LOSSES = {
    "graddiff": ({"gamma": 0.5, "alpha": 2.0}, [(-0.5, mean_nll, "forget"), (2.0, mean_nll, "retain")]),
    "graddiff-kl": ({"gamma": 0.5, "retain_loss": "kl"}, [(-0.5, mean_nll, "forget"), (1.0, kl, "retain")]),
    "npo": ({"beta": 0.3}, [(1.0, npo_mean, "forget")]),
    "npo-sum": (
        {"beta": 0.3, "over": "sum", "retain_weight": 0.7}, [(1.0, npo_sum, "forget"), (0.7, mean_nll, "retain")]
    ),
    "npo-kl": (
        {"beta": 0.3, "retain_weight": 0.7, "retain_loss": "kl"}, [(1.0, npo_mean, "forget"), (0.7, kl, "retain")]
    ),
    "simnpo": (
        {"beta": 0.4, "delta": 0.7, "gamma": 0.2, "alpha": 0.3}, [(0.2, simnpo, "forget"), (0.3, mean_nll, "retain")]
    ),
    "undial": ({"beta": 2.0, "alpha": 0.3}, [(1.0, undial, "forget"), (0.3, mean_nll, "retain")]),
    "wga": ({"beta": 0.5, "gamma": 2.0}, [(2.0, wga, "forget"), (1.0, mean_nll, "retain")]),
    "satimp": ({"beta1": 2.0, "beta2": 3.0}, [(0.1, satimp, "forget"), (1.0, mean_nll, "retain")]),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES)
def test_a_step_is_the_gradient_of_the_published_loss(case, original):
    options, terms = LOSSES[case]
    after = unlearned(original, case.split("-")[0], optimiser="sgd", weight_decay=0.0, **options)
    written = Written(original)
    gradient = written.gradient(sum(w * written.per_sample(one, getattr(written, which)) for w, one, which in terms))
    assert max(float(g.abs().max()) for g in gradient.values()) > 1e-4
    for name, value in after.parameters.items():
        moved = original.parameters[name][MODEL] - value[MODEL]
        torch.testing.assert_close(moved, gradient[name], rtol=1e-7, atol=1e-10)


def test_the_sum_is_a_mean_at_a_larger_beta_for_passages_of_one_length(original):
    same = original.copy()
    same.x = torch.where(same.x < 0, ~same.x, same.x)  # eight scored tokens in each
    plain = {"optimiser": "sgd", "epochs": 1}
    a = unlearned(same, "npo", beta=0.1, over="sum", **plain, lr=1.0)
    b = unlearned(same, "npo", beta=0.8, **plain, lr=8.0)
    for name, value in a.parameters.items():
        torch.testing.assert_close(value, b.parameters[name], rtol=0, atol=1e-9)


def test_graddiff_is_neggrad_plus_at_one_half_twice_as_fast(original):
    a = unlearned(original, "graddiff", optimiser="sgd", weight_decay=0.0)
    b = unlearned(original, "neggrad_plus", lr=2.0, momentum=0.0, beta=0.5, pass_over="forget")
    for name, value in a.parameters.items():
        torch.testing.assert_close(value, b.parameters[name], rtol=0, atol=1e-12)


def test_wga_and_satimp_without_weights_are_graddiff(original):
    plain = {"optimiser": "sgd", "weight_decay": 0.0}
    a = unlearned(original, "graddiff", **plain)
    for name, options in (("wga", {"beta": 0.0}), ("satimp", {"beta1": 0.0, "beta2": 0.0, "gamma": 1.0})):
        b = unlearned(original, name, **plain, **options)
        for k, value in a.parameters.items():
            torch.testing.assert_close(value, b.parameters[k], rtol=0, atol=1e-12)


def test_undial_at_zero_does_not_move(original):
    after = unlearned(original, "undial", optimiser="sgd", weight_decay=0.0, beta=0.0)
    for name, value in after.parameters.items():
        torch.testing.assert_close(value, original.parameters[name], rtol=0, atol=1e-12)


def test_a_task_vector_steps_back_by_what_more_training_learns(original):
    forward = original.copy()
    from unlearning.bank.optim import Optimiser
    from unlearning.bank.streams import Stream

    forward.fit(Stream(rows()[0]), optimiser=Optimiser(lr=0.1, batch_size=4), epochs=2, purpose="unlearn")
    back = unlearned(original, "task_vector", lr=0.1, batch_size=4, epochs=2, scale=0.5)
    for name, value in back.parameters.items():
        expected = original.parameters[name] - 0.5 * (forward.parameters[name] - original.parameters[name])
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)
    assert np.all([(back.logits()[m, :6, 0] < original.logits()[m, :6, 0]).mean() > 0.5 for m in range(3)])


def test_one_label_is_one_token(original):
    from bank_cases import fresh

    bank_of_labels = fresh(seeds=[1, 2])
    assert _tokens.reading(bank_of_labels) is None
    assert _tokens.reading(original) == "tokens"
    assert _tokens.count(bank_of_labels, None) == 1
