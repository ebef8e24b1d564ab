"""A user's function in a plan: found without naming an adapter, called by its own name, swept, and checked early."""

import pytest
from unlearning_audit.study.messages import StudyError

from plan_cases import BASE, changed, labels, planned


@pytest.fixture(autouse=True)
def file(workdir):
    (workdir / "mine.py").write_text("def forget(net, retain, forget, rate, momentum=0.9):\n    return net\n")


def study(**fields):
    return changed(BASE, {"defaults/methods/mine": {"file": "mine.py", "function": "forget", **fields}})


def test_it_is_called_by_the_name_that_the_study_gives_it_and_its_options_are_swept():
    swept = {"defaults/vary": {"methods.mine.options.rate": [0.1, 0.2, 0.4]}}
    plan = planned(changed(study(options={"rate": 1, "momentum": 0.5}), swept))
    assert {label.split("-")[-1] for label in labels(plan, "unlearn")} == {"mine", "retrain", "finetune", "salun"}
    assert {label.split("-")[-1] for label in labels(plan, "metrics")} >= {"mine", "none"}
    options = [n.settings["method_options"]["options"] for n in plan.nodes["unlearn"].values() if "-mine-" in n.name]
    assert {(values["rate"], values["momentum"]) for values in options} == {(0.1, 0.5), (0.2, 0.5), (0.4, 0.5)}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "methods.mine: mine.py: forget: the parameter 'rate' is not known; set options.rate"),
        ({"options": {"rate": 1, "momentun": 2}}, "there is no parameter 'momentun', did you mean 'momentum'?"),
        ({"options": {"rate": 1}, "function": "forgot"}, "a function forgot is missing; define it"),
        ({"options": {"rate": 1}, "give": {"net": "modl"}}, "did you mean 'model'?"),
    ],
)
def test_what_will_fail_is_told_before_anything_is_planned(fields, sentence):
    with pytest.raises(StudyError) as error:
        planned(study(**fields))
    assert sentence in str(error.value)
