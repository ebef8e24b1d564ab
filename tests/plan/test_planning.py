"""Planning is light: no heavy library, and the same names in every process."""

import json
import os
import subprocess
import sys

import yaml
from unlearning_audit.plugins import source
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

ROOT = source.SCRIPTS.parent
# external.yaml is a template that waits for a user's folder.
STUDIES = [ROOT / "config.yaml", *(p for p in sorted((ROOT / "studies").glob("*.yaml")) if p.stem != "external")]
STUDIES += sorted((ROOT / "studies/gallery").glob("*.yaml"))
HEAVY = ("torch", "torchvision", "transformers", "pandas", "pyarrow", "scipy.stats", "scipy.optimize", "sklearn",
         "matplotlib", "opacus", "art", "PIL")  # fmt: skip
#: Plans each study that it is given; a line for each.
CODE = """
import json, sys
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan
studies, heavy = json.loads(sys.argv[1])
for path in studies:
    made = plan.make(reading.read(*reading.load([path])))
    print(json.dumps({
        "study": path,
        "heavy": [m for m in heavy if m in sys.modules],
        "names": sorted(f"{stage}/{name}" for stage, nodes in made.nodes.items() for name in nodes),
    }))
"""


def planned_apart(paths, hash_seed):
    """What a process of its own finds for each study, one after the other."""
    run = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps([[*map(str, paths)], HEAVY])], capture_output=True, text=True,
        check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source.SCRIPTS), "PYTHONHASHSEED": str(hash_seed)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_planning_imports_nothing_heavy():
    reports = planned_apart(STUDIES, 0)
    assert [report["study"] for report in reports] == [*map(str, STUDIES)]
    assert {report["study"]: report["heavy"] for report in reports if report["heavy"]} == {}


def test_names_are_the_same_in_every_process():
    (first,), (second,) = (planned_apart(STUDIES[:1], seed) for seed in (1, 2))
    assert first["names"] == second["names"]
    whole = plan.make(reading.read(yaml.safe_load(STUDIES[0].read_text())))
    assert first["names"] == sorted(f"{stage}/{name}" for stage, nodes in whole.nodes.items() for name in nodes)


def test_a_study_has_no_two_nodes_of_one_key():
    whole = plan.make(reading.read(yaml.safe_load((ROOT / "studies/tour.yaml").read_text())))
    keys = [name.rsplit("-", 1)[1] for nodes in whole.nodes.values() for name in nodes]
    assert len(set(keys)) == len(keys) > 400
