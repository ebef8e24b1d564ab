"""A study that grows goes on from what lies here, and a study of which nothing lies here is planned as ever."""

from pathlib import Path

import pytest
from unlearning_audit.store.files import write_spec
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from plan_cases import BASE, changed

FOUR = changed(BASE, {"batch": 12})
PAIRS = "defaults/protocol/pairs"


def planned(config: dict) -> plan.Plan:
    return plan.make(reading.read(config))


def make(whole: plan.Plan) -> None:
    """Leave behind what planning looks at, as a run of the plan does."""
    for nodes in whole.nodes.values():
        for node in nodes.values():
            spec = Path(node.outputs["spec"])
            spec.parent.mkdir(parents=True, exist_ok=True)
            write_spec(spec, {"settings": node.settings})


def missing(whole: plan.Plan) -> dict[str, int]:
    """How many nodes of each stage do not lie here."""
    lacking = {s: sum(not Path(n.outputs["spec"]).exists() for n in nodes.values()) for s, nodes in whole.nodes.items()}
    return {stage: count for stage, count in lacking.items() if count}


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def blocks(whole: plan.Plan, population: str) -> list[list[int]]:
    settings = [node.settings for node in whole.nodes["splits"].values()]
    return sorted(values["blocks"] for values in settings if values["population"] == population)


def test_a_fifth_pair_trains_one_pair_and_the_next_again_one():
    first = planned(FOUR)
    (population,) = {node.settings["population"] for node in first.nodes["splits"].values()}
    assert blocks(first, population) == [[0, 1, 2, 3]]
    make(first)
    for pairs, expected in ((5, [[0, 1, 2, 3], [4]]), (6, [[0, 1, 2, 3], [4], [5]])):
        more = planned(changed(FOUR, {PAIRS: pairs}))
        assert blocks(more, population) == expected
        # All methods but none make something of it; every method is judged anew, by all pairs.
        judged = len(more.cases)
        assert missing(more) == {
            "splits": 1, "train": 1, "unlearn": judged - 1, "metrics": judged, "comparisons": 1,
        }  # fmt: skip
        make(more)
        assert missing(planned(changed(FOUR, {PAIRS: pairs}))) == {}
    assert missing(planned(FOUR)) == {}


def test_where_nothing_lies_a_batch_is_whole_and_what_is_whole_stays_so():
    whole = planned(changed(FOUR, {PAIRS: 5}))
    make(whole)
    make(planned(FOUR))
    assert set(planned(changed(FOUR, {PAIRS: 5})).specs()) == set(whole.specs())


def test_an_attack_more_judges_anew_and_trains_nothing():
    make(planned(FOUR))
    more = planned(changed(FOUR, {"defaults/attacks/entropy": {}}))
    assert missing(more) == {"metrics": len(more.cases), "comparisons": 1}


def test_names_do_not_depend_on_what_scores_lie_here():
    more = changed(FOUR, {"defaults/attacks/entropy": {}})
    before = planned(more).specs()
    make(planned(FOUR))
    assert planned(more).specs() == before
