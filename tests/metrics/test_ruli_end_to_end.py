"""RULI's selection of target samples: what a study may name, and which selection its scenarios get."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

STUDY = {
    "study": "tiny",
    "batch": 4,
    "defaults": {
        "data": {"name": "digits", "size": 180, "test_size": 30, "label_noise": 0.3},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 3, "lr": 0.2, "batch_size": 32},
        "protocol": {"name": "ruli", "target_size": 24, "shadow_blocks": 4, "select_from": "halves"},
        "methods": {"none": {}, "retrain": {}},
    },
    "scenarios": {
        "halves": {
            "protocol": {"name": "lira_selection", "pairs": 5},
            "methods": ["none"],
            "metrics": {"vulnerability": {"fpr": 0.2, "band": 0.4, "agreement": 0.2}},
        },
        "random": {},
        "mixed": {"protocol": {"target_set": "vulnerable_and_protected", "target_size": 15}, "methods": ["none"]},
        "canary": {"protocol": {"target_set": "canary", "canary_rate": 0.5}, "methods": ["none"]},
    },
}


def scenarios(**changes) -> dict:
    return {**STUDY, "scenarios": {**STUDY["scenarios"], **changes}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mixed": {"protocol": {"target_set": "canary", "select_from": "random"}}}, "which selects nothing; name hal"),
        ({"mixed": {"protocol": {"target_set": "canary"}, "data": {"label_noise": 0.1}}}, "no variant has the same"),
        ({"halves": {"protocol": {"name": "lira_selection"}}}, "methods.retrain: must be left out for the protocol"),
    ],
)
def test_a_selection_that_cannot_be_made_is_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        reading.read(scenarios(**changes), "study.yaml")


def test_a_selection_is_that_of_the_same_place_on_shared_axes():
    config = scenarios(
        **{name: {**STUDY["scenarios"][name], "vary": {"data.label_noise": [0.1, 0.3]}} for name in ("halves", "mixed")}
    )
    del config["scenarios"]["canary"]
    study_plan = plan.make(reading.read(config, "study.yaml"))
    assert len(study_plan.nodes["selection"]) == 2
    for node in study_plan.nodes["splits"].values():
        for path in node.inputs.get("selection", []):
            assert ("noise0.1" in node.name) == ("noise0.1" in path)
