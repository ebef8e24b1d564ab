"""The level at which every scenario of a study is judged."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from plan_cases import BASE, changed

THREE = {f"scenarios/part{k}": {"data": {"label_noise": k / 10}} for k in range(2)}


def levels(**edits):
    config = changed(BASE, {**THREE, **edits})
    whole = plan.make(reading.read(config))
    return {name: node.settings.get("alpha", 0.05) for name, node in whole.nodes["comparisons"].items()}


def test_in_a_whole_study_the_levels_add_up_to_five_per_cent():
    assert sorted(levels().values()) == [0.05] * 3
    assert sum(levels(family="study").values()) == pytest.approx(0.05)
    looks = levels(family="study", looks=[2, 4])
    assert 0 < sum(looks.values()) < 0.05


def test_a_part_of_the_study_is_judged_as_in_the_whole():
    whole, part = levels(family="study"), levels(family="study", only=["main"])
    assert part.items() <= whole.items()
    assert len(part) == 1
