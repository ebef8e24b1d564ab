"""Sizes that are told beforehand are those that splits have when they are made."""

import ast
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import Data, Membership
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.plugins import registry, syntax
from unlearning_audit.workflow.forecast import arithmetic
from unlearning_audit.workflow.forecast.sizes import Draws, every_second

import splits as splits_script
from forecast_cases import planned

SCENARIOS = {
    "swap": {"name": "swap", "alpha": 0.25, "pairs": 5, "models_per_split": 2},
    "random": {"name": "random_splits", "pairs": 3},
    "confusion": {"name": "interclass_confusion", "classes": [3, 8], "share": 0.5, "models": 3},
    "one": {"name": "competition", "originals": "one", "blocks": 2, "models_per_block": 4},
    "many": {"name": "competition", "originals": "many", "blocks": 2, "models_per_block": 4},
    "efficacy": {"name": "efficacy", "fraction": 0.5, "models_per_block": 4},
    "halves": {"name": "lira_selection", "pairs": 4},
    "random_targets": {"name": "ruli", "target_size": 12, "attack_size": 50, "shadow_blocks": 3},
    "vulnerable": {"name": "ruli", "target_set": "vulnerable", "select_from": "halves", "target_size": 12,
                   "attack_size": 50, "shadow_blocks": 3},
    "canary": {"name": "ruli", "target_set": "canary", "select_from": "halves", "target_size": 12,
               "attack_size": 50, "shadow_blocks": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_sizes_are_those_of_the_files(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attacks = {} if SCENARIOS[name]["name"] in ("swap", "random_splits") else {"attacks": []}
    halves = {"protocol": SCENARIOS["halves"], "methods": ["none"], "attacks": []}
    whole = planned({name: {"protocol": SCENARIOS[name], **attacks}, "halves": halves})
    draws = Draws(arithmetic.nodes(whole))
    for node in whole.nodes["splits"].values():
        selection = node.inputs.get("selection")
        if selection:
            # Whoever is selected: here a third, in another order.
            samples = len(Data.read(node.inputs["data"]).y)
            third = np.arange(samples) % 3 == 0
            Selection(third, np.arange(samples) % 3 == 1, np.zeros(samples)).write(selection[0])
        path = node.outputs["membership"]
        reported = splits_script.splits(node.inputs["data"], path, node.settings, node.place, selection)
        sizes = draws.sizes(node.name)
        assert {part: sizes[part] for part in ("models", "forget", "train")}.items() <= reported.items()
        assert sizes["originals"] == len(Membership.read(path).originals()[0])
        assert sizes["bytes"] == pytest.approx(Path(path).stat().st_size, rel=0.1, abs=3000)


def test_facts_are_those_of_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = planned({"main": {}})
    draws = Draws(arithmetic.nodes(whole))
    ((name, node),) = whole.nodes["data"].items()
    facts = draws.facts(name)
    assert {k: facts[k] for k in ("samples", "classes", "shape")} == {"samples": 250, "classes": 10, "shape": [64]}
    assert facts["bytes"] == pytest.approx(Path(node.outputs["data"]).stat().st_size, rel=0.1)
    Path(node.outputs["data"]).unlink()
    assert Draws(arithmetic.nodes(whole)).facts(name) == facts, "nothing has to be written for it"
    assert not Path(node.outputs["data"]).exists()


#: Sources that are downloaded say how large they are.
DOWNLOADS = {name: syntax.constant(registry.source_file("data", name), "SIZE") for name in registry.names("data")}


@pytest.mark.parametrize("name", [name for name, size in DOWNLOADS.items() if size])
def test_what_is_not_downloaded_is_as_large_as_it_will_be(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, test, shape, classes = DOWNLOADS[name]
    calls = [node for node in ast.walk(ast.parse(registry.source_file("data", name).read_text()))
             if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "read"]  # fmt: skip
    if name != "tinyimagenet":  # which counts what it finds
        sizes = {k.arg: ast.literal_eval(k.value) for k in calls[0].keywords if k.arg in ("train", "test", "classes")}
        assert sizes == {"train": train, "test": test, "classes": classes}
    settings = {"source": name, "options": {"download": True}, "use": {"size": 300}, "seed": 0}
    node = {"node": "it", "spec": "results/data/it/spec.json", "settings": settings, "place": {"data_dir": "data"}}
    facts = Draws([node]).facts("it")
    assert (facts["samples"], facts["shape"], facts["classes"]) == (300 + test, list(shape), classes)


def test_the_stand_in_of_a_selection_is_one():
    stand_in = every_second(7)
    assert (stand_in.vulnerable ^ stand_in.protected).all()
    assert abs(int(stand_in.vulnerable.sum()) - int(stand_in.protected.sum())) == 1
