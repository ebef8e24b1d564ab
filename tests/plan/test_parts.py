"""Parts of jobs: what is read of models, by the job that makes them or later by one of its own; and each attack and
metric, by a key of its own."""

from pathlib import Path

import pytest
from unlearning_audit.store.files import write_spec

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
    assert set(jobs(plan)) == {"data", "splits", "train", "unlearn", "metrics", "comparisons"}


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


def test_a_signal_that_was_lost_is_read_anew():
    make(planned(ASKED))
    lost = next(iter(planned(ASKED).nodes["signals"].values()))
    Path(lost.outputs["spec"]).unlink()
    assert jobs(planned(ASKED)) == {"signals": 1}


def keys(plan):
    """(case, kind, name) → the key of each attack and each metric."""
    return {
        (node.label, position, kind, name): key
        for position, node in enumerate(plan.nodes["metrics"].values())
        for kind in ("attacks", "metrics")
        for name, key in node.place[kind]["keys"].items()
    }


def other(before, after):
    """Which attacks and metrics have another key, or none before."""
    return {(kind, name) for (_, _, kind, name), key in after.items() - before.items()}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"defaults/metrics/relearn": {"steps": 4}}, {("metrics", "relearn")}),
        ({"defaults/metrics/quantised": {}}, {("metrics", "relearn"), ("metrics", "quantised")}),  # one signal of both
        ({"defaults/metrics/representation": {}}, {("metrics", "representation")}),
        ({"tables": {}, "margins": {"advantage": 0.1}}, set()),
    ],
)
def test_an_option_of_a_metric_or_a_metric_more_is_a_part_of_its_own(edits, expected):
    before, after = (keys(planned(study)) for study in (ASKED, changed(ASKED, edits)))
    assert len(set(before.values())) == len(before)
    assert other(before, after) == expected


def test_a_method_more_trains_nothing_unlearns_once_and_changes_no_part_of_the_others():
    before, after = planned(ASKED), planned(changed(ASKED, {"defaults/methods/ssd": {}}))
    changes = rebuilt(before, after)
    assert {stage: (gone, new) for stage, (gone, _, new) in changes.items()} == {
        "unlearn": (0, 2), "signals": (0, 4), "metrics": (0, 1), "comparisons": (1, 1),
    }  # fmt: skip
    make(before)
    assert jobs(planned(changed(ASKED, {"defaults/methods/ssd": {}}))) == {"unlearn": 2, "metrics": 1, "comparisons": 1}
    values = set(keys(after).values())
    assert set(keys(before).values()) < values
