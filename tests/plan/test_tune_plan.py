"""What tuning adds to a plan, and what is said of studies that cannot be tuned."""

import pytest
from plan_cases import BASE, changed, planned
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import parameters

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


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ({"defaults/methods/none": {"tune": {}}}, "declares no TUNE"),
        ({"defaults/methods/salun/tune/space": {"lrr": [1.0]}}, "did you mean 'lr'"),
        ({"defaults/methods/salun/tune/space": {"lr": [-1.0]}}, "lr"),
        ({"defaults/methods/salun/tune/space": {"lr": []}}, "has no value"),
        ({"defaults/methods/salun/tune/space": {"lr": {"low": 2.0, "high": 1.0}}}, "at most high"),
        ({"defaults/methods/salun_published": {"name": "salun", "lr": 0.5}}, "is made by the study itself"),
        ({"defaults/methods": {"none": {}, "salun": {"tune": {}}}}, "must hold retrain"),
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
