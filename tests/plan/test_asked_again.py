"""What is asked of models whose weights change after unlearning."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from plan_cases import BASE, changed


def nodes(**metrics):
    whole = plan.make(reading.read(changed(BASE, {"scenarios/main": {"metrics": metrics}}), "own.yaml"))
    return list(whole.nodes["signals"].values())


def test_one_job_asks_all_that_is_asked_of_changed_models():
    alone, both, taught = nodes(quantised={}), nodes(quantised={"bits": [4, 3]}, relearn={}), nodes(relearn={})
    assert len(alone) == len(both) == len(taught) > 0
    assert {(node.settings["steps"], tuple(node.settings["bits"])) for node in alone} == {(0, (8, 4))}
    assert {(node.settings["steps"], tuple(node.settings["bits"])) for node in both} == {(16, (4, 3))}
    assert all("bits" not in node.settings for node in taught)


OWN = """
from typing import Any
from unlearning_audit.plugins.settings import Settings

NEEDS = {need!r}


class Options(Settings):
    bits: Any = None
    steps: Any = 2
    samples: Any = 3


def rows(case, options, rng):
    return []
"""


@pytest.mark.parametrize("bits", [None, [], [4], [8, 3]])
def test_a_metric_of_a_user_asks_by_the_same_options(tmp_path, bits):
    (tmp_path / "mine.py").write_text(OWN.format(need="relearned"))
    asked = nodes(mine={"file": str(tmp_path / "mine.py"), "bits": bits})
    assert {(node.settings["steps"], tuple(node.settings.get("bits", ()))) for node in asked} == {
        (2, tuple(bits or ()))
    }
