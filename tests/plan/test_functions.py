"""A user's function in a plan: found without naming an adapter, called by its own name, swept, and checked early."""

import pytest
from unlearning_audit.study.messages import StudyError

from plan_cases import BASE, changed, planned

FUNCTION = "import {imported}\n\n\ndef forget(net, retain, forget, rate, momentum=0.9):\n    return net\n"


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FUNCTION.format(imported="math"))
    return tmp_path / "mine.py"


def study(**fields):
    return changed(BASE, {"defaults/methods/mine": {"file": "mine.py", "function": "forget", **fields}})


def labels(plan, stage="unlearn"):
    return {name.rsplit("-", 2)[1] for name in plan.nodes[stage]}


def test_it_is_called_by_the_name_that_the_study_gives_it():
    plan = planned(study(options={"rate": 0.1}))
    assert "mine" in labels(plan)
    assert "classic" not in {part for name in plan.nodes["unlearn"] for part in name.split("-")}
    assert "mine" in labels(plan, "metrics")


def test_its_options_are_swept():
    swept = {"defaults/vary": {"methods.mine.options.rate": [0.1, 0.2, 0.4]}}
    plan = planned(changed(study(options={"rate": 1, "momentum": 0.5}), swept))
    options = [n.settings["method_options"]["options"] for n in plan.nodes["unlearn"].values() if "-mine-" in n.name]
    assert {values["rate"] for values in options} == {0.1, 0.2, 0.4}
    assert {values["momentum"] for values in options} == {0.5}


@pytest.mark.parametrize(
    ("fields", "imported", "sentence"),
    [
        ({}, "math", "methods.mine: mine.py: forget: the parameter 'rate' is not known; set options.rate"),
        ({"options": {"rate": 1, "momentun": 2}}, "math", "there is no parameter 'momentun', did you mean 'momentum'?"),
        ({"options": {"rate": 1}, "function": "forgot"}, "math", "a function forgot is missing; define it"),
        ({"options": {"rate": 1}}, "wandb_of_nobody", "it imports wandb_of_nobody, which is not installed here; pip"),
        ({"options": {"rate": 1}, "give": {"net": "modl"}}, "math", "did you mean 'model'?"),
    ],
)
def test_what_will_fail_is_told_before_anything_is_planned(file, fields, imported, sentence):
    file.write_text(FUNCTION.format(imported=imported))
    with pytest.raises(StudyError) as error:
        planned(study(**fields))
    assert sentence in str(error.value)


def test_packages_that_unlearning_does_without_are_not_missed(file):
    (file.parent / "near_mine.py").write_text("import absent_two\n")
    file.write_text(FUNCTION.format(imported="absent_one, near_mine"))
    with pytest.raises(
        StudyError, match=r"imports absent_one, absent_two, which are not .*without: \[absent_one, absent_tw"
    ):
        planned(study(options={"rate": 1}))
    with pytest.raises(StudyError, match=r"it imports absent_two, which is not installed here"):
        planned(study(options={"rate": 1}, without=["absent_one"]))
    planned(study(options={"rate": 1}, without=["absent_one", "absent_two"]))


def test_what_a_neighbour_imports_is_missed_as_well(file):
    tried = "try:\n    import absent_one\nexcept ImportError:\n    pass\n"
    (file.parent / "near_mine.py").write_text(f"{tried}import absent_two\n")
    file.write_text(FUNCTION.format(imported="near_mine"))
    with pytest.raises(StudyError, match="it imports absent_two, which is not installed here"):
        planned(study(options={"rate": 1}))
