"""Methods with a teacher or with wrong labels, each against a plain loop."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import log_softmax
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.randomness.keyed import generator

from plain_loop import assert_plain, divergence
from stack_cases import CLASSES, SEEDS, part, rows, same, trained, unlearned


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_scrub(stack, kind, ranked):
    stack = stack.copy()
    stack.memorised = np.random.default_rng(5).normal(size=len(stack.x))

    def loop(plain):
        forget, retain = plain.read("forget", "unlearn/0.0", 5, 2), plain.read("retain", "unlearn/1.0", 8, 3)
        if ranked:
            order = np.array(sorted(plain.forget.index[plain.m], key=lambda sample: -stack.memorised[sample]))
            forget = [np.split(order, range(5, len(order), 5))] * 2
        for epoch in range(3):
            for index in forget[epoch] if epoch < 2 else []:
                plain.step(-divergence(plain.taught(index), plain.logits(index), 2.0))
            for index in retain[epoch]:
                distance = divergence(plain.taught(index), plain.logits(index), 2.0)
                plain.step(0.7 * plain.loss(index) + 0.4 * distance)

    options = {"optimiser": kind, "lr": 0.01, "weight_decay": 0.01, "batch_size": 8, "forget_batch_size": 5,
               "epochs": 3, "gamma": 0.7, "alpha": 0.4, "T": 2.0, "msteps": 2,
               "forget_order": "memorisation" if ranked else "random"}  # fmt: skip
    assert_plain(stack, "scrub", loop, options, {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind])


def test_scrub_cannot_rank_what_no_selection_chose(stack):
    with pytest.raises(ValueError, match="forget_order: memorisation needs targets chosen by memorisation"):
        unlearned(stack, "scrub", forget_order="memorisation")


@pytest.mark.parametrize(("share", "count"), [(0.3, 9), (0.001, 1)])
def test_bad_teacher(stack, share, count):
    untrained = stack.copy()
    untrained.reset("bad_teacher")
    sample = rows(stack.seeds)[1].sample(count, stack.seeds, "bad_teacher")

    def loop(plain):
        bad, forget = untrained.extract(plain.m), set(plain.forget.index[plain.m])
        for index in plain.all(plain.forget + sample, "unlearn/0.0", 8, 2):
            taught = [plain.taught([i], bad if i in forget else None) for i in index]
            plain.step(divergence(torch.cat(taught), plain.logits(index), 3.0))

    options = {"lr": 0.05, "optimiser": "sgd", "batch_size": 8, "epochs": 2, "retain_share": share, "T": 3.0}
    assert_plain(stack, "bad_teacher", loop, options)


# ---------------------------------------------------------------- wrong labels


def wrong_labels(plain, index, epoch, relabel):
    """Shift the label by what the model's generator draws for the sample in this epoch."""
    shift = generator(plain.seed, "random labels", epoch).integers(relabel == "other", CLASSES, len(plain.x))
    return (plain.y[index] + torch.from_numpy(shift[index])) % CLASSES


@pytest.mark.parametrize("relabel", ["any", "other"])
@pytest.mark.parametrize("redraw", [True, False])
def test_random_label(stack, relabel, redraw):
    def loop(plain):
        forget, retain = plain.read("forget", "unlearn/0.0", 8, 3), plain.read("retain", "unlearn/1.0", 8, 3)
        for epoch in range(3):
            for index in forget[epoch]:
                labels = wrong_labels(plain, index, epoch if redraw else 0, relabel)
                plain.step(nn.functional.cross_entropy(plain.logits(index), labels))
            for index in retain[epoch]:
                plain.step(plain.loss(index))

    options = {"lr": 0.05, "momentum": 0.9, "batch_size": 8, "epochs": 3, "relabel": relabel, "redraw": redraw}
    assert_plain(stack, "random_label", loop, options)


def likeliest_other(plain, index):
    """The label that the original finds likeliest of all but the sample's own."""
    return [
        max((value, label) for label, value in enumerate(z.tolist()) if label != own)[1]
        for z, own in zip(plain.taught(index), plain.y[index].tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "other_labels"),
    [("idk_dpo", lambda plain, index: wrong_labels(plain, index, 0, "other")), ("altpo", likeliest_other)],
)
def test_another_label_is_preferred(stack, name, other_labels):
    """−(2/β)·log σ(β·(Δ(other label) − Δ(own label))), Δ = log p − log p of the original. The other label is drawn
    once, so that the second epoch reads those of the first, or it is the likeliest."""

    def loop(plain):
        keeping = plain.all("retain", "unlearn/0.1", 8, 1)
        for lose, keep in zip(plain.all("forget", "unlearn/0.0", 8, 2), keeping, strict=True):
            rise = log_softmax(plain.logits(lose), -1) - log_softmax(plain.taught(lose), -1)
            samples = range(len(lose))
            gains = rise[samples, other_labels(plain, lose)] - rise[samples, plain.y[lose]]
            preference = -2 / 0.7 * torch.log(torch.sigmoid(0.7 * gains))
            plain.step(preference.mean() + 0.5 * plain.loss(keep))

    options = {"optimiser": "sgd", "lr": 0.05, "weight_decay": 0.0, "batch_size": 8, "epochs": 2, "beta": 0.7,
               "alpha": 0.5}  # fmt: skip
    assert_plain(stack, name, loop, options)


@pytest.mark.parametrize(("relabel", "expected"), [("any", [0.25] * 4), ("other", [0, 1 / 3, 1 / 3, 1 / 3])])
def test_random_labels_are_uniform_over_what_is_allowed(stack, relabel, expected):
    """The label behind a loss is found by giving each class a loss of its own."""
    loss = RandomLabels(stack, relabel)
    counts = np.zeros(CLASSES)
    for epoch in range(50):
        batch = stack.read([0, 1], torch.arange(60).expand(2, 60))
        batch.epoch, batch.logits = epoch, -torch.arange(1.0, 5).expand(2, 60, 4).double()
        labels = (loss(batch) - torch.arange(1.0, 5).neg().logsumexp(0)).round().long() - 1
        counts += np.bincount(((labels - batch.labels) % CLASSES).flatten(), minlength=CLASSES)
    p = np.array(expected)
    assert (np.abs(counts - counts.sum() * p) <= 4 * np.sqrt(counts.sum() * p * (1 - p))).all()


def test_wrong_labels_of_models_with_labels_of_their_own():
    stack = trained(seeds=[11, 11])
    stack.labels = torch.stack([stack.labels, (stack.labels + 1) % CLASSES])
    twin = part(stack, [0, 1])
    twin.labels = stack.labels[1]
    after, single = unlearned(stack, "random_label", relabel="other"), unlearned(twin, "random_label", relabel="other")
    assert same(after, single, slots_a=[1], slots_b=[1])


# ---------------------------------------------------------------- SalUn


SALUN = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "batch_size": 8, "epochs": 3}


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.93])
def test_salun_moves_the_salient_weights_and_no_other_by_one_bit(keep):
    """The salient weights: the largest gradients of all layers together, by a plain backward pass."""
    stack = trained(seeds=SEEDS[:3])
    after = unlearned(stack, "salun", **SALUN, keep=keep)
    for m, index in enumerate(rows(stack.seeds)[0].index):
        model = stack.extract(m)
        nn.functional.cross_entropy(model(stack.x[index]), stack.labels[index]).backward()
        sizes = torch.cat([v.grad.abs().flatten() for v in model.parameters()])
        count = round(keep * len(sizes))
        least = sizes.sort(descending=True).values[count - 1]
        moved = torch.cat([(after.parameters[k][m] != stack.parameters[k][m]).flatten() for k in stack.parameters])
        # Weights without any gradient are equal among themselves: which of them may move is arbitrary.
        assert moved[sizes > least * 1.0001 + 1e-12].all()
        assert not moved[sizes < least * 0.9999 - 1e-12].any()
        assert moved.sum() <= count


def test_salun_with_all_weights_is_random_label():
    stack = trained(seeds=SEEDS[:3])
    assert same(unlearned(stack, "salun", **SALUN, keep=1), unlearned(stack, "random_label", **SALUN))
    assert same(unlearned(stack, "salun", **SALUN, keep=0), stack)
