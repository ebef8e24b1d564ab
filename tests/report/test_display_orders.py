"""What the displays are asked for: JSON that names files of the plan, and a command that can be typed."""

import json
import re
from pathlib import Path

import pytest
import yaml
from unlearning_audit.study import reading
from unlearning_audit.workflow import parameters, plan

TOUR = Path(__file__).resolve().parents[2] / "studies/tour.yaml"


@pytest.fixture(scope="module")
def planned():
    return plan.make(reading.read(yaml.safe_load(TOUR.read_text())))


def test_orders_are_json_and_name_files_of_the_plan(planned):
    paths = {path for nodes in planned.nodes.values() for node in nodes.values() for path in node.outputs.values()}
    makers = (parameters.collect, parameters.cost, parameters.meta, parameters.report)
    orders = [make(planned) for make in makers]
    orders += [parameters.table(planned, name) for name in ("headline", *planned.study.tables)]
    orders += [parameters.figure(planned, name) for name in planned.study.figures]
    for order in orders:
        assert json.loads(json.dumps(order, allow_nan=False)) == order
        assert re.fullmatch(r"[0-9a-f]{10}", order["code"])
        assert set(parameters.input_paths(planned, order)) <= paths
    collected, cost = orders[:2]
    gathered = {path for case in planned.cases for path in (case.metrics, case.records)}
    assert parameters.input_paths(planned, collected) == sorted(gathered)
    made = sorted(node.outputs["spec"] for node in planned.all() if not node.within)
    assert parameters.input_paths(planned, cost) == made
    assert {entry["spec"] for entry in cost["nodes"]} == set(planned.specs()) > set(made)
    metrics = planned.cases[0].metrics
    assert parameters.input_paths(planned, {"a": [metrics, "results/no.csv", {"b": metrics, "c": 1}]}) == [metrics]


def test_the_command_names_the_study_it_belongs_to(planned, workdir):
    command = parameters.report(planned, [str(workdir / "my study.yaml"), "/elsewhere/b.yaml"])["command"]
    assert command == "snakemake --cores 1 --configfile 'my study.yaml' /elsewhere/b.yaml"
    assert parameters.report(planned, ["mine.yaml"])["command"] == "audit run mine.yaml --cores 1"
    assert parameters.report(planned)["command"] == "audit run --cores 1"
