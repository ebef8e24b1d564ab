"""Sequences of requests: what is planned, and what each job is given."""

import itertools
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from unlearning_audit.evaluation.arrays import Membership

from plan_cases import BASE, changed, planned, rebuilt
from stage_runs import make

SEQUENCE = changed(BASE, {"defaults/protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "requests": 3}})
REQUESTS = (1, 2, 3)


def nodes_of(plan, method):
    """The node by which a method answers each request."""
    by_path = {node.outputs["logits"]: node for stage in ("train", "unlearn") for node in plan.nodes[stage].values()}
    cases = {case.scenario.request: by_path[case.unlearned[0]] for case in plan.cases if case.method == method}
    return [cases[request] for request in REQUESTS]


def test_one_request_names_the_same_files_as_none():
    assert rebuilt(planned(BASE), planned(changed(BASE, {"defaults/protocol/requests": 1}))) == {}


def test_a_request_is_made_to_what_the_one_before_left():
    plan = planned(SEQUENCE)
    assert {case.scenario.setting for case in plan.cases} == {f"request={i}" for i in REQUESTS}
    (train,) = plan.nodes["train"].values()
    for method in ("finetune", "salun"):
        chain, together = nodes_of(plan, method), nodes_of(plan, f"{method}_at_once")
        for earlier, later in itertools.pairwise(chain):
            assert later.inputs["trained"] == [earlier.outputs["models"]]
        assert together[0] is chain[0]
        assert all(node.settings["at_once"] is True for node in together[1:])
        assert all(node.inputs["trained"] == [train.outputs["models"]] for node in together)
    assert all(node.inputs["trained"] == [train.outputs["models"]] for node in nodes_of(plan, "retrain"))
    assert not {"none_at_once", "retrain_at_once"} & {case.method for case in plan.cases}


WRONG = {
    "recipe.record_updates: must be false with several requests": {"defaults/recipe/record_updates": True},
    "vary.request: must have another name": {"scenarios/main": {"vary": {"request": {"a": {"data": {"size": 400}}}}}},
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_what_a_sequence_does_not_allow_is_said(sentence):
    with pytest.raises(ValueError, match=sentence):
        planned(changed(SEQUENCE, WRONG[sentence]))


COUNTING = '''
"""Add the number of samples to forget to every weight, and 1000 times that of samples to keep."""
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def unlearn(stack, forget, retain, options):
    stack.edit(lambda name, value: value + forget.index.shape[1] + 1000 * retain.index.shape[1])
'''


def test_a_method_is_given_the_newest_request_and_what_is_to_be_kept_then(workdir):
    Path("counting.py").write_text(COUNTING)
    plan = planned(changed(SEQUENCE, {
        "defaults/methods": {"none": {}, "counting": {"file": "counting.py"}}, "defaults/recipe/epochs": 1,
        "defaults/protocol/pairs": 1, "defaults/data/label_noise": 0.0,
    }))  # fmt: skip

    def weights(node):
        make(node)
        return next(iter(load_file(node.outputs["models"]).values()))

    (train,) = plan.nodes["train"].values()
    before = [weights(train)]
    splits = Membership.read(next(iter(plan.nodes["splits"].values())).outputs["membership"])
    forgotten, kept = (int(mask[0].sum()) for mask in (splits.forget, splits.train))
    answers = zip(REQUESTS, nodes_of(plan, "counting"), nodes_of(plan, "counting_at_once"), strict=True)
    for request, chain, together in answers:
        retained = 1000 * (kept - request * forgotten)
        before.append(weights(chain))
        assert round(float((before[-1] - before[-2]).mean())) == forgotten + retained
        assert round(float((weights(together) - before[0]).mean())) == request * forgotten + retained
