"""Jobs whose models a card cannot hold at once: they are done a portion after the other, and leave the same files."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.artifacts.arrays import Data, Membership
from unlearning_audit.bank import card
from unlearning_audit.bank.bank import Shelf, read_models
from unlearning_audit.bank.recipe import Recipe
from unlearning_audit.plugins import registry
from unlearning_audit.workflow import open_bank

from bank_cases import SEEDS, conv, fresh, mlp, trained

SETTINGS = {
    "model": "cnn", "options": {"channels": [3]}, "method": "salun", "method_options": {"epochs": 1, "batch_size": 8},
    "recipe": Recipe(epochs=1, batch_size=8, lr=0.05, momentum=0.9, record_updates=True).model_dump(mode="json"),
}  # fmt: skip


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The scripts' own functions on small files in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 3, 8, 8), dtype=np.uint8), rng.integers(0, 4, 60)
    Data(x, y, np.repeat(np.uint8([0, 1]), (40, 20)), y, np.arange(60), 4).write("data.npz")
    protocol = registry.load("protocols", "swap")
    options = protocol.Options(alpha=0.2, pairs=1, models_per_split=2, shadow_models_per_split=1)
    protocol.draw(0, "population", Data.read("data.npz"), options, 0).write("splits.npz")
    return {"data": "data.npz", "splits": ["splits.npz"], "settings": SETTINGS, "place": {"file": None}}


def run(job, folder):
    """Train, unlearn, read and relearn in ``folder``; the models of the job."""
    folder = f"{folder}/node"
    Path(folder).mkdir(parents=True)
    made = {name: f"{folder}/{name}" for name in ("trained", "first", "models", "logits", "readings", "relearned")}
    scripts = {name: importlib.import_module(name) for name in ("train", "unlearn", "readings", "relearn")}
    facts = scripts["train"].train(**job, models=made["trained"], logits=made["first"])
    scripts["unlearn"].unlearn(**job, trained=[made["trained"]], models=made["models"], logits=made["logits"])
    read = {**job, "settings": {**SETTINGS, "signal": "squared_norms", "rows": "forgotten"}}
    scripts["readings"].readings(**read, models=[made["models"]], readings=made["readings"])
    again = {**job, "settings": {**SETTINGS, "steps": 2}}
    scripts["relearn"].relearn(**again, unlearned=[made["models"]], relearned=made["relearned"])
    return facts


def test_portions_leave_the_files_that_one_bank_leaves(job, monkeypatch):
    asked, really = [], open_bank.portions

    def three_at_once(data, membership, count, *rest):
        asked.append(count)
        return np.array_split(np.arange(count), -(-count // 3))

    whole = run(job, "whole")
    monkeypatch.setattr(open_bank, "portions", three_at_once)
    parts = run(job, "parts")
    assert whole == parts
    assert asked == [6, 6, 6, 4]  # the last are the defender's
    assert really(Data.read("data.npz"), Membership.read("splits.npz"), 6, SETTINGS, {})[0].tolist() == list(range(6))
    for name in os.listdir("whole/node"):
        pair = [Path(folder, "node", name).read_bytes() for folder in ("whole", "parts")]
        assert pair[0] == pair[1], name


@pytest.mark.parametrize(("free", "expected"), [(1 << 40, [6]), (0, [1] * 6)])
def test_a_card_holds_a_few_times_the_weights_of_a_portion(job, monkeypatch, free, expected):
    monkeypatch.setattr(card, "use", lambda: "cuda")
    monkeypatch.setattr(open_bank, "open_bank", lambda *_: fresh(seeds=SEEDS[:1]))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, free))
    data, membership = Data.read("data.npz"), Membership.read("splits.npz")
    assert [len(part) for part in open_bank.portions(data, membership, 6, SETTINGS, {})] == expected
    one = sum(value.nbytes for value in fresh(seeds=SEEDS[:1]).stored().values())
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (one * 2 * open_bank.COPIES * 4, 0))
    assert [len(part) for part in open_bank.portions(data, membership, 6, SETTINGS, {})] == [3, 3]


@pytest.mark.parametrize("build", [mlp, conv])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_shelf_has_the_bytes_of_the_library(tmp_path, build, dtype):
    bank = fresh(build, SEEDS[:5], backend="serial", dtype=dtype)
    bank.updates = {name: value + 1 for name, value in bank.parameters.items()}
    (tmp_path / "a").mkdir()
    bank.write(tmp_path / "a" / "models.safetensors")
    path = tmp_path / "a" / "parts.safetensors"
    with Shelf(path, 5) as shelf:
        for part in (np.array([1, 3]), np.array([0, 2, 4])):
            shelf.put(part, bank.take(part))
    assert path.read_bytes() == (tmp_path / "a" / "models.safetensors").read_bytes()
    assert read_models(path).keys() == bank.stored().keys()


def test_a_shelf_that_is_not_filled_leaves_no_file(tmp_path):
    bank = fresh(seeds=SEEDS[:3])

    def fill():
        with Shelf(tmp_path / "models.safetensors", 3) as shelf:
            shelf.put(np.array([1]), bank.take(np.array([1])))
            raise KeyError

    with pytest.raises(KeyError):
        fill()
    assert not [*tmp_path.iterdir()]


def test_some_models_of_a_file_are_those_models(tmp_path):
    bank = trained(seeds=SEEDS[:4])
    bank.write(tmp_path / "models.safetensors")
    some = fresh(seeds=[SEEDS[3], SEEDS[1]])
    some.load(tmp_path / "models.safetensors", models=np.array([3, 1]))
    for name, value in bank.parameters.items():
        assert torch.equal(some.parameters[name], value[[3, 1]])
