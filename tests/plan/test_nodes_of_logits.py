"""What is planned for logits from elsewhere: the parts they play, and who reads them."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from unlearning_audit.workflow import parameters

from plan_cases import BASE, case, changed, label, labels, metrics, planned


@pytest.fixture
def logits(tmp_path, monkeypatch):
    """Two methods of one folder of logits; shadow models of the first alone."""
    monkeypatch.chdir(tmp_path)
    for folder in ("one/target", "two/target", "one/shadow", "retrain", "original"):
        (tmp_path / "logits" / folder).mkdir(parents=True)
        np.save(tmp_path / "logits" / folder / "logits.npy", np.full((1, 3, 2), float(len(folder))))
        for part, kind in (("labels", int), ("train", bool), ("forget", bool)):
            np.save(tmp_path / "logits" / folder / f"{part}.npy", np.full(3, len(folder), kind))


def external(**edits):
    defaults = {"protocol": {"name": "external", "path": "logits"}, "attacks": {"random": {}}}
    study = {**BASE, "defaults": {**defaults, "methods": {"one": {}, "two": {}}}, "tables": {}, "figures": {}}
    return planned(changed(study, edits))


@pytest.mark.parametrize("source", ["digits", "arrays"])
def test_checkpoints_are_imported_with_their_data_and_model(logits, source):
    for folder in map(Path, ("logits/one/target", "logits/retrain")):
        for name in ("logits", "labels"):
            (folder / f"{name}.npy").unlink()
        for number in (1, 2):
            save_file({"weight": np.full(1, float(number), np.float32)}, folder / f"m{number}.safetensors")
    np.savez("mine.npz", x=np.zeros((3, 2), np.float32), y=np.arange(3), part=np.zeros(3, int))
    data = {"name": source, **({"path": "mine.npz"} if source == "arrays" else {})}
    plan = external(**{"defaults/protocol/data": data, "defaults/protocol/model": {"name": "mlp"}})
    read = [node for node in plan.nodes["external"].values() if "checkpoint_0" in node.place["files"]]
    assert {label(node.name) for node in read} == {"external-one-target", "external-retrain"}
    assert all({"checkpoint_1", "train", "forget"} <= set(node.place["files"]) for node in read)
    assert ["source" in node.settings for node in read] == [source == "arrays"] * 2
    assert not any("data" in node.settings for node in plan.nodes["external"].values() if node not in read)


def test_logits_from_elsewhere_are_imported_by_the_part_they_play(logits):
    plan = external()
    assert set(labels(plan, "external")) == {
        "external-one-target", "external-one-shadow", "external-two-target", "external-original", "external-retrain"
    }  # fmt: skip
    node = metrics(plan, "one")
    assert node.settings["populations"][:2] == ["target", "shadow"]
    assert set(node.settings) == {
        "attacks", "metrics", "paper_set", "adaptive_set", "populations", "attacked", "design", "bootstrap", "seed",
    }  # fmt: skip
    assert {"accuracy", "swap", "ruli", "phi"} < set(node.settings["metrics"])
    assert (node.settings["bootstrap"], node.settings["seed"]) == (1000, 0)
    nodes = {
        n.settings["population"]: n for n in plan.nodes["external"].values() if label(n.name) != "external-two-target"
    }
    files = [nodes[part].outputs[f] for part in node.settings["populations"] for f in ("data", "membership", "logits")]
    assert node.inputs["populations"] == files
    assert node.settings["attacks"] == {"random": {"name": "random", "options": {}}}
    assert node.settings["attacked"] == ["target", "shadow"]
    assert node.inputs["attacked"] == files[:6]
    assert labels(plan, "comparisons") == ["external"]
    target = nodes["target"]
    assert target.place["files"]["logits"] == "logits/one/target/logits.npy"
    assert set(target.settings) == {"population", "content"}
    entry = case(plan, "one")
    assert (entry.unlearned, entry.splits) == ([target.outputs["logits"]], [target.outputs["membership"]])
    assert (entry.data, entry.scores) == (target.outputs["data"], node.outputs["scores"])
    assert entry.originals == [nodes["original"].outputs["logits"]]
    assert node.place["attacks"]["files"] == node.place["metrics"]["files"] == {}


def test_settings_of_all_displays_are_there(logits):
    plan = external()
    for order in (parameters.collect, parameters.headline, parameters.report, parameters.cost, parameters.verdicts):
        assert order(plan)
