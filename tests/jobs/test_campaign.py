"""A campaign of trials on real models: the same bytes on a second run, and distances from accuracies by hand."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.evaluation import trials
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.plugins.guard import MachineError, PluginError
from unlearning_audit.store.files import ArtifactError, NotFiniteError, read_json
from unlearning_audit.study import reading
from unlearning_audit.training.models import Models
from unlearning_audit.workflow import plan
from unlearning_audit.workflow.campaign import Campaign

import stage_runs
from slow_cases import slow

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


@pytest.fixture(autouse=True)
def on_a_processor(workdir, monkeypatch):
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")


def make(study=STUDY):
    """Everything that the trials need, then the trials; their node."""
    (tune,) = plan.make(reading.read(study, "study.yaml")).nodes["tune"].values()
    stage_runs.make(tune)
    return tune


def content(tune) -> tuple[bytes, list[dict]]:
    rows = trials.read(tune.outputs["trials"])
    return Path(tune.outputs["chosen"]).read_bytes(), [{**row, "seconds": 0.0} for row in rows]


def test_a_second_run_chooses_the_same_and_writes_the_same_bytes():
    tune = make()
    first = content(tune)
    stage_runs.one(tune)
    assert repr(content(tune)) == repr(first)  # a number that is not one differs from itself
    assert [row["pairs"] for row in first[1]] == [1] * 4 + [2] * 2
    assert read_json(tune.outputs["chosen"])["trials"] == 4


def test_trials_share_the_information_that_a_method_reads_before_it_changes_anything(monkeypatch):
    """The same bytes as if each computed it, and what it took counts for each."""
    asked, per_model = [], Models.per_model
    monkeypatch.setattr(Models, "per_model", lambda *given: asked.append(0) or time.sleep(0.1) or per_model(*given))
    space = {"a": {"low": 1, "high": 9}}
    methods = {"none": {}, "retrain": {}, "ssd": {"tune": {**TUNE, "space": space}}}
    tune = make({**STUDY, "scenarios": {"main": {**STUDY["scenarios"]["main"], "methods": methods}}})
    shared = content(tune)
    assert len(asked) == 2 * TUNE["pairs"]
    assert all(row["seconds"] > 0.2 for row in trials.read(tune.outputs["trials"]))
    monkeypatch.setattr(Models, "information", property(lambda self: None, lambda self, value: None), raising=False)
    stage_runs.one(tune)
    assert len(asked) > 4 * TUNE["pairs"]
    assert repr(content(tune)) == repr(shared)


RULI = {
    "protocol": {"name": "ruli", "target_size": 60, "attack_size": 60, "shadow_blocks": 3}, "attacks": [],
    "methods": {
        "none": {}, "retrain": {}, "finetune": {"lr": 0.1, "epochs": 2, "tune": {**TUNE, "objective": "accuracy"}},
    },
}  # fmt: skip


@pytest.mark.parametrize("protocol", [RULI["protocol"], *slow({"name": "competition", "blocks": 6})])
def test_where_accuracies_must_match_the_largest_gap_of_three_is_the_distance(tmp_path, protocol):
    scenario = {**STUDY["scenarios"]["main"], **RULI, "protocol": protocol}
    tune = make({**STUDY, "scenarios": {"main": scenario}})
    table = trials.read(tune.outputs["trials"])
    assert len(table) > 4
    assert {row["note"] for row in table} == {""}
    files = [tune.inputs[name] for name in ("splits", "trained", "originals", "retrained")]
    (tmp_path / "folder").mkdir()
    campaign = Campaign(
        tune.inputs["data"], *(paths[0] for paths in files), tune.settings, tune.place, [], tmp_path / "folder"
    )
    data = Data.read(tune.inputs["data"])
    for row in (row for row in table if row["pairs"] == 1):
        trial = campaign.trial(row["trial"], json.loads(row["options"]), 1)
        member = Membership.read(campaign.splits[0], samples=len(data.y))
        files = campaign.unlearned[row["trial"]][0], campaign.retrained[0]
        hits = [Logits.read(path, len(member.seed)).logits.argmax(-1) == data.y for path in files]
        test = np.broadcast_to(data.part == 1, hits[0].shape)
        roles = {"retain": member.retain, "forget": member.forget, "test": test}
        # role → mean accuracy of unlearned models minus that of retrained ones
        gaps = {
            role: np.mean([a[of].mean() - b[of].mean() for a, b, of in zip(*hits, rows, strict=True)])
            for role, rows in roles.items()
        }
        margin = tune.settings["margins"]["accuracy"]
        assert trial.distance * margin == pytest.approx(max(map(abs, gaps.values())), abs=1e-12)
        assert trial.lost * margin == pytest.approx(max(-gaps["retain"], -gaps["test"]), abs=1e-12)
        assert trial.distance == pytest.approx(row["distance"], abs=1e-6)
    chosen = read_json(tune.outputs["chosen"])
    last = [row for row in table if row["pairs"] == 2]
    near = min(row["distance"] for row in last if row["lost"] <= max(1.0, min(other["lost"] for other in last)))
    assert chosen["distance"] <= near + max(row["ci_high"] - row["distance"] for row in last)


def test_a_full_disk_ends_a_campaign_and_is_no_result_of_a_setting(monkeypatch):
    """What the method or its models do wrong is one."""
    campaign, raised = Campaign.__new__(Campaign), []
    campaign.unlearned, campaign.seconds = {}, {}
    monkeypatch.setattr(Campaign, "_unlearn_pair", lambda *_: (_ for _ in ()).throw(raised[-1]))
    for error in (ArtifactError("scores: could not be written (No space left on device)"), MachineError("no memory")):
        raised.append(error)
        with pytest.raises(type(error), match=str(error.args[0])[:6]):
            campaign.trial(1, {"lr": 1}, 2)
    for error in (PluginError("it raised"), NotFiniteError("it diverged"), ValueError("lr: must be positive")):
        raised.append(error)
        assert campaign.trial(1, {"lr": 1}, 2).note == str(error)
