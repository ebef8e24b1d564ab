"""Parts of jobs: what is read of models, by the job that makes them or later by one of its own; and each attack and
metric, by a key of its own."""

from pathlib import Path

import pytest

from plan_cases import BASE, changed, make, missing, planned, rebuilt

pytestmark = pytest.mark.usefixtures("workdir")
ASKED = changed(BASE, {"defaults/metrics": {"efficacy_on_pairs": {}, "relearn": {}}})


def parts(plan):
    """Name of each part → that of the node whose job makes it."""
    makers = [node for stage in ("train", "unlearn") for node in plan.nodes[stage].values()]
    return {name: node.name for node in makers for name in node.place.get("parts", {})}


def test_models_are_asked_by_the_job_that_makes_them():
    plan = planned(ASKED)
    asked = plan.nodes["signals"]
    assert len(asked) == 2 * (len(plan.nodes["train"]) + len(plan.nodes["unlearn"]))
    assert parts(plan) == {name: node.within.name for name, node in asked.items()}
    for node in asked.values():
        assert node.inputs["models"] == [node.within.outputs["models"]]
        part = node.within.place["parts"][node.name]
        assert (part["settings"], part["inputs"], part["outputs"]) == (node.settings, node.inputs, node.outputs)
    assert set(missing(plan)) == {"data", "splits", "train", "unlearn", "metrics", "comparisons"}


def test_a_signal_that_is_asked_later_trains_nothing_and_renames_no_model():
    first = planned(BASE)
    make(first)
    later = planned(ASKED)
    assert set(rebuilt(first, later)) == {"signals", "metrics", "comparisons"}
    assert parts(later) == {}
    models = len(later.nodes["train"]) + len(later.nodes["unlearn"])
    assert missing(later) == {"signals": 2 * models, "metrics": len(later.cases), "comparisons": 1}
    for node in later.nodes["metrics"].values():
        assert (node.awaited, "inputs" in node.place) == (node.inputs, False)


def test_a_signal_that_was_lost_is_read_anew():
    make(planned(ASKED))
    lost = next(iter(planned(ASKED).nodes["signals"].values()))
    Path(lost.outputs["spec"]).unlink()
    assert missing(planned(ASKED)) == {"signals": 1}


def test_one_job_asks_all_that_is_asked_of_changed_models():
    def asked(**metrics):
        nodes = planned(changed(BASE, {"defaults/metrics": metrics})).nodes["signals"].values()
        return len(nodes), {(node.settings["steps"], *node.settings.get("bits", ())) for node in nodes}

    count, _ = alone = asked(quantised={})
    assert alone == (count, {(0, 8, 4)})
    assert asked(quantised={"bits": [4, 3]}, relearn={}) == (count, {(16, 4, 3)})
    assert asked(relearn={}) == (count, {(16,)})


def keys(plan):
    """(case, kind, name) → the key of each attack and each metric."""
    return {
        (position, kind, name): key
        for position, node in enumerate(plan.nodes["metrics"].values())
        for kind in ("attacks", "metrics")
        for name, key in node.place[kind]["keys"].items()
    }


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
    assert {(kind, name) for (_, kind, name), key in after.items() - before.items()} == expected


def test_a_method_more_trains_nothing_unlearns_once_and_changes_no_part_of_the_others():
    before, more = planned(ASKED), changed(ASKED, {"defaults/methods/ssd": {}})
    after = planned(more)
    assert {stage: (gone, new) for stage, (gone, _, new) in rebuilt(before, after).items()} == {
        "unlearn": (0, 2), "signals": (0, 4), "metrics": (0, 1), "comparisons": (1, 1),
    }  # fmt: skip
    make(before)
    assert missing(planned(more)) == {"unlearn": 2, "metrics": 1, "comparisons": 1}
    assert set(keys(before).values()) < set(keys(after).values())
