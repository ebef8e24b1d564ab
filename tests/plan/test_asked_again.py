"""What is asked of models whose weights change after unlearning."""

from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from plan_cases import BASE, changed


def nodes(**metrics):
    whole = plan.make(reading.read(changed(BASE, {"scenarios/main": {"metrics": metrics}}), "own.yaml"))
    return list(whole.nodes["signals"].values())


def test_one_job_asks_all_that_is_asked_of_changed_models():
    alone, both, taught = nodes(quantised={}), nodes(quantised={"bits": [4, 3]}, relearn={}), nodes(relearn={})
    assert len(alone) == len(both) == len(taught) > 0
    assert {(node.settings["steps"], tuple(node.settings["bits"])) for node in alone} == {(0, (8, 4))}
    assert {(node.settings["steps"], tuple(node.settings["bits"])) for node in both} == {(16, (4, 3))}
    assert all("bits" not in node.settings for node in taught)
