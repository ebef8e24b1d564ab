"""What each node is called, is told and reads, written out for small studies."""

import re
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.workflow import nodes, parameters

from external_cases import save
from plan_cases import BASE, changed, described, planned
from snapshots import matches

STUDY = changed(BASE, {
    "defaults/protocol/pairs": 3, "defaults/data/size": 400, "defaults/attacks": {"random": {}},
    "defaults/methods": {"none": {}, "finetune": {"epochs": 1}, "retrain": {}}, "defaults/metrics": {"relearn": {}},
})  # fmt: skip
EXTERNAL = {
    **BASE, "tables": {}, "figures": {},
    "defaults": {"protocol": {"name": "external", "path": "logits"}, "attacks": {"random": {}},
                 "methods": {"one": {}, "two": {}}},
}  # fmt: skip
STUDIES = {
    "study": STUDY,
    "sequence": changed(STUDY, {"defaults/protocol/requests": 2, "defaults/protocol/pairs": 1}),
    "signals": changed(STUDY, {
        "defaults/attacks": {"gradient_norm": {}},
        "defaults/metrics": {"efficacy_on_pairs": {}, "representation": {}},
    }),
    "selection": changed(BASE, {
        "defaults/attacks": {}, "defaults/methods": {"none": {}}, "tables": {}, "figures": {}, "batch": 8,
        "scenarios": {"halves": {"protocol": {"name": "lira_selection", "pairs": 8}},
                      "audit": {"protocol": {
                          "name": "ruli", "target_set": "vulnerable", "target_size": 30, "select_from": "halves"}}},
    }),
    "external": EXTERNAL,
}  # fmt: skip


@pytest.fixture(autouse=True)
def logits(workdir):
    """Two methods of one folder of logits; shadow models of the first alone."""
    for folder in ("one/target", "two/target", "one/shadow", "retrain", "original"):
        masks = {part: np.full(3, len(folder), kind) for part, kind in (("labels", int), ("train", bool))}
        save(f"logits/{folder}", logits=np.full((1, 3, 2), float(len(folder))), **masks, forget=masks["train"])


@pytest.mark.parametrize("name", STUDIES)
def test_a_plan_is_the_one_written_down(name):
    """Labels, files, settings and inputs of every node, and the files of every case."""
    plan = planned(STUDIES[name])
    matches(Path(__file__).parent / "expected" / f"{name}.txt", described(plan))
    for order in (parameters.collect, parameters.report, parameters.cost, parameters.verdicts):
        assert order(plan)


def test_the_key_tells_settings_parents_and_code_apart():
    settings, parents = {"a": 1}, {"data": ["d-1"], "splits": ["s-2", "s-3"]}
    keys = [
        nodes.key("code", settings, parents), nodes.key("other", settings, parents),
        *(nodes.key("code", a, parents) for a in ({"a": 2}, {"a": "1"}, {"a": True}, {"a": {"b": 1}}, {"b": 1})),
        *(nodes.key("code", settings, p) for p in (
            {**parents, "data": ["d-4"]}, {"data": ["d-1"]}, {**parents, "splits": ["s-3", "s-2"]},
            {"splits": ["d-1"], "data": ["s-2", "s-3"]})),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{10}", key) for key in keys)
    same = nodes.key("code", {"a": 1}, {"splits": ["s-2", "s-3"], "none": [], "data": ["d-1"]})
    assert same == keys[0], "the order of roles, and roles without a parent, say nothing"
