"""What tuning and shams add to a plan, and what is said of studies that cannot have them."""

from pathlib import Path

import pytest
from unlearning_audit.plugins import registry
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import parameters

from plan_cases import BASE, case, changed, files, planned

TUNED = changed(BASE, {"defaults/methods/salun": {"epochs": 1, "tune": {"trials": 4}}})


def test_the_audited_models_are_never_seen_by_tuning():
    plan = planned(TUNED)
    (tune,) = plan.nodes["tune"].values()
    audited = {path for case in plan.cases for path in (*case.splits, *case.originals, *case.unlearned)}
    assert not audited & {*files(tune)}
    seeds = [node.settings["seed"] for node in plan.nodes["splits"].values()]
    (own,) = (node for node in plan.nodes["splits"].values() if node.outputs["membership"] in files(tune))
    assert seeds.count(own.settings["seed"]) == 1


def test_a_tuned_method_reads_what_was_chosen_and_the_published_one_does_not():
    plan = planned(TUNED)
    (tune,) = plan.nodes["tune"].values()
    readers = [node for node in plan.nodes["unlearn"].values() if tune.outputs["chosen"] in files(node)]
    assert len(readers) == 2  # two batches
    assert {node.outputs["logits"] for node in readers} == {*case(plan, "salun").unlearned}
    assert case(plan, "salun_published").unlearned == case(planned(BASE), "salun").unlearned


def test_trials_are_judged_by_what_is_asked_for_and_by_no_file_of_a_user(tmp_path):
    own = tmp_path / "accuracy.py"
    own.write_text((registry.LIBRARY / "metrics/accuracy.py").read_text())
    study = changed(TUNED, {"defaults/metrics/mine": {"file": str(own)}})
    for objective, attacks, metrics in (
        ("metrics", {"confidence", "kde", "random"}, {"accuracy", "swap"}), ("accuracy", set(), {"accuracy"})
    ):  # fmt: skip
        plan = planned(changed(study, {"defaults/methods/salun/tune/objective": objective}))
        (tune,) = plan.nodes["tune"].values()
        assert (set(tune.settings["attacks"]), set(tune.settings["metrics"])) == (attacks, metrics)


def test_methods_stand_over_scenarios_that_share_no_data():
    order = parameters.tuning(planned(changed(TUNED, {
        "scenarios/again": {"data": {"label_noise_seed": 1}},
        "scenarios/other": {"data": {"name": "breast_cancer", "test_size": 69}},
    })))  # fmt: skip
    assert [place["scenario"] for place in order["places"]] == ["main", "other"]
    assert {method["method"] for method in order["places"][0]["methods"]} >= {"none", "salun", "salun_published"}


def test_a_study_says_its_own_space_over_that_of_the_file():
    edited = changed(TUNED, {"defaults/methods/salun/tune/space": {"keep": [0.2, 0.4]}})
    space = reading.read(edited, "study.yaml").scenarios[0].methods["salun"].tune.space
    assert (space["keep"], space["lr"].log) == ([0.2, 0.4], True)


FUNCTION = """TUNE = {"lr": {"low": 0.01, "high": 0.1, "log": True}, "batch_size": [32, 64]}


def unlearn(model, retain_loader, lr=0.1, epochs=1):
    pass
"""


def with_function(text=FUNCTION, **tune):
    Path("mine.py").write_text(text)
    return changed(BASE, {"defaults/methods/mine": {"file": "mine.py", "options": {"lr": 0.05}, "tune": tune}})


def test_an_edit_of_a_function_renews_its_tuning(workdir):
    before, after = (planned(with_function(FUNCTION.replace("pass", text))).nodes["tune"] for text in ("pass", "1"))
    assert len(before) == len(after) == 1
    assert before.keys() != after.keys()


@pytest.mark.parametrize(
    ("text", "tune", "sentence"),
    [
        (FUNCTION, {"space": {"lr": [0.1]}},
         r"space\.lr: there is no option 'lr' \(known: .*\); write an option of the function as options\.lr"),
        (FUNCTION, {"space": {"options.lrr": [0.1]}},
         r"mine\.py: unlearn: options\.lrr: there is no parameter 'lrr', did you mean 'lr'"),
        (FUNCTION.partition("\n")[2], {},
         r"mine\.py declares no TUNE; map options .* such as options\.lr: \[0\.1, 0\.01\]"),
    ],
    ids=["option", "parameter", "TUNE"],
)  # fmt: skip
def test_what_a_function_lacks_for_tuning_is_said(workdir, text, tune, sentence):
    with pytest.raises(StudyError, match=sentence):
        reading.read(with_function(text, **tune), "study.yaml")


COMPETITION = {"defaults/protocol": {"name": "competition"}, "defaults/attacks": {}, "tables": {}, "figures": {}}


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ({"defaults/methods/none": {"tune": {}}}, "declares no TUNE"),
        ({"defaults/methods/salun/tune/space": {"lrr": [1.0]}}, "did you mean 'lr'"),
        ({"defaults/methods/salun/tune/space": {"lr": [-1.0]}}, "lr"),
        ({"defaults/methods/salun/tune/space": {"lr": []}}, "has no value"),
        ({"defaults/methods/salun/tune/space": {"lr": {"low": 2.0, "high": 1.0}}}, "at most high"),
        ({"defaults/methods/salun_published": {"name": "salun", "lr": 0.5}}, "is made by the study"),
        ({"defaults/methods": {"none": {}, "salun": {"tune": {}}}}, "must list retrain"),
        ({"defaults/protocol/requests": 2}, "in a sequence"),
        (COMPETITION, "random_splits or swap"),
    ],
)
def test_what_cannot_be_tuned_is_said_in_a_sentence(edits, sentence):
    with pytest.raises(StudyError, match=sentence):
        reading.read(changed(TUNED, edits), "study.yaml")


SHAM = changed(BASE, {"defaults/methods/sham_salun": {"name": "sham", "like": "salun"}})


def test_a_sham_reads_the_models_that_it_is_like_and_is_compared_alone():
    plan = planned(SHAM)
    by_method = {name: [n for n in plan.nodes["unlearn"].values() if n.settings["method"] == name]
                 for name in ("sham", "salun")}  # fmt: skip
    like = {node.outputs["models"] for node in by_method["salun"]}
    assert {path for node in by_method["sham"] for path in node.inputs["like"]} == like
    assert not any(node.inputs.get("like") for node in by_method["salun"])
    assert "sham_salun" not in {case.method for case in plan.cases}
    (comparison,) = plan.nodes["comparisons"].values()
    assert comparison.settings["shams"] == {"sham_salun": "salun"}


@pytest.mark.parametrize("like", ["retrain", "sham_salun", "nobody"])
def test_a_sham_of_what_changes_no_models_is_refused(like):
    with pytest.raises(ValueError, match=r"a sham cannot be like .*; choose a method of this scenario:"):
        planned(changed(SHAM, {"defaults/methods/sham_salun/like": like}))
