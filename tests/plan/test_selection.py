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
AUDIT = {"splits": 2, "train": 2, "unlearn": 2, "metrics": 2, "comparisons": 1}
BOTH = {"splits": 4, "train": 4, "selection": 1, "unlearn": 2, "metrics": 3, "comparisons": 1}


def draws(plan, protocol):
    """The selections that the splits of a protocol read."""
    nodes = [node for node in plan.nodes["splits"].values() if node.settings["protocol"] == protocol]
    return {tuple(node.inputs.get("selection", ())) for node in nodes}


def test_the_plan_holds_both_scenarios_and_the_selection_between_them():
    plan = planned(STUDY)
    assert {stage: len(group) for stage, group in plan.nodes.items() if group} == {"data": 1, **BOTH}
    (selection,) = plan.nodes["selection"].values()
    assert draws(plan, "ruli") == {(selection.outputs["selection"],)}


@pytest.mark.parametrize(
    ("edit", "losses"),
    [
        ({"scenarios/halves/recipe": {"lr": 0.3}}, {**BOTH, "splits": 2}),
        ({"scenarios/halves/metrics": {"vulnerability": {"band": 0.1}}}, {**AUDIT, "selection": 1, "metrics": 3}),
        ({"scenarios/audit/recipe": {"lr": 0.3}}, {"train": 2, "unlearn": 2, "metrics": 2, "comparisons": 1}),
        ({"scenarios/audit/protocol/target_size": 33}, AUDIT),
        ({"scenarios/audit/methods/finetune/epochs": 2}, {"unlearn": 2, "metrics": 1, "comparisons": 1}),
    ],
)
def test_what_the_selection_depends_on_rebuilds_the_scenario_that_selects(edit, losses):
    changes = rebuilt(planned(STUDY), planned(changed(STUDY, edit)))
    assert {stage: (gone, new) for stage, (gone, _, new) in changes.items()} == {
        stage: (count, count) for stage, count in losses.items()
    }


@pytest.mark.parametrize("protocol", ["swap", "random_splits", "one_run"])
def test_what_is_memorised_most_or_least_is_drawn_by_the_selection(protocol):
    def study(**more):
        options = {"canaries": 20} if protocol == "one_run" else {"alpha": 0.1, "pairs": 2}
        attacks = {} if protocol == "one_run" else {"random": {}}
        edits = {"protocol": {"name": protocol, **options, **more}, "attacks": attacks}
        return planned(changed(STUDY, {f"scenarios/audit/{name}": value for name, value in edits.items()}))

    most, least = (study(memorised=which, select_from="halves") for which in ("most", "least"))
    (selection,) = most.nodes["selection"].values()
    for plan, read in ((most, {(selection.outputs["selection"],)}), (least, draws(most, protocol)), (study(), {()})):
        assert draws(plan, protocol) == read
    changes = rebuilt(most, least)
    assert changes["splits"][0] == changes["splits"][2] > 0
    assert "selection" not in changes


def test_memorisation_needs_a_scenario_that_selects():
    edits = {"scenarios/audit/protocol": {"name": "swap", "memorised": "most"}, "scenarios/audit/attacks": ["random"]}
    with pytest.raises(ValueError, match=r"scenarios\.audit\.protocol\.select_from: is missing; name halves"):
        planned(changed(STUDY, edits))
