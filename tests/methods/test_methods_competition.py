"""The two winners of the competition, each against a plain loop."""

import pytest
import torch
from torch import nn
from torch.nn.functional import log_softmax
from unlearning_audit.methods import competition_second

from plain_loop import assert_plain
from stack_cases import SEEDS, conv, fresh, mlp, rows, trained, unlearned


def test_first(stack):
    """31 retained rows in batches of 12 for 3 batches of 5 forgotten ones per round: the readers run in step."""

    def loop(plain):
        flat, away, repair = (
            torch.optim.SGD(plain.model.parameters(), lr=lr, momentum=0.9, weight_decay=decay)
            for lr, decay in ((0.05, 0.0), (0.02, 0.0), (0.03, 0.01))
        )
        for index in plain.all("forget", "unlearn/flatten/0.0", 5, 1):
            uniform = torch.full((len(index), 4), 0.25, dtype=torch.float64)
            loss = nn.functional.kl_div(log_softmax(plain.logits(index), -1), uniform, reduction="batchmean")
            plain.step(loss, flat)
        lost, beside = plain.read("forget", "unlearn/0.0", 5, 3), plain.read("retain", "unlearn/0.1", 12, 3)
        repair_batches = plain.read("retain", "unlearn/1.0", 8, 3)
        for epoch, rate in enumerate((1, 0.75, 0.25)):  # (1 + cos(π e/3))/2
            away.param_groups[0]["lr"] = 0.02 * rate
            for lose, keep in zip(lost[epoch], beside[epoch], strict=True):
                similarity = plain.logits(lose) @ plain.logits(keep).detach().T / 1.3
                plain.step(-log_softmax(similarity, -1).mean(), away)
            for index in repair_batches[epoch]:
                plain.step(plain.loss(index), repair)

    options = {
        "epochs": 3, "temperature": 1.3, "flatten": {"lr": 0.05, "batch_size": 5},
        "contrast": {"lr": 0.02, "batch_size": 5}, "repair": {"lr": 0.03, "batch_size": 8}, "contrast_batch_size": 12,
    }  # fmt: skip
    assert_plain(stack, "competition_first", loop, options)


# ---------------------------------------------------------------- second place


def coldest_by_loop(stack, m, share):
    """Weights with the smallest |∂(CE(subset of retain) − CE(forget))|, layer by layer, by a backward pass."""
    forget, retain = rows(stack.seeds)
    subset = retain.sample(len(forget), stack.seeds, "competition_second")
    model = stack.extract(m).eval()
    for drawn, sign in ((subset, 1), (forget, -1)):
        index = torch.from_numpy(drawn.index[m])
        batch = stack.read([m], index.unsqueeze(0))
        (sign * nn.functional.cross_entropy(model(batch.x[0]), batch.labels[0])).backward()
    cold = {}
    for name, value in model.named_parameters():
        size = value.grad.abs().flatten()
        cold[name] = (size <= size.sort().values[round(share * len(size)) - 1]).view_as(value)
    return cold


@pytest.mark.parametrize(("build", "expected"), [(mlp, ["0.weight", "2.weight"]), (conv, ["0.weight"])])
def test_second_restarts_the_coldest_weights(build, expected):
    stack = trained(build, SEEDS[:2], dtype=torch.float64)
    assert competition_second.resettable_weights(stack) == expected
    restarted = unlearned(stack, "competition_second", epochs=0, restart=0.4)
    noise = stack.noise("competition_second")
    for m in range(2):
        cold = coldest_by_loop(stack, m, 0.4)
        for name, value in restarted.parameters.items():
            before, after = stack.parameters[name][m], value[m]
            if name not in expected:
                assert torch.equal(after, before)
                continue
            changed = after != before
            # Dead units have no gradient at all: among equal weights any may be chosen.
            assert (changed <= cold[name]).all()
            assert changed.sum() == round(0.4 * changed.numel())
            fan_out = before.shape[0] * before[0, 0].numel()
            assert (after - noise[name][m] * (2 / fan_out) ** 0.5)[changed].abs().max() < 1e-12


def test_second_is_refused_where_no_weight_could_start_over():
    model = nn.Sequential(nn.Linear(6, 4))
    model.head = "0"
    stack = fresh(lambda: model, SEEDS[:2])
    with pytest.raises(ValueError, match=r"no trained linear layer except the last.* leave out competition_s"):
        unlearned(stack, "competition_second")


def test_second_by_a_plain_loop(stack):
    restarted = unlearned(stack, "competition_second", epochs=0, restart=0.4)

    def loop(plain):
        plain.model = restarted.extract(plain.m)
        plain.optimiser = torch.optim.SGD(plain.model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        new = {k: v[plain.m] != stack.parameters[k][plain.m] for k, v in restarted.parameters.items()}
        for rate, epoch in zip((0.5, 1, 2 / 3, 1 / 3), plain.read("retain", "unlearn/0.0", 8, 4), strict=True):
            plain.optimiser.param_groups[0]["lr"] = 0.1 * rate
            for index in epoch:
                plain.optimiser.zero_grad()
                plain.loss(index).backward()
                for name in ("0.weight", "2.weight"):
                    plain.model.get_parameter(name).grad[~new[name]] *= 0.2
                plain.optimiser.step()

    options = {"lr": 0.1, "weight_decay": 0.01, "batch_size": 8, "epochs": 4, "restart": 0.4, "kept_rate": 0.2}
    assert_plain(stack, "competition_second", loop, options)


@pytest.mark.parametrize(("epochs", "rates"), [(1, [1]), (2, [1, 1 / 2]), (5, [1 / 3, 2 / 3, 1, 2 / 3, 1 / 3])])
def test_the_learning_rate_of_the_second_is_a_triangle(epochs, rates):
    options = competition_second.Options(lr=2.0)
    assert [options.rate(e, epochs) for e in range(epochs)] == pytest.approx([2 * r for r in rates], abs=1e-15)
