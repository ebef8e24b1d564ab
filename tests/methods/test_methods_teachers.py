"""Methods with a teacher or with wrong labels, each against a plain loop."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import log_softmax
from unlearning_audit.methods._labels import RandomLabels
from unlearning_audit.randomness.keyed import generator

from bank_cases import CLASSES, SEEDS, part, rows, same, trained, unlearned
from plain_loop import Plain, assert_plain

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def bank():
    return trained(seeds=SEEDS[:2], dtype=torch.float64)


def divergence(teacher, student, temperature):
    """T²·KL(teacher ‖ student), mean over samples, by its definition."""
    p, q = log_softmax(teacher / temperature, -1), log_softmax(student / temperature, -1)
    return temperature**2 * (p.exp() * (p - q)).sum(1).mean()


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_scrub(bank, kind, ranked):
    bank = bank.copy()
    bank.memorised = np.random.default_rng(5).normal(size=len(bank.x))

    def loop(bank, m):
        optimiser = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind]
        plain, teacher = Plain(bank, m, optimiser, lr=0.01, weight_decay=0.01), bank.extract(m)
        forget, retain = plain.read("forget", "unlearn/0.0", 5, 2), plain.read("retain", "unlearn/1.0", 8, 3)
        if ranked:
            order = sorted(plain.forget.index[m].tolist(), key=lambda sample: -bank.memorised[sample])
            forget = [[np.array(order[start : start + 5]) for start in range(0, len(order), 5)]] * 2
        for epoch in range(3):
            for index in forget[epoch] if epoch < 2 else []:
                answer = plain.logits(index, teacher).detach()
                plain.step(-divergence(answer, plain.logits(index), 2.0))
            for index in retain[epoch]:
                answer = plain.logits(index, teacher).detach()
                plain.step(0.7 * plain.loss(index) + 0.4 * divergence(answer, plain.logits(index), 2.0))
        return plain

    options = {"lr": 0.01, "weight_decay": 0.01, "batch_size": 8, "forget_batch_size": 5, "epochs": 3}
    options |= {"forget_order": "memorisation"} if ranked else {}
    assert_plain(bank, "scrub", loop, **options, optimiser=kind, gamma=0.7, alpha=0.4, T=2.0, msteps=2)


def test_scrub_cannot_rank_what_no_selection_chose(bank):
    with pytest.raises(
        ValueError, match="forget_order: memorisation needs targets chosen by memorisation: a target_set"
    ):
        unlearned(bank, "scrub", forget_order="memorisation")


@pytest.mark.parametrize(("share", "count"), [(0.3, 9), (0.001, 1)])
def test_bad_teacher(bank, share, count):
    untrained = bank.copy()
    untrained.reset("bad_teacher")
    sample = rows(bank.seeds)[1].sample(count, bank.seeds, "bad_teacher")

    def loop(bank, m):
        plain = Plain(bank, m, lr=0.05)
        good, bad = bank.extract(m), untrained.extract(m)
        forget = set(plain.forget.index[m])
        for epoch in plain.read(plain.forget + sample, "unlearn/0.0", 8, 2):
            for index in epoch:
                answers = [plain.logits([i], bad if i in forget else good).detach() for i in index]
                plain.step(divergence(torch.cat(answers), plain.logits(index), 3.0))
        return plain

    options = {"lr": 0.05, "optimiser": "sgd", "batch_size": 8, "epochs": 2, "retain_share": share, "T": 3.0}
    assert_plain(bank, "bad_teacher", loop, **options)


def test_bad_teacher_ends_where_its_teachers_are(bank):
    untrained = bank.copy()
    untrained.reset("bad_teacher")
    after = unlearned(bank, "bad_teacher", epochs=300, lr=0.01, retain_share=1)
    for m in range(2):
        for side, teacher in zip(rows(bank.seeds), (untrained, bank), strict=True):
            gaps = [
                np.abs(nn.functional.softmax(torch.from_numpy(b.logits(side.index[m])[m]), -1).numpy() - goal).mean()
                for goal in [nn.functional.softmax(torch.from_numpy(teacher.logits(side.index[m])[m]), -1).numpy()]
                for b in (after, untrained if teacher is bank else bank)
            ]
            assert gaps[0] < gaps[1] / 3


# ---------------------------------------------------------------- wrong labels


def wrong_labels(plain, index, epoch, relabel):
    """Shift the label by what the model's generator draws for the sample in this epoch."""
    shift = generator(plain.seed, "random labels", epoch).integers(relabel == "other", CLASSES, len(plain.x))
    return (plain.y[index] + torch.from_numpy(shift[index])) % CLASSES


@pytest.mark.parametrize("relabel", ["any", "other"])
@pytest.mark.parametrize("redraw", [True, False])
def test_random_label(bank, relabel, redraw):
    def loop(bank, m):
        plain = Plain(bank, m, lr=0.05, momentum=0.9)
        forget, retain = plain.read("forget", "unlearn/0.0", 8, 3), plain.read("retain", "unlearn/1.0", 8, 3)
        for epoch in range(3):
            for index in forget[epoch]:
                labels = wrong_labels(plain, index, epoch if redraw else 0, relabel)
                plain.step(nn.functional.cross_entropy(plain.logits(index), labels))
            for index in retain[epoch]:
                plain.step(plain.loss(index))
        return plain

    options = {"lr": 0.05, "momentum": 0.9, "batch_size": 8, "epochs": 3}
    assert_plain(bank, "random_label", loop, **options, relabel=relabel, redraw=redraw)


def test_idk_dpo_on_labels_prefers_another_label_drawn_once(bank):
    """−(2/β)·log σ(β·(Δ(other label) − Δ(own label))), Δ = log p − log p of the original; the second epoch reads the
    same other labels as the first."""

    def loop(bank, m):
        plain, original = Plain(bank, m, lr=0.05), bank.extract(m)
        losing = [index for epoch in plain.read("forget", "unlearn/0.0", 8, 2) for index in epoch]
        keeping = [index for epoch in plain.read("retain", "unlearn/0.1", 8, 1) for index in epoch]
        for lose, keep in zip(losing, keeping, strict=True):
            gains = []
            for labels in (wrong_labels(plain, lose, 0, "other"), plain.y[lose]):
                now, then = (
                    log_softmax(plain.logits(lose, model), -1)[range(len(lose)), labels]
                    for model in (plain.model, original)
                )
                gains.append(now - then.detach())
            preference = -2 / 0.7 * torch.log(torch.sigmoid(0.7 * (gains[0] - gains[1])))
            plain.step(preference.mean() + 0.5 * plain.loss(keep))
        return plain

    assert_plain(bank, "idk_dpo", loop, optimiser="sgd", lr=0.05, weight_decay=0.0, batch_size=8, epochs=2, beta=0.7,
                 alpha=0.5)  # fmt: skip


@pytest.mark.parametrize(("relabel", "expected"), [("any", [0.25] * 4), ("other", [0, 1 / 3, 1 / 3, 1 / 3])])
def test_random_labels_are_uniform_over_what_is_allowed(bank, relabel, expected):
    """The label behind a loss is found by giving each class a loss of its own."""
    loss = RandomLabels(bank, relabel)
    counts = np.zeros(CLASSES)
    for epoch in range(50):
        batch = bank.read([0, 1], torch.arange(60).expand(2, 60))
        batch.epoch, batch.logits = epoch, -torch.arange(1.0, 5).expand(2, 60, 4).double()
        labels = (loss(batch) - torch.arange(1.0, 5).neg().logsumexp(0)).round().long() - 1
        counts += np.bincount(((labels - batch.labels) % CLASSES).flatten(), minlength=CLASSES)
    n = counts.sum()
    spread = np.sqrt(n * np.array(expected) * (1 - np.array(expected)))
    assert (np.abs(counts - n * np.array(expected)) <= 4 * spread).all()


def test_wrong_labels_of_models_with_labels_of_their_own():
    bank = trained(seeds=[11, 11])
    bank.labels = torch.stack([bank.labels, (bank.labels + 1) % CLASSES])
    twin = part(bank, [0, 1])
    twin.labels = bank.labels[1]
    after, single = unlearned(bank, "random_label", relabel="other"), unlearned(twin, "random_label", relabel="other")
    assert same(after, single, slots_a=[1], slots_b=[1])


# ---------------------------------------------------------------- SalUn


SALUN = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "batch_size": 8, "epochs": 3}


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.93])
def test_salun_moves_the_salient_weights_and_no_other_by_one_bit(keep):
    """The salient weights: the largest gradients of all layers together, by a plain backward pass."""
    bank = trained(seeds=SEEDS[:3])
    forget, _ = rows(bank.seeds)
    after = unlearned(bank, "salun", **SALUN, keep=keep)
    for m in range(3):
        model = bank.extract(m)
        index = forget.index[m]
        nn.functional.cross_entropy(model(bank.x[index]), bank.labels[index]).backward()
        sizes = torch.cat([v.grad.abs().flatten() for v in model.parameters()])
        count = round(keep * len(sizes))
        least = sizes.sort(descending=True).values[count - 1]
        moved = torch.cat([(after.parameters[k][m] != bank.parameters[k][m]).flatten() for k in bank.parameters])
        # Weights without any gradient are equal among themselves: which of them may move is arbitrary.
        assert moved[sizes > least * 1.0001 + 1e-12].all()
        assert not moved[sizes < least * 0.9999 - 1e-12].any()
        assert moved.sum() <= count


def test_salun_with_all_weights_is_random_label():
    bank = trained(seeds=SEEDS[:3])
    assert same(unlearned(bank, "salun", **SALUN, keep=1), unlearned(bank, "random_label", **SALUN))
    assert same(unlearned(bank, "salun", **SALUN, keep=0), bank)
