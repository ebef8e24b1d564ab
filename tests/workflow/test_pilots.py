"""Comparisons on record that foretell a study: of the same kind, whatever their pairs, models and methods."""

from pathlib import Path

from unlearning_audit.study import reading
from unlearning_audit.workflow import plan as planning
from unlearning_audit.workflow.forecast import pilots

import data as data_script
from plan_cases import make

SWAP = {"name": "swap", "alpha": 0.25, "pairs": 2, "models_per_split": 1}


def plan(seed: int = 0) -> planning.Plan:
    """The plan of a study on 200 training digits; its data are written below here, and nothing else is there."""
    defaults = {
        "data": {"name": "digits", "size": 200, "test_size": 50},
        "model": {"name": "mlp", "hidden": [16]},
        "recipe": {"epochs": 2, "batch_size": 16},
        "protocol": SWAP,
        "methods": {"none": {}, "retrain": {}},
        "attacks": {"confidence": {}},
        "controls": False,
    }
    scenarios = {
        "small": {},
        "large": {"protocol": {**SWAP, "pairs": 6, "models_per_split": 3}, "methods": ["none", "retrain", "neggrad"]},
        "other": {"protocol": {**SWAP, "alpha": 0.5}},
        "noisy": {"data": {"label_noise": 0.2}},
    }
    study = {"study": "small", "seed": seed, "batch": 2, "defaults": defaults, "scenarios": scenarios}
    whole = planning.make(reading.read(study))
    for node in whole.nodes["data"].values():
        data_script.data(node.outputs["data"], node.settings, node.place)
    return whole


def sizes(plan: planning.Plan) -> list[pilots.Size]:
    """The planned comparison of each scenario."""
    names = {of.scenario.name: Path(of.outputs["spec"]).parent.name for of in plan.comparisons}
    return [pilots.planned(plan)[names[name]] for name in ("small", "large", "other", "noisy")]


def test_the_largest_of_the_same_kind_is_the_pilot_and_a_comparison_that_is_done_its_own(workdir):
    small, large, half, _ = sizes(plan())
    assert [(size.blocks, size.models) for size in (small, large)] == [(2, 1), (6, 3)]
    assert pilots.pilot(small, [half]) is None
    assert pilots.pilot(small, [half, large]) is large
    assert pilots.pilot(small, [small, large]) is small


def test_what_is_done_is_read_as_it_was_planned(workdir):
    """From the spec files of finished jobs, whatever the seed; damaged ones are left out."""
    whole = plan()
    make(whole)
    damaged = workdir / "results/comparisons/damaged-0123456789"
    damaged.mkdir()
    (damaged / "spec.json").write_text("{")
    assert {size.node: size for size in pilots.recorded()} == pilots.planned(whole)
    small, *_ = sizes(plan(seed=1))
    assert pilots.pilot(small, pilots.recorded())
