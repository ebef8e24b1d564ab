"""Jobs whose models a card cannot hold at once: they are done a portion after the other, and leave the same files."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.plugins import registry
from unlearning_audit.training import card
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.workflow import open_stack
from unlearning_audit.workflow.progress import HEAVY

from pretended_card import pretended
from stack_cases import SEEDS, fresh

SETTINGS = {
    "model": "cnn", "options": {"channels": [3]}, "method": "salun", "method_options": {"epochs": 1, "batch_size": 8},
    "recipe": Recipe(epochs=1, batch_size=8, lr=0.05, momentum=0.9, record_updates=True).model_dump(mode="json"),
}  # fmt: skip


@pytest.fixture
def job(workdir):
    """The scripts' own functions on small files in the working directory."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 3, 8, 8), dtype=np.uint8), rng.integers(0, 4, 60)
    Data(x, y, np.repeat(np.uint8([0, 1]), (40, 20)), y, np.arange(60), 4).write("data.npz")
    protocol = registry.load("protocols", "swap")
    options = protocol.Options(alpha=0.2, pairs=1, models_per_split=2, shadow_models_per_split=1)
    protocol.draw(0, "population", Data.read("data.npz"), options, 0).write("splits.npz")
    return {"data": "data.npz", "splits": ["splits.npz"], "settings": SETTINGS, "place": {"file": None}}


def run(job, folder):
    """Train, unlearn, read and relearn in ``folder``; what each says for its spec."""
    folder = f"{folder}/node"
    Path(folder).mkdir(parents=True)
    paths = {name: f"{folder}/{name}" for name in ("trained", "first", "models", "logits", "norms", "relearned")}
    scripts = {name: importlib.import_module(name) for name in ("train", "unlearn", "signals")}
    unlearned, read = {"trained": [paths["trained"]]}, {"signal": "squared_norms", "rows": "forgotten"}
    facts = {
        "train": scripts["train"].train(**job, models=paths["trained"], logits=paths["first"]),
        "unlearn": scripts["unlearn"].unlearn(**job, **unlearned, models=paths["models"], logits=paths["logits"]),
    }
    for name, signal in {"norms": read, "relearned": {"signal": "relearned", "steps": 2}}.items():
        facts["signals"] = scripts["signals"].signals(
            **with_settings(job, **signal), models=[paths["models"]], signals=paths[name]
        )
    facts["unlearn"].pop("unlearn_seconds")
    return facts


def with_settings(job, **settings):
    return {**job, "settings": {**job["settings"], **settings}}


def tuned(job):
    """What a campaign of one setting, with nothing to judge it by, says for its spec, after `run` in ``job``."""
    judged = {"seed": 0, "attacks": {}, "metrics": {}, "margins": {}, "paper_set": None, "adaptive_set": None}
    judged["tune"] = {"space": {}, "trials": 1, "objective": "metrics"}
    trained, first = "job/node/trained", "job/node/first"
    Path("retrained").mkdir()
    Logits.read(first).write("retrained/logits.npz")
    return importlib.import_module("tune").tune(
        **with_settings(job, **judged), trained=[trained], originals=[first], retrained=["retrained/logits.npz"],
        chosen="chosen.json", trials="trials.csv",
    )  # fmt: skip


def text(job):
    """What pretraining on passages, and generation by models that are unlearned, say for their specs."""
    x = np.random.default_rng(0).integers(1, 23, (60, 9)).astype(np.int32)
    y, part = np.zeros(60, np.int64), np.repeat(np.uint8([0, 1]), (40, 20))
    Data(x, y, part, y, np.arange(60), 2, public=x[:20]).write("text.npz")
    options = {"vocabulary": 23, "layers": 1, "width": 12, "heads": 2}
    job = with_settings(
        {**job, "data": "text.npz"}, model="gpt2", options=options, signal="generations", most=2, seed=0
    )
    arguments = {name: job[name] for name in ("data", "settings", "place")}
    Path("passages").mkdir()
    base = importlib.import_module("pretrain").pretrain(**arguments, models="passages/base.safetensors")
    importlib.import_module("train").train(**job, models="passages/models", logits="passages/logits.npz")
    files = {"models": ["passages/models"], "signals": "passages/signals.npz"}
    return {"pretrain": base, "signals": importlib.import_module("signals").signals(**job, **files)}


def test_the_spec_of_every_job_with_models_names_the_card_and_how_it_computes(job, monkeypatch):
    about = {"name": "A card", "tf32": {"convolutions": True, "products": False}, "deterministic": False}
    monkeypatch.setattr(card, "use", lambda: "cuda")
    monkeypatch.setattr(card, "describe", lambda: about)
    with pretended():
        facts = run(job, "job")
        facts |= {"tune": tuned(job), **text(job)}
    assert facts.keys() == {*HEAVY}
    for stage, entry in facts.items():
        assert (entry["device"], entry["card"]) == ("cuda", about), stage


def batch():
    """The models of the job."""
    return open_stack.ModelBatch(Data.read("data.npz"), Membership.read("splits.npz"), SETTINGS, {}, ())


def test_portions_leave_the_files_that_one_stack_leaves(job, monkeypatch):
    counts, really = [], open_stack.ModelBatch.portions

    def three_at_once(batch, count):
        counts.append(count)
        return np.array_split(np.arange(count), -(-count // 3))

    whole = run(job, "whole")
    monkeypatch.setattr(open_stack.ModelBatch, "portions", three_at_once)
    parts = run(job, "parts")
    assert whole == parts
    assert counts == [6, 6, 6, 4]  # the last are the defender's
    assert really(batch(), 6)[0].tolist() == list(range(6))
    for name in os.listdir("whole/node"):
        pair = [Path(folder, "node", name).read_bytes() for folder in ("whole", "parts")]
        assert pair[0] == pair[1], name


def test_a_card_holds_a_few_times_the_weights_of_a_portion(job, monkeypatch):
    monkeypatch.setattr(card, "use", lambda: "cuda")
    monkeypatch.setattr(open_stack.ModelBatch, "stack", lambda *_: fresh(seeds=SEEDS[:1]))
    weight_bytes = sum(value.nbytes for value in fresh(seeds=SEEDS[:1]).stored().values())
    for free, expected in ((1 << 40, [6]), (0, [1] * 6), (weight_bytes * 2 * open_stack.COPIES * 4, [3, 3])):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (free, 0))
        assert [len(part) for part in batch().portions(6)] == expected
