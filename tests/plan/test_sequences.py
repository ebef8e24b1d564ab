"""Sequences of requests: what is planned, and what each job is given."""

import itertools
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from unlearning_audit.evaluation.arrays import Membership

import data as data_script
import splits as splits_script
from plan_cases import BASE, changed, planned, rebuilt

SEQUENCE = changed(BASE, {"defaults/protocol": {"name": "swap", "alpha": 0.25, "pairs": 2, "requests": 3}})


def test_one_request_names_the_same_files_as_none():
    base = planned(BASE)
    assert rebuilt(base, planned(changed(BASE, {"defaults/protocol/requests": 1}))) == {}


def test_a_request_is_made_to_what_the_one_before_left():
    plan = planned(SEQUENCE)
    by_path = {node.outputs["models"]: node for node in plan.nodes["unlearn"].values()}
    assert {case.scenario.setting for case in plan.cases} == {f"request={i}" for i in (1, 2, 3)}
    assert len(plan.nodes["train"]) == 1

    def node_of(method, request):
        (case,) = [c for c in plan.cases if (c.method, c.scenario.request) == (method, request)]
        return by_path[case.unlearned[0].replace("logits.npz", "models.safetensors")]

    for method in ("finetune", "salun"):
        chain = [node_of(method, request) for request in (1, 2, 3)]
        for earlier, later in itertools.pairwise(chain):
            assert later.inputs["trained"] == [earlier.outputs["models"]]
        together = [node_of(f"{method}_at_once", request) for request in (1, 2, 3)]
        assert together[0] is chain[0]
        for node in together[1:]:
            assert node.inputs["trained"] == chain[0].inputs["trained"]
            assert node.settings["at_once"] is True
    for request in (1, 2, 3):
        assert node_of("retrain", request).inputs["trained"] == node_of("retrain", 1).inputs["trained"]
    assert not [case for case in plan.cases if case.method in ("none_at_once", "retrain_at_once")]


WRONG = {
    "recipe.record_updates: must be false with several requests": {"defaults/recipe/record_updates": True},
    "vary.request: must have another name": {"scenarios/main": {"vary": {"request": {"a": {"data": {"size": 400}}}}}},
    "methods.mine_at_once: must not end with _at_once": {"defaults/methods/mine_at_once": {"name": "ssd"}},
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_what_a_sequence_does_not_allow_is_said(sentence):
    with pytest.raises(ValueError, match=sentence):
        planned(changed(SEQUENCE, WRONG[sentence]))


# ---------------------------------------------------------------- jobs

COUNTING = '''
"""Add the number of samples to forget to every weight, and 1000 times that of samples to keep."""
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def unlearn(bank, forget, retain, options):
    bank.edit(lambda name, value: value + forget.index.shape[1] + 1000 * retain.index.shape[1])
'''


def test_a_method_is_given_the_newest_request_and_what_is_to_be_kept_then(tmp_path, monkeypatch):
    import train as train_script
    import unlearn as unlearn_script

    monkeypatch.chdir(tmp_path)
    (tmp_path / "counting.py").write_text(COUNTING)
    study = changed(SEQUENCE, {
        "defaults/methods": {"none": {}, "counting": {"file": "counting.py"}}, "defaults/recipe/epochs": 1,
        "defaults/protocol/pairs": 1, "defaults/data/label_noise": 0.0,
    })  # fmt: skip
    plan = planned(study)
    (node,) = plan.nodes["data"].values()
    data_script.data(_at(node, "data"), settings=node.settings, place=node.place)
    for node in plan.nodes["splits"].values():
        how = {"settings": node.settings, "place": node.place}
        splits_script.splits(**node.inputs, membership=_at(node, "membership"), **how)
    (node,) = plan.nodes["train"].values()
    outputs = {name: _at(node, name) for name in ("models", "logits")}
    train_script.train(**node.inputs, **outputs, settings=node.settings, place=node.place)
    weights = {0: load_file(outputs["models"])}
    for request in (1, 2, 3):
        for method in ("counting", "counting_at_once"):
            (case,) = [c for c in plan.cases if (c.method, c.scenario.request) == (method, request)]
            (node,) = [n for n in plan.nodes["unlearn"].values() if n.outputs["logits"] == case.unlearned[0]]
            outputs = {name: _at(node, name) for name in ("models", "logits")}
            unlearn_script.unlearn(**node.inputs, **outputs, settings=node.settings, place=node.place)
            weights[request if method == "counting" else -request] = load_file(outputs["models"])
    member = Membership.read(_at(next(iter(plan.nodes["splits"].values())), "membership"))
    forgotten, train = int(member.forget[0].sum()), int(member.train[0].sum())

    def moved(earlier, later):
        (name, *_) = weights[earlier]
        return round(float((weights[later][name] - weights[earlier][name]).mean()))

    for request in (1, 2, 3):
        retained = 1000 * (train - request * forgotten)
        assert moved(request - 1, request) == forgotten + retained
        assert moved(0, -request) == request * forgotten + retained


def _at(node, output):
    """The path of a node's output, in a folder that is there."""
    path = Path(node.outputs[output])
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)
