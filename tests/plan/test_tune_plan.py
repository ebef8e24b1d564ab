"""What tuning and shams add to a plan, and what is said of studies that cannot have them."""

from pathlib import Path

import pytest
from unlearning_audit.plugins import registry
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import parameters

from plan_cases import BASE, changed, planned

TUNED = changed(BASE, {"defaults/methods/salun": {"epochs": 1, "tune": {"trials": 4}}})


def files(node):
    return {path for paths in node.inputs.values() for path in ([paths] if isinstance(paths, str) else paths)}


def test_the_audited_models_are_never_seen_by_tuning():
    plan = planned(TUNED)
    (tune,) = plan.nodes["tune"].values()
    audited = {path for case in plan.cases for path in (*case.splits, *case.originals, *case.unlearned)}
    assert not audited & files(tune)
    seeds = {name: node.settings["seed"] for name, node in plan.nodes["splits"].items()}
    (tuning_seed,) = (seed for name, seed in seeds.items() if f"results/splits/{name}/membership.npz" in files(tune))
    assert list(seeds.values()).count(tuning_seed) == 1


def test_a_tuned_method_reads_what_was_chosen_and_the_published_one_does_not():
    plan = planned(TUNED)
    (tune,) = plan.nodes["tune"].values()
    reading_it = [node for node in plan.nodes["unlearn"].values() if tune.outputs["chosen"] in files(node)]
    assert len(reading_it) == 2  # two batches
    assert {case.method for case in plan.cases} >= {"salun", "salun_published"}
    published = next(case for case in plan.cases if case.method == "salun_published")
    before = next(case for case in planned(BASE).cases if case.method == "salun")
    assert published.unlearned == before.unlearned


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
    scenarios = {"scenarios/again": {"data": {"label_noise_seed": 1}}, "scenarios/other": {
        "data": {"name": "breast_cancer", "test_size": 69}}}  # fmt: skip
    order = parameters.tuning(planned(changed(TUNED, scenarios)))
    places = [place["scenario"] for place in order["places"]]
    assert places == ["main", "other"]
    assert {method["method"] for method in order["places"][0]["methods"]} >= {"none", "salun", "salun_published"}


def test_a_study_says_its_own_space_over_that_of_the_file():
    edited = changed(TUNED, {"defaults/methods/salun/tune/space": {"keep": [0.2, 0.4]}})
    space = reading.read(edited, "study.yaml").scenarios[0].methods["salun"].tune.space
    assert space["keep"] == [0.2, 0.4]
    assert space["lr"].log


FUNCTION = """TUNE = {"lr": {"low": 0.01, "high": 0.1, "log": True}, "batch_size": [32, 64]}


def unlearn(model, retain_loader, lr=0.1, epochs=1):
    pass
"""


@pytest.fixture
def in_folder_of_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FUNCTION)


def with_function(**fields):
    return changed(BASE, {"defaults/methods/mine": {"file": "mine.py", "options": {"lr": 0.05}, **fields}})


def test_an_edit_of_a_function_renews_its_tuning(in_folder_of_function):
    study = with_function(tune={})
    (before,) = planned(study).nodes["tune"]
    assert list(planned(study).nodes["tune"]) == [before]
    Path("mine.py").write_text(FUNCTION.replace("pass", "model.eval()"))
    assert list(planned(study).nodes["tune"]) != [before]


def test_what_a_function_lacks_for_tuning_is_said(in_folder_of_function):
    sentence = r"space\.lr: there is no option 'lr' \(known: .*\); write an option of the function as options\.lr"
    with pytest.raises(StudyError, match=sentence):
        reading.read(with_function(tune={"space": {"lr": [0.1]}}), "study.yaml")
    with pytest.raises(
        StudyError, match=r"mine\.py: unlearn: options\.lrr: there is no parameter 'lrr', did you mean 'lr'"
    ):
        reading.read(with_function(tune={"space": {"options.lrr": [0.1]}}), "study.yaml")
    Path("mine.py").write_text(FUNCTION.partition("\n")[2])
    with pytest.raises(
        StudyError, match=r"mine\.py declares no TUNE; map options .* such as options\.lr: \[0\.1, 0\.01\]"
    ):
        reading.read(with_function(tune={}), "study.yaml")


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
        ({"defaults/methods/salun/tune/objective": "speed"}, "'metrics' or 'accuracy'"),
        (
            {"defaults/protocol": {"name": "competition"}, "defaults/attacks": {}, "tables": {}, "figures": {}},
            "random_splits or swap",
        ),
    ],
)
def test_what_cannot_be_tuned_is_said_in_a_sentence(edits, sentence):
    with pytest.raises(StudyError, match=sentence):
        reading.read(changed(TUNED, edits), "study.yaml")


SHAM = changed(BASE, {"defaults/methods/sham_salun": {"name": "sham", "like": "salun"}})


def test_a_sham_reads_the_models_that_it_is_like_and_is_compared_alone():
    plan = planned(SHAM)
    shams = [node for node in plan.nodes["unlearn"].values() if node.settings["method"] == "sham"]
    like = [node for node in plan.nodes["unlearn"].values() if node.settings["method"] == "salun"]
    assert {path for node in shams for path in node.inputs["like"]} == {node.outputs["models"] for node in like}
    assert not any("like" in node.inputs and node.inputs["like"] for node in like)
    assert "sham_salun" not in {case.method for case in plan.cases}
    assert {node.settings.get("shams", {}).get("sham_salun") for node in plan.nodes["comparisons"].values()} == {
        "salun"
    }


@pytest.mark.parametrize("like", ["none", "retrain", "sham_salun", "nobody"])
def test_a_sham_of_what_changes_no_models_is_refused(like):
    with pytest.raises(ValueError, match=r"a sham cannot be like .*; choose a method of this scenario:"):
        planned(changed(SHAM, {"defaults/methods/sham_salun/like": like}))
