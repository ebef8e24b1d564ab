"""A training that was killed goes on where its last checkpoint was written, and leaves what it would have left."""

import logging

import numpy as np
import pytest
import torch
from unlearning_audit.store.files import ArtifactError
from unlearning_audit.training import checkpoints, fitting, lanes
from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.recipe import Privacy, Recipe

from bank_cases import RECIPE, SEEDS, conv, fresh, mlp, rows
from slow_cases import slow

EPOCHS = 5
#: Steps of a model in an epoch: 31 rows in batches of 8.
STEPS = 4


class KilledError(Exception):
    """Stands for the signal that ends a job."""


class Killing:
    """A heartbeat that ends the training of models at one step, counted over all epochs."""

    def __init__(self, models, step=None):
        self.models, self.step, self.steps = models, step, []

    def beat(self, group, epoch, step, steps):
        self.steps.append((tuple(group), epoch))
        if self.step is not None and group == self.models and epoch * steps + step == self.step:
            raise KilledError


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Trains a bank by a recipe with checkpoints after every epoch, and says what its steps were; ``kill`` (models,
    step) ends it there. On the lanes of cards, if ``laned``."""

    def train(bank, recipe, kill=([], None), laned=False, interval=0.0, folder=tmp_path / "node"):
        heartbeat = Killing(*kill)
        monkeypatch.setattr(fitting, "Heartbeat", lambda *_: heartbeat)
        if laned:
            monkeypatch.setattr(fitting.Fit, "run", lanes.run)
        bank.recipe, bank.checkpoints = recipe, Checkpoints(folder, range(len(bank)), interval)
        if kill[1] is None:
            bank.train(rows(bank.seeds)[1])
        else:
            with pytest.raises(KilledError):
                bank.train(rows(bank.seeds)[1])
        monkeypatch.undo()
        return heartbeat.steps

    return train


def bits(first, second) -> bool:
    """Whether two banks are the same bit for bit."""
    pairs = (
        (a[k], b[k]) for a, b in ((first.parameters, second.parameters), (first.buffers, second.buffers)) for k in a
    )
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("laned", [False, True])
@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw", "rmsprop"])
@pytest.mark.parametrize(
    ("build", "backend", "momentum"), [(mlp, "stacked", 0.9), (conv, "serial", 0.9), (conv, "serial", 0.0)]
)
def test_a_killed_training_ends_as_if_it_had_not_been_killed(
    trained, tmp_path, build, backend, momentum, optimiser, laned
):
    augment = "crop_flip" if build is conv else "none"
    changes = {"optimiser": optimiser, "lr": 0.01, "momentum": momentum, "epochs": EPOCHS, "schedule": "cosine"}
    recipe = RECIPE.model_copy(update=changes | {"augment": augment})
    plain, killed = (fresh(build, SEEDS[:3], backend=backend) for _ in range(2))
    trained(plain, recipe, folder=tmp_path / "other")
    groups = killed.engine.groups(3)
    trained(killed, recipe, (groups[-1], 3 * STEPS + 1), laned)
    again = fresh(build, SEEDS[:3], backend=backend)
    steps = trained(again, recipe, laned=laned)
    assert bits(plain, again)
    assert not bits(plain, fresh(build, SEEDS[:3], backend=backend))
    resumed = [epoch for group, epoch in steps if list(group) == groups[-1]]
    assert resumed == [3] * STEPS + [4] * STEPS  # three epochs were whole
    assert laned or {group for group, _ in steps} == {tuple(groups[-1])}  # the others were done


def files(folder):
    """Names of the checkpoints and seals in a folder."""
    return sorted(path.name for path in folder.iterdir())


def cut(path):
    path.write_bytes(path.read_bytes()[:-8])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))


def unseal(path):
    path.with_name(f".{path.name}.blake2b").unlink()


def exchange(path):
    """The checkpoint of another model under this name, with its seal."""
    other = path.with_name("checkpoint-1.safetensors")
    other.replace(path)
    other.with_name(f".{other.name}.blake2b").replace(path.with_name(f".{path.name}.blake2b"))


@pytest.mark.parametrize("harm", [cut, flip, unseal, exchange])
def test_what_is_not_whole_or_not_of_these_models_is_left_alone(trained, tmp_path, harm):
    recipe = RECIPE.model_copy(update={"epochs": EPOCHS})
    plain = fresh(conv, SEEDS[:3], backend="serial")
    trained(plain, recipe, folder=tmp_path / "other")
    trained(fresh(conv, SEEDS[:3], backend="serial"), recipe, ([2], 2 * STEPS))
    harm(tmp_path / "node" / "checkpoint-0.safetensors")
    again = fresh(conv, SEEDS[:3], backend="serial")
    steps = trained(again, recipe)
    assert bits(plain, again)
    assert [epoch for group, epoch in steps if group == (0,)] == sorted([*range(EPOCHS)] * STEPS)


def test_another_architecture_or_optimiser_begins_anew(trained, tmp_path):
    recipe = RECIPE.model_copy(update={"epochs": EPOCHS})
    trained(fresh(mlp, SEEDS[:3], backend="serial"), recipe, ([2], 2 * STEPS))
    for build, optimiser in ((conv, "sgd"), (mlp, "adam")):
        steps = trained(fresh(build, SEEDS[:3], backend="serial"), recipe.model_copy(update={"optimiser": optimiser}),
                        interval=np.inf)  # fmt: skip
        assert [epoch for group, epoch in steps if group == (1,)] == sorted([*range(EPOCHS)] * STEPS)


def test_short_trainings_leave_nothing_and_removal_leaves_the_rest(trained, tmp_path):
    recipe = RECIPE.model_copy(update={"epochs": EPOCHS})
    folder = tmp_path / "node"
    trained(fresh(conv, SEEDS[:2], backend="serial"), recipe, interval=checkpoints.INTERVAL)
    assert not folder.exists()
    trained(fresh(conv, SEEDS[:2], backend="serial"), recipe)
    (folder / "logits.npz").write_bytes(b"")
    assert len(files(folder)) == 5
    checkpoints.remove(folder)
    assert files(folder) == ["logits.npz"]


def test_time_between_checkpoints_is_kept_for_each_group(monkeypatch, tmp_path):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    kept = Checkpoints(tmp_path / "node", [4, 7], interval=10)
    state = {"weights": {"w": torch.ones(1, 2)}, "optimiser": [torch.zeros(1, 2)]}
    due = []
    for now[0] in (0.0, 9.0, 10.0, 19.0, 20.0):
        due.append((kept.due([0]), kept.due([1])))
        if kept.due([0]):
            kept.write([0], 3, state)
    assert due == [(False, False), (False, False), (True, True), (False, True), (True, True)]
    epoch, states = kept.read([0])
    assert epoch == 3
    assert torch.equal(states["weights"]["w"], torch.ones(1, 2))
    assert torch.equal(states["optimiser"]["0"], torch.zeros(1, 2))
    assert kept.read([1]) is None
    assert (tmp_path / "node" / "checkpoint-4.safetensors").exists()


@pytest.mark.parametrize("text", ["-1", "ten", "nan"])
def test_an_interval_that_is_none_is_refused(monkeypatch, tmp_path, text):
    monkeypatch.setenv("UNLEARNING_CHECKPOINT_SECONDS", text)
    with pytest.raises(ValueError, match=f"UNLEARNING_CHECKPOINT_SECONDS={text}: set a number of seconds from 0 on"):
        Checkpoints(tmp_path, [0])


def test_a_full_disk_costs_the_checkpoint_and_not_the_training(monkeypatch, tmp_path, caplog):
    def full(path):
        raise ArtifactError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr(checkpoints, "seal", full)
    bank = fresh(conv, SEEDS[:2], backend="serial")
    bank.recipe = RECIPE.model_copy(update={"epochs": 2})
    bank.checkpoints = Checkpoints(tmp_path / "node", range(2), 0.0)
    with caplog.at_level(logging.WARNING):
        bank.train(rows(bank.seeds)[1])
    assert "no checkpoint was written" in caplog.text


def test_recorded_updates_are_of_the_whole_training(tmp_path):
    retain, forget = rows(SEEDS[:2])[1], rows(SEEDS[:2])[0]
    banks = [fresh(conv, SEEDS[:2], backend="serial") for _ in range(2)]
    record = np.zeros((2, len(banks[0].x)), bool)
    record[np.arange(2)[:, None], retain.index[:, :3]] = True
    banks[0].train(retain, record=record)
    for _ in range(2):
        bank = fresh(conv, SEEDS[:2], backend="serial")
        bank.checkpoints = Checkpoints(tmp_path / "node", range(2), 0.0)
        bank.train(retain, record=record)
    assert all(torch.equal(banks[0].updates[name], value) for name, value in bank.updates.items())
    assert len(forget.index) == 2


@pytest.mark.parametrize(
    ("backend", "laned"), [("serial", False), *slow(("serial", True), ("stacked", False), ("stacked", True))]
)
def test_a_killed_private_training_draws_the_same_batches_and_noise(trained, tmp_path, backend, laned):
    recipe = Recipe(lr=0.1, batch_size=8, epochs=EPOCHS, dp=Privacy(epsilon=20.0))
    plain, killed, again = (fresh(mlp, SEEDS[:3], backend=backend) for _ in range(3))
    trained(plain, recipe, folder=tmp_path / "other")
    groups = killed.engine.groups(3)
    trained(killed, recipe, (groups[-1], 3 * STEPS + 1), laned)
    steps = trained(again, recipe, laned=laned)
    assert bits(plain, again)
    assert plain.privacy == again.privacy
    assert [epoch for group, epoch in steps if list(group) == groups[-1]] == [3] * STEPS + [4] * STEPS
