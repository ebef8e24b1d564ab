"""A study that grows goes on from what lies here, and says so if its verdicts could be seen before, unless that look
was planned."""

import pytest
from unlearning_audit.store.files import write_spec
from unlearning_audit.workflow import compared

from plan_cases import BASE, changed, files, make, missing, planned

pytestmark = pytest.mark.usefixtures("workdir")
GROWTH = {"unit": "pairs", "from": [2], "to": 4}


def study(pairs=4, **edits):
    return planned(changed(BASE, {"defaults/protocol/pairs": pairs, **edits}))


def extended(plan):
    return [place["extended"] for place in compared.comparisons(plan) if "extended" in place]


def test_a_pair_more_trains_one_pair_and_judges_every_method_anew():
    make(study(batch=12))
    for pairs, blocks in ((5, [[0, 1, 2, 3], [4]]), (6, [[0, 1, 2, 3], [4], [5]])):
        more = study(pairs, batch=12)
        assert sorted(node.settings["blocks"] for node in more.nodes["splits"].values()) == blocks
        judged = len(more.cases)
        expected = {"splits": 1, "train": 1, "unlearn": judged - 1, "metrics": judged, "comparisons": 1}
        assert missing(more) == expected
        make(more)
        assert missing(study(pairs, batch=12)) == {}
    assert missing(study(batch=12)) == {}


def test_where_nothing_lies_a_batch_is_whole_and_what_is_whole_stays_so():
    whole = study(5, batch=12)
    make(whole)
    make(study(batch=12))
    assert set(study(5, batch=12).specs()) == set(whole.specs())


def test_an_attack_more_judges_anew_trains_nothing_and_has_the_names_that_it_has_where_nothing_lies():
    more = {"batch": 12, "defaults/attacks/entropy": {}}
    before = study(**more).specs()
    make(study(batch=12))
    after = study(**more)
    assert missing(after) == {"metrics": len(after.cases), "comparisons": 1}
    assert after.specs() == before


def test_more_pairs_after_a_look_are_named():
    for pairs in (2, 4):
        make(study(pairs))
    assert [extended(study(pairs)) for pairs in (6, 4, 2)] == [[GROWTH | {"from": [2, 4], "to": 6}], [GROWTH], []]


def test_other_methods_attacks_or_code_are_the_same_draws():
    few = {"defaults/methods": {"none": {}, "retrain": {}, "finetune": {"epochs": 9}, "scrub": {}}}
    make(study(2, **few, **{"defaults/attacks": {"loss": {}}}))
    assert extended(study()) == [GROWTH | {"methods": ["finetune", "none", "retrain", "retrain_control"]}]
    assert extended(study(**few)) == [GROWTH]


@pytest.mark.parametrize(
    "edit", [{"seed": 1}, {"defaults/data/label_noise": 0.1}, {"defaults/protocol/alpha": 0.2}], ids=str
)
def test_other_draws_are_another_study(edit):
    make(study(2))
    assert extended(study(**edit)) == []


def test_a_plan_made_after_the_look_comes_too_late():
    make(study(2))
    assert extended(study(looks=[2, 4])) == [GROWTH]


def test_sizes_that_one_study_asks_for_are_its_parts():
    both = {"scenarios/larger": {"protocol": {"pairs": 4}}}
    make(study(2, **both))
    assert extended(study(2, **both)) == []


def test_a_record_of_another_version_is_passed_over():
    """One that does not say all that today's say."""
    first = study(2)
    make(first)
    for node in first.nodes["metrics"].values():
        inputs = [path for path in files(node) if "/splits/" not in path]
        write_spec(node.outputs["spec"], {"settings": {}, "inputs": inputs})
    assert extended(study()) == []
