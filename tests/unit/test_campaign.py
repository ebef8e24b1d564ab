"""A campaign of trials on real models: the same bytes on a second run."""

import inspect
import runpy
from pathlib import Path

from unlearning_audit import ROOT
from unlearning_audit.artifacts import trials
from unlearning_audit.artifacts.files import read_json
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

TUNE = {"trials": 3, "pairs": 2, "space": {"lr": [0.01, 0.3], "epochs": [1, 4]}}
STUDY = {
    "study": "tuned", "seed": 3, "batch": 4,
    "scenarios": {
        "main": {
            "data": {"name": "digits", "test_size": 100, "size": 240, "label_noise": 0.2},
            "model": {"name": "mlp", "hidden": [16]}, "recipe": {"epochs": 20, "lr": 0.2, "batch_size": 32},
            "protocol": {"name": "swap", "alpha": 0.25, "pairs": 2}, "attacks": ["confidence", "random"],
            "methods": {"none": {}, "retrain": {}, "finetune": {"lr": 0.1, "epochs": 2, "tune": TUNE}},
        }
    },
}  # fmt: skip


def run(node) -> None:
    """Call the function of the node's script as its job does."""
    function = runpy.run_path(str(ROOT / "scripts" / f"{node.stage}.py"))[node.stage]
    Path(next(iter(node.outputs.values()))).parent.mkdir(parents=True, exist_ok=True)
    values = {**node.inputs, **node.outputs, "settings": node.settings, "place": node.place}
    function(**{name: values[name] for name in inspect.signature(function).parameters if name in values})


def make():
    """Everything that the trials need, then the trials; their node."""
    planned = plan.make(reading.read(STUDY, "study.yaml"))
    (tune,) = planned.nodes["tune"].values()
    inputs = {path for paths in tune.inputs.values() for path in ([paths] if isinstance(paths, str) else paths)}
    for stage in ("data", "splits", "train", "unlearn"):
        for node in planned.nodes[stage].values():
            if inputs & set(node.outputs.values()):
                run(node)
    run(tune)
    return tune


def content(tune) -> tuple[bytes, list[dict]]:
    rows = trials.read(tune.outputs["trials"])
    return Path(tune.outputs["chosen"]).read_bytes(), [{**row, "seconds": 0.0} for row in rows]


def test_a_second_run_chooses_the_same_and_writes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")
    tune = make()
    first = content(tune)
    for file in tune.outputs.values():
        Path(file).unlink(missing_ok=True)
    run(tune)
    second = content(tune)
    assert first[0] == second[0]
    assert repr(first[1]) == repr(second[1])  # a number that is not one differs from itself
    assert [row["pairs"] for row in first[1]] == [1] * 4 + [2] * 2
    assert read_json(tune.outputs["chosen"])["trials"] == 4
