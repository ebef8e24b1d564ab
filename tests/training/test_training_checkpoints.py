"""A training that was killed goes on where its last checkpoint was written, and leaves what it would have left."""

import logging

import numpy as np
import pytest
import torch
from unlearning_audit.store.files import ArtifactError
from unlearning_audit.training import checkpoints, fitting, lanes
from unlearning_audit.training.checkpoints import Checkpoints
from unlearning_audit.training.recipe import Privacy, Recipe

from slow_cases import slow
from stack_cases import RECIPE, SEEDS, conv, fresh, mlp, rows, same

EPOCHS = 5
#: Steps of a model in an epoch: 31 rows in batches of 8.
STEPS = 4
PLAIN = RECIPE.model_copy(update={"epochs": EPOCHS})
PRIVATE = Recipe(lr=0.1, momentum=0.9, batch_size=8, epochs=EPOCHS, dp=Privacy(epsilon=20.0))


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
def train(monkeypatch, tmp_path):
    """A function that trains three new models by a recipe with checkpoints after every epoch, and returns the stack and
    its steps; ``kill`` (models, step) ends it there. On the lanes of cards, if ``laned``."""

    monkeypatch.setattr("unlearning_audit.training.private.noise_multiplier", lambda *_: 1.3)  # the search takes long

    def run(recipe, kill=([], None), laned=False, interval=0.0, folder="node", build=conv, backend="serial"):
        stack, heartbeat = fresh(build, SEEDS[:3], backend=backend, recipe=recipe), Killing(*kill)
        stack.checkpoints = Checkpoints(tmp_path / folder, range(3), interval)
        with monkeypatch.context() as patch:
            patch.setattr(fitting, "Heartbeat", lambda *_: heartbeat)
            if laned:
                patch.setattr(fitting.Fit, "run", lanes.run)
            try:
                stack.train(rows(stack.seeds)[1])
            except KilledError:
                assert kill[1] is not None
        return stack, heartbeat.steps

    return run


def epochs_of(steps, group):
    """The epochs of the steps of a group, in order."""
    return [epoch for models, epoch in steps if models == tuple(group)]


#: Those of a training from the start, and of one that goes on after three epochs.
WHOLE, REST = ([epoch for epoch in range(start, EPOCHS) for _ in range(STEPS)] for start in (0, 3))


def check_killed(train, recipe, laned, **settings):
    """Killed in the fourth epoch of the last group, training goes on from there and leaves what it would have left."""
    plain, steps = train(recipe, folder="other", **settings)
    last = list(steps[-1][0])
    train(recipe, (last, 3 * STEPS + 1), laned, **settings)
    again, steps = train(recipe, laned=laned, **settings)
    assert same(plain, again)
    assert plain.privacy == again.privacy
    assert not same(plain, fresh(settings.get("build", conv), SEEDS[:3]))
    assert epochs_of(steps, last) == REST
    assert laned or {group for group, _ in steps} == {tuple(last)}  # the others were done


#: Networks, optimisers, and whether models train on lanes.
MLP, CONV, CONV_PLAIN = (mlp, "stacked", 0.9), (conv, "serial", 0.9), (conv, "serial", 0.0)
EVERY = [(*of, name, laned) for of in (MLP, CONV, CONV_PLAIN) for name in ("sgd", "adam", "adamw", "rmsprop")
         for laned in (False, True)]  # fmt: skip
QUICK = [case for case in EVERY if case[0] is mlp and not case[-1]]
QUICK += [(*MLP, "adamw", True), (*CONV, "sgd", False)]


@pytest.mark.parametrize(
    ("build", "backend", "momentum", "optimiser", "laned"), [*QUICK, *slow(*(c for c in EVERY if c not in QUICK))]
)
def test_a_killed_training_ends_as_if_it_had_not_been_killed(train, build, backend, momentum, optimiser, laned):
    changes = {"optimiser": optimiser, "lr": 0.01, "momentum": momentum, "schedule": "cosine"}
    augment = "crop_flip" if build is conv else "none"
    recipe = PLAIN.model_copy(update=changes | {"augment": augment})
    check_killed(train, recipe, laned, build=build, backend=backend)


@pytest.mark.parametrize(
    ("backend", "laned"), [("serial", False), *slow(("serial", True), ("stacked", False), ("stacked", True))]
)
def test_a_killed_private_training_draws_the_same_batches_and_noise(train, backend, laned):
    check_killed(train, PRIVATE, laned, build=mlp, backend=backend)


def cut(path):
    path.write_bytes(path.read_bytes()[:-8])


def unseal(path):
    path.with_name(f".{path.name}.blake2b").unlink()


def exchange(path):
    """The checkpoint of another model under this name, with its seal."""
    other = path.with_name("checkpoint-1.safetensors")
    other.replace(path)
    other.with_name(f".{other.name}.blake2b").replace(path.with_name(f".{path.name}.blake2b"))


@pytest.mark.parametrize("harm", [cut, *slow(unseal, exchange)])
def test_what_is_not_whole_or_not_of_these_models_is_left_alone(train, tmp_path, harm):
    plain, _ = train(PLAIN, folder="other")
    train(PLAIN, ([2], 2 * STEPS))
    harm(tmp_path / "node" / "checkpoint-0.safetensors")
    again, steps = train(PLAIN)
    assert same(plain, again)
    assert epochs_of(steps, [0]) == WHOLE


@pytest.mark.parametrize(
    ("recipe", "build"),
    [*slow((PLAIN, conv)), (PLAIN.model_copy(update={"optimiser": "adam"}), mlp), *slow((PRIVATE, mlp))],
    ids=["architecture", "optimiser", "noise"],
)
def test_a_checkpoint_without_all_that_training_needs_is_used_in_no_part(train, recipe, build):
    """Of another architecture, of another optimiser, of private training without the states of its noise."""
    plain, _ = train(recipe, folder="other", build=build)
    train(PLAIN, ([2], 2 * STEPS), build=mlp)
    again, steps = train(recipe, interval=np.inf, build=build)
    assert same(plain, again)
    assert epochs_of(steps, [1]) == WHOLE


def test_short_trainings_leave_nothing_and_removal_leaves_the_rest(train, tmp_path):
    folder = tmp_path / "node"
    train(PLAIN, interval=checkpoints.INTERVAL)
    assert not folder.exists()
    train(PLAIN)
    (folder / "logits.npz").write_bytes(b"")
    (folder / ".checkpoint-0.safetensors.part").mkdir()
    assert len([*folder.iterdir()]) == 8  # three checkpoints with their seals
    checkpoints.remove(folder)
    assert [path.name for path in folder.iterdir()] == ["logits.npz"]


def test_time_between_checkpoints_is_kept_for_each_group(monkeypatch, tmp_path):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    kept, due = Checkpoints(tmp_path / "node", [4, 7], interval=10), []
    for now[0] in (0.0, 9.0, 10.0, 19.0, 20.0):
        due.append((kept.due([0]), kept.due([1])))
        if kept.due([0]):
            kept.write([0], 3, {"weights/w": torch.ones(1, 2), "optimiser/0": torch.zeros(1, 2)})
    assert due == [(False, False), (False, False), (True, True), (False, True), (True, True)]
    epoch, tensors = kept.read([0])
    assert (epoch, tensors["weights/w"].tolist(), tensors["optimiser/0"].tolist()) == (3, [[1, 1]], [[0, 0]])
    assert kept.read([1]) is None
    assert (tmp_path / "node" / "checkpoint-4.safetensors").exists()


def test_a_full_disk_costs_the_checkpoint_and_not_the_training(monkeypatch, train, caplog):
    def full(path):
        raise ArtifactError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr(checkpoints, "seal", full)
    with caplog.at_level(logging.WARNING):
        train(PLAIN)
    assert "no checkpoint was written" in caplog.text


def test_recorded_updates_are_of_the_whole_training(tmp_path):
    retain = rows(SEEDS[:2])[1]
    plain, first, again = (fresh(conv, SEEDS[:2], backend="serial") for _ in range(3))
    record = np.zeros((2, len(plain.x)), bool)
    record[np.arange(2)[:, None], retain.index[:, :3]] = True
    for stack in (plain, first, again):
        if stack is not plain:
            stack.checkpoints = Checkpoints(tmp_path / "node", range(2), 0.0)
        stack.train(retain, record=record)
    assert all(torch.equal(plain.updates[name], value) for name, value in again.updates.items())
