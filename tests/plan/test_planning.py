"""Planning is light: no heavy library, and the same names in every process."""

import functools
import json
import os
import subprocess
import sys

import yaml
from unlearning_audit.plugins import source
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

ROOT = source.SCRIPTS.parent
HEAVY = ("torch", "torchvision", "transformers", "pandas", "pyarrow", "scipy.stats", "scipy.optimize", "sklearn",
         "matplotlib", "opacus", "art", "PIL")  # fmt: skip
#: Plans the quickstart, and loads all plug-ins that a plan may load.
CODE = """
import json, sys
from unlearning_audit.plugins import registry
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan
made = plan.make(reading.read(*reading.load(["config.yaml"])))
for kind in registry.KINDS.keys() - {"readers"} | {"signals", "report/figures"}:
    for name in registry.names(kind):
        registry.load(kind, name)
names = sorted(f"{stage}/{name}" for stage, nodes in made.nodes.items() for name in nodes)
print(json.dumps({"heavy": [m for m in sys.argv[1:] if m in sys.modules], "names": names}))
"""


@functools.cache
def planned_apart(hash_seed):
    """What a process of its own finds."""
    run = subprocess.run(
        [sys.executable, "-c", CODE, *HEAVY], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source.SCRIPTS), "PYTHONHASHSEED": str(hash_seed)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_planning_imports_nothing_heavy():
    assert planned_apart(1)["heavy"] == []


def test_names_are_the_same_in_every_process():
    first, second = (planned_apart(seed) for seed in (1, 2))
    whole = plan.make(reading.read(yaml.safe_load((ROOT / "config.yaml").read_text())))
    own = sorted(f"{stage}/{name}" for stage, nodes in whole.nodes.items() for name in nodes)
    assert first["names"] == second["names"] == own


def test_a_study_has_no_two_nodes_of_one_key():
    whole = plan.make(reading.read(yaml.safe_load((ROOT / "studies/tour.yaml").read_text())))
    keys = [name.rsplit("-", 1)[1] for nodes in whole.nodes.values() for name in nodes]
    assert len(set(keys)) == len(keys) > 400
