"""What each node is called, is told and reads, written out for small studies."""

import re
from pathlib import Path

import pytest
from unlearning_audit.workflow import nodes

from plan_cases import BASE, changed, described, planned
from snapshots import matches

STUDY = changed(BASE, {
    "defaults/protocol/pairs": 3, "defaults/data/size": 400, "defaults/attacks": {"random": {}},
    "defaults/methods": {"none": {}, "finetune": {"epochs": 1}, "retrain": {}}, "defaults/metrics": {"relearn": {}},
})  # fmt: skip
SEQUENCE = changed(STUDY, {"defaults/protocol/requests": 2, "defaults/protocol/pairs": 1})
SIGNALS = changed(STUDY, {
    "defaults/attacks": {"gradient_norm": {}}, "defaults/metrics": {"efficacy_on_pairs": {}, "representation": {}},
})  # fmt: skip
SELECTION = changed(BASE, {
    "defaults/attacks": {}, "defaults/methods": {"none": {}}, "tables": {}, "figures": {}, "batch": 8,
    "scenarios": {"halves": {"protocol": {"name": "lira_selection", "pairs": 8}},
                  "audit": {"protocol": {
                      "name": "ruli", "target_set": "vulnerable", "target_size": 30, "select_from": "halves"}}},
})  # fmt: skip


@pytest.mark.parametrize("name", ["study", "sequence", "signals", "selection"])
def test_a_plan_is_the_one_written_down(name):
    """Labels, files, settings and inputs of every node, and the files of every case."""
    matches(Path(__file__).parent / "expected" / f"{name}.txt", described(planned(globals()[name.upper()])))


def test_the_key_tells_settings_parents_and_code_apart():
    settings, parents = {"a": 1}, {"data": ["d-1"], "splits": ["s-2", "s-3"]}
    keys = [
        nodes.key("code", settings, parents), nodes.key("other", settings, parents),
        *(nodes.key("code", a, parents) for a in ({"a": 2}, {"a": "1"}, {"a": True}, {"a": {"b": 1}}, {"b": 1})),
        nodes.key("code", settings, {**parents, "data": ["d-4"]}), nodes.key("code", settings, {"data": ["d-1"]}),
        nodes.key("code", settings, {**parents, "splits": ["s-3", "s-2"]}),
        nodes.key("code", settings, {"splits": ["d-1"], "data": ["s-2", "s-3"]}),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{10}", key) for key in keys)
    same = nodes.key("code", {"a": 1}, {"splits": ["s-2", "s-3"], "none": [], "data": ["d-1"]})
    assert same == keys[0], "the order of roles, and roles without a parent, say nothing"
