"""Sequences of requests: what is planned, and what each job is given."""

import itertools

import pytest

from plan_cases import BASE, SEQUENCE, changed, nodes_of_requests, planned, rebuilt


def test_one_request_names_the_same_files_as_none():
    assert rebuilt(planned(BASE), planned(changed(BASE, {"defaults/protocol/requests": 1}))) == {}


def test_a_request_is_made_to_what_the_one_before_left():
    plan = planned(SEQUENCE)
    assert {case.scenario.setting for case in plan.cases} == {f"request={i}" for i in (1, 2, 3)}
    (train,) = plan.nodes["train"].values()
    for method in ("finetune", "salun"):
        chain, together = nodes_of_requests(plan, method), nodes_of_requests(plan, f"{method}_at_once")
        for earlier, later in itertools.pairwise(chain):
            assert later.inputs["trained"] == [earlier.outputs["models"]]
        assert together[0] is chain[0]
        assert all(node.settings["at_once"] is True for node in together[1:])
        assert all(node.inputs["trained"] == [train.outputs["models"]] for node in together)
    assert all(node.inputs["trained"] == [train.outputs["models"]] for node in nodes_of_requests(plan, "retrain"))
    assert not {"none_at_once", "retrain_at_once"} & {case.method for case in plan.cases}


WRONG = {
    "recipe.record_updates: must be false with several requests": {"defaults/recipe/record_updates": True},
    "vary.request: must have another name": {"scenarios/main": {"vary": {"request": {"a": {"data": {"size": 400}}}}}},
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_what_a_sequence_does_not_allow_is_said(sentence):
    with pytest.raises(ValueError, match=sentence):
        planned(changed(SEQUENCE, WRONG[sentence]))
