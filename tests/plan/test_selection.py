"""A scenario may choose its samples by the models of another one, and depends on exactly these."""

import pytest

from plan_cases import BASE, changed, planned, rebuilt

STUDY = changed(
    BASE,
    {
        "defaults/attacks": {}, "defaults/methods": {"none": {}}, "tables": {}, "figures": {}, "batch": 4,
        "scenarios": {
            "halves": {"protocol": {"name": "lira_selection", "pairs": 8}},
            "audit": {
                "protocol": {"name": "ruli", "target_set": "vulnerable", "target_size": 30, "shadow_blocks": 4,
                             "select_from": "halves"},
                "methods": {"none": {}, "finetune": {"epochs": 1}},
            },
        },
    },
)  # fmt: skip
HALVES, AUDIT = {"splits": 2, "train": 2, "selection": 1, "metrics": 1}, {
    "splits": 2, "train": 2, "unlearn": 2, "metrics": 2, "comparisons": 1,
}  # fmt: skip


def total(*parts):
    return {stage: sum(part.get(stage, 0) for part in parts) for part in parts for stage in part}


def test_the_plan_holds_both_scenarios_and_the_selection_between_them():
    nodes = planned(STUDY).nodes
    assert {stage: len(group) for stage, group in nodes.items() if group} == {"data": 1, **total(HALVES, AUDIT)}
    (selection,) = nodes["selection"].values()
    audited = [node for node in nodes["splits"].values() if node.settings["protocol"] == "ruli"]
    assert [node.inputs["selection"] for node in audited] == [[selection.outputs["selection"]]] * 2


@pytest.mark.parametrize(
    ("edit", "losses"),
    [
        ({"scenarios/halves/recipe": {"lr": 0.3}}, {**total(HALVES, AUDIT), "splits": 2}),
        ({"scenarios/halves/metrics": {"vulnerability": {"band": 0.1}}}, {**AUDIT, "selection": 1, "metrics": 3}),
        ({"scenarios/audit/recipe": {"lr": 0.3}}, {"train": 2, "unlearn": 2, "metrics": 2, "comparisons": 1}),
        ({"scenarios/audit/protocol/target_size": 33}, AUDIT),
        ({"scenarios/audit/methods/finetune/epochs": 2}, {"unlearn": 2, "metrics": 1, "comparisons": 1}),
    ],
)
def test_what_the_selection_depends_on_rebuilds_the_scenario_that_selects(edit, losses):
    before = planned(STUDY)
    changes = rebuilt(before, planned(changed(STUDY, edit)))
    assert {stage: counts[0] for stage, counts in changes.items()} == losses
    assert {stage: counts[2] for stage, counts in changes.items()} == losses


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "swap", "alpha": 0.1, "pairs": 2},
        {"name": "random_splits", "alpha": 0.1, "pairs": 2},
        {"name": "one_run", "canaries": 20},
    ],
    ids=lambda protocol: protocol["name"],
)
def test_what_is_memorised_most_or_least_is_drawn_by_the_selection(protocol):
    attacks = {} if protocol["name"] == "one_run" else {"random": {}}
    most, least, plain = (
        planned(changed(STUDY, {"scenarios/audit/protocol": {**protocol, **more}, "scenarios/audit/attacks": attacks}))
        for more in (
            {"memorised": "most", "select_from": "halves"},
            {"memorised": "least", "select_from": "halves"},
            {},
        )
    )
    (selection,) = most.nodes["selection"].values()
    for plan, selections in (
        (most, [selection.outputs["selection"]]),
        (least, [selection.outputs["selection"]]),
        (plain, []),
    ):
        draws = [node for node in plan.nodes["splits"].values() if node.settings["protocol"] == protocol["name"]]
        assert draws
        assert all(node.inputs.get("selection", []) == selections for node in draws)
    changes = rebuilt(most, least)
    assert changes["splits"][0] == changes["splits"][2] > 0
    assert "selection" not in changes


def test_memorisation_needs_a_scenario_that_selects():
    protocol = {"name": "swap", "memorised": "most"}
    with pytest.raises(ValueError, match=r"scenarios\.audit\.protocol\.select_from: is missing; name halves"):
        planned(changed(STUDY, {"scenarios/audit/protocol": protocol, "scenarios/audit/attacks": {"random": {}}}))
