"""RULI from a study's text to its numbers, by the functions of the scripts, in one process and in seconds."""

import itertools

import numpy as np
import pytest
from unlearning_audit.evaluation import rows as rows_of
from unlearning_audit.evaluation.arrays import Logits, Membership
from unlearning_audit.evaluation.selection import Selection
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from row_places import about
from stage_runs import run

STUDY = {
    "study": "tiny",
    "batch": 4,
    "defaults": {
        "data": {"name": "digits", "size": 180, "test_size": 30, "label_noise": 0.3},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 3, "lr": 0.2, "batch_size": 32},
        "protocol": {"name": "ruli", "target_size": 24, "shadow_blocks": 4, "select_from": "halves"},
        "methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 1}},
        "controls": True,
    },
    "scenarios": {
        "halves": {
            "protocol": {"name": "lira_selection", "pairs": 5},
            "methods": ["none"],
            "metrics": {"vulnerability": {"density": "gaussian", "fpr": 0.2, "band": 0.4, "agreement": 0.2}},
        },
        "random": {},
        "mixed": {"protocol": {"target_set": "vulnerable_and_protected", "target_size": 15}, "methods": ["none"]},
        "canary": {
            "protocol": {"target_set": "canary", "canary_rate": 0.5},
            "methods": {
                "none": {},
                "scrub": {"epochs": 1, "forget_batch_size": 5},
                "scrub_ranked": {"name": "scrub", "epochs": 1, "forget_batch_size": 5, "forget_order": "memorisation"},
            },
        },
    },
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """The plan, and the folder in which all of it was made."""
    folder = tmp_path_factory.mktemp("run")
    study_plan = plan.make(reading.read(STUDY, "study.yaml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(study_plan)
    return study_plan, folder


def numbers(workspace, scenario: str, method: str) -> dict[tuple[str, str, str], dict]:
    study_plan, folder = workspace
    (case,) = [c for c in study_plan.cases if (c.scenario.name, c.method) == (scenario, method)]
    return {(r.attack, r.metric, about(r)): r for r in rows_of.read(folder / case.metrics)}


def test_every_scenario_and_method_has_its_numbers(workspace):
    for case in workspace[0].cases:
        table = numbers(workspace, case.scenario.name, case.method)
        if case.scenario.name == "halves":
            assert {metric for _, metric, _ in table} >= {"highly_memorized", "less_memorized"}
            continue
        for name in ("privacy", "trained"):
            assert 0 <= table["ruli", f"{name}_auc", ""].value <= 1, (case.scenario.name, case.method)
        assert table["blind", "label_overlap", ""].n > 0
        assert table["", "accuracy", "role=forget"].n >= 24
        # only what retrains, or is compared with it, has an efficacy
        assert np.isnan(table["ruli", "efficacy_auc", ""].value) == (case.scenario.name in ("mixed", "canary"))
    assert ("ruli", "privacy_auc", "target=protected") in numbers(workspace, "mixed", "none")


def test_the_selection_chose_the_targets(workspace):
    study_plan, folder = workspace
    (node,) = study_plan.nodes["selection"].values()
    selection = Selection.read(folder / node.outputs["selection"], 210)
    for scenario, kinds in (("mixed", ("vulnerable", "protected")), ("canary", ("vulnerable",))):
        (case,) = [c for c in study_plan.cases if (c.scenario.name, c.method) == (scenario, "none")]
        members = [Membership.read(folder / path) for path in case.splits]
        targets = members[0].weight > 0
        size = 15 if scenario == "mixed" else 24
        assert [int((targets & getattr(selection, kind)).sum()) for kind in kinds] == [size] * len(kinds)
        assert targets.sum() == size * len(kinds)
        assert [bool(m.shadow.all()) for m in members] == [False, True]
        for member in members:
            np.testing.assert_array_equal(member.memorised, selection.ratio)


def test_batches_that_are_ranked_by_memorisation_give_other_models_than_random_ones(workspace):
    study_plan, folder = workspace
    cases = {c.method: c for c in study_plan.cases if c.scenario.name == "canary"}
    logits = [Logits.read(folder / cases[method].unlearned[0]).logits for method in ("none", "scrub", "scrub_ranked")]
    for first, second in itertools.combinations(logits, 2):
        assert not np.array_equal(first, second)


def test_every_population_is_trained_and_unlearned_as_it_was_drawn(workspace):
    study_plan, folder = workspace
    cases = {c.method: c for c in study_plan.cases if c.scenario.name == "random"}
    counts = [len(Membership.read(folder / path).seed) for path in cases["none"].splits]
    assert counts == [3, 12]
    logits = {method: [Logits.read(folder / path).logits for path in case.unlearned] for method, case in cases.items()}
    for method, made_by in logits.items():
        assert [len(part) for part in made_by] == counts, method
        assert cases[method].originals == cases["none"].unlearned
    # originals stay as they are under none only, and a control shares no model with the retrained
    for first, second in (("none", "finetune"), ("none", "retrain"), ("retrain", "retrain_control")):
        assert not any(np.array_equal(a, b) for a, b in zip(logits[first], logits[second], strict=True))


def names(config) -> dict[str, set[str]]:
    return {stage: set(nodes) for stage, nodes in plan.make(reading.read(config, "study.yaml")).nodes.items()}


def scenarios(**changes) -> dict:
    return {**STUDY, "scenarios": {**STUDY["scenarios"], **changes}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mixed": {"protocol": {"target_set": "canary", "select_from": "nowhere"}}}, "names no 'nowhere' here; name"),
        ({"mixed": {"protocol": {"target_set": "canary", "select_from": "random"}}}, "which selects nothing; name hal"),
        ({"mixed": {"protocol": {"target_set": "canary", "select_from": None}}}, "select_from: is missing; name hal"),
        ({"mixed": {"protocol": {"target_set": "canary"}, "data": {"label_noise": 0.1}}}, "no variant has the same"),
        ({"halves": {"protocol": {"name": "lira_selection"}}}, "methods.retrain: must be left out for the protocol"),
    ],
)
def test_a_selection_that_cannot_be_made_is_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        reading.read(scenarios(**changes), "study.yaml")


def test_a_selection_is_that_of_the_same_place_on_shared_axes():
    noise = {"data.label_noise": [0.1, 0.3]}
    halves = {**STUDY["scenarios"]["halves"], "vary": noise}
    config = scenarios(halves=halves, mixed={**STUDY["scenarios"]["mixed"], "vary": noise})
    del config["scenarios"]["canary"]
    study_plan = plan.make(reading.read(config, "study.yaml"))
    assert len(study_plan.nodes["selection"]) == 2
    for node in study_plan.nodes["splits"].values():
        for path in node.inputs.get("selection", []):
            assert ("noise0.1" in node.name) == ("noise0.1" in path)
