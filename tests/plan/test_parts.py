"""What is read of models is made by the job that makes them, and later by a job of its own, which trains nothing."""

from pathlib import Path

import pytest
from unlearning_audit.artifacts.files import write_spec

from plan_cases import BASE, changed, planned, rebuilt

ASKED = changed(BASE, {"defaults/metrics": {"efficacy_on_pairs": {}, "relearn": {}}})


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def make(plan):
    """Leave behind what planning looks at, as a run does: records, and logs of jobs of their own."""
    for node in plan.all():
        spec = Path(node.outputs["spec"])
        spec.parent.mkdir(parents=True, exist_ok=True)
        write_spec(spec, {"settings": node.settings})
        if node.within is None:
            spec.with_name("log.txt").touch()


def parts(plan):
    """Name of each part → that of the node whose job makes it."""
    makers = [node for stage in ("train", "unlearn") for node in plan.nodes[stage].values()]
    return {name: node.name for node in makers for name in node.place.get("parts", {})}


def jobs(plan):
    """How many nodes of each stage have a job of their own and do not lie here."""
    lacking = [node for node in plan.all() if not node.within and not Path(node.outputs["spec"]).exists()]
    return {stage: count for stage in plan.nodes if (count := sum(node.stage == stage for node in lacking))}


def test_models_are_asked_by_the_job_that_makes_them():
    plan = planned(ASKED)
    asked = plan.nodes["signals"]
    assert len(asked) == 2 * (len(plan.nodes["train"]) + len(plan.nodes["unlearn"]))
    assert parts(plan) == {name: node.within.name for name, node in asked.items()}
    for node in asked.values():
        assert node.inputs["models"] == [node.within.outputs["models"]]
        part = node.within.place["parts"][node.name]
        assert (part["settings"], part["inputs"], part["outputs"]) == (node.settings, node.inputs, node.outputs)
    assert set(jobs(plan)) == {"data", "splits", "train", "unlearn", "attack", "metrics", "comparisons"}


def test_a_job_awaits_what_jobs_make_and_is_told_where_all_lies():
    plan = planned(ASKED)
    made = {path for node in plan.all() if not node.within for path in node.outputs.values()}
    for node in plan.nodes["metrics"].values():
        awaited = {path for paths in node.awaited.values() for path in ([paths] if isinstance(paths, str) else paths)}
        assert awaited < made
        assert node.place["inputs"] == node.inputs
        assert node.inputs["relearned"]
        assert "relearned" not in node.awaited


def test_a_signal_that_is_asked_later_trains_nothing_and_renames_no_model():
    first = planned(BASE)
    make(first)
    later = planned(ASKED)
    assert set(rebuilt(first, later)) == {"signals", "metrics", "comparisons"}
    assert parts(later) == {}
    models = len(later.nodes["train"]) + len(later.nodes["unlearn"])
    assert jobs(later) == {"signals": 2 * models, "metrics": len(later.cases), "comparisons": 1}
    for node in later.nodes["metrics"].values():
        assert node.awaited == node.inputs
        assert "inputs" not in node.place


@pytest.mark.parametrize("before", [[], [BASE]])
def test_who_made_a_signal_stays_so_in_later_plans(before):
    for study in before:
        make(planned(study))
    plan = planned(ASKED)
    make(plan)
    again = planned(ASKED)
    assert jobs(again) == {}
    assert [(node.name, node.awaited) for node in again.all()] == [(node.name, node.awaited) for node in plan.all()]


def test_a_signal_that_was_lost_is_read_anew():
    make(planned(ASKED))
    lost = next(iter(planned(ASKED).nodes["signals"].values()))
    Path(lost.outputs["spec"]).unlink()
    assert jobs(planned(ASKED)) == {"signals": 1}
