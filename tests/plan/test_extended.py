"""A study that was made larger after its verdicts could be seen says so, unless that look was planned."""

from pathlib import Path

import pytest
from unlearning_audit.store.files import write_spec
from unlearning_audit.study import reading
from unlearning_audit.workflow import compared, plan

from plan_cases import BASE, changed

PAIRS = "defaults/protocol/pairs"


def planned(pairs: int, **edits) -> plan.Plan:
    return plan.make(reading.read(changed(BASE, {PAIRS: pairs, **edits})))


def make(whole: plan.Plan) -> None:
    """Leave behind what a run of the plan does, as far as planning looks at it."""
    for node in whole.all():
        paths = [path for value in node.inputs.values() for path in ([value] if isinstance(value, str) else value)]
        spec = Path(node.outputs["spec"])
        spec.parent.mkdir(parents=True, exist_ok=True)
        write_spec(spec, {"settings": node.settings, "inputs": sorted(paths)})


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def extended(whole: plan.Plan) -> list[dict]:
    return [place["extended"] for place in compared.comparisons(whole) if "extended" in place]


def test_more_pairs_after_a_look_are_named():
    make(planned(2))
    make(planned(4))
    assert extended(planned(6)) == [{"unit": "pairs", "from": [2, 4], "to": 6}]
    assert extended(planned(4)) == [{"unit": "pairs", "from": [2], "to": 4}]
    assert extended(planned(2)) == []


def test_other_methods_attacks_or_code_are_the_same_draws():
    few = {"none": {}, "retrain": {}, "finetune": {"epochs": 9}, "scrub": {}}
    make(planned(2, **{"defaults/attacks": {"loss": {}}, "defaults/methods": few}))
    growth = {"unit": "pairs", "from": [2], "to": 4}
    assert extended(planned(4)) == [growth | {"methods": ["finetune", "none", "retrain", "retrain_control"]}]
    assert extended(planned(4, **{"defaults/methods": few})) == [growth]


@pytest.mark.parametrize(
    "edit", [{"seed": 1}, {"defaults/data/label_noise": 0.1}, {"defaults/protocol/alpha": 0.2}], ids=str
)
def test_other_draws_are_another_study(edit):
    make(planned(2))
    assert extended(planned(4, **edit)) == []


def test_a_plan_made_after_the_look_comes_too_late():
    make(planned(2))
    assert extended(planned(4, looks=[2, 4])) == [{"unit": "pairs", "from": [2], "to": 4}]


def test_sizes_that_one_study_asks_for_are_its_parts():
    both = {"scenarios/larger": {"protocol": {"pairs": 4}}}
    make(planned(2, **both))
    assert extended(planned(2, **both)) == []


@pytest.mark.parametrize("stage", ["train", "splits", "data"])
def test_a_record_of_another_version_is_passed_over(stage):
    """One that does not say all that today's say."""
    first = planned(2)
    make(first)
    for node in first.nodes["metrics"].values():
        paths = [path for value in node.inputs.values() for path in ([value] if isinstance(value, str) else value)]
        write_spec(Path(node.outputs["spec"]), {"settings": {}, "inputs": [p for p in paths if f"/{stage}/" not in p]})
    assert extended(planned(4)) == []
