"""Comparisons on record that foretell a study: of the same kind, whatever their pairs, models and methods."""

from unlearning_audit.store.files import write_spec
from unlearning_audit.workflow.forecast import pilots

from forecast_cases import planned

SWAP = {"name": "swap", "alpha": 0.25}
NAMES = ("small", "large", "other", "noisy")


def nodes(**defaults):
    scenarios = {
        "small": {"protocol": {**SWAP, "pairs": 2, "models_per_split": 1}},
        "large": {"protocol": {**SWAP, "pairs": 6, "models_per_split": 3}, "methods": ["none", "retrain", "neggrad"]},
        "other": {"protocol": {**SWAP, "alpha": 0.5, "pairs": 2, "models_per_split": 1}},
        "noisy": {"data": {"label_noise": 0.2}},
    }
    plan = planned(scenarios, **defaults)
    plan_nodes = pilots.planned(plan)
    names = {comparison.scenario.name: comparison.outputs["spec"].split("/")[-2] for comparison in plan.comparisons}
    return plan_nodes, names


def test_the_largest_of_the_same_kind_is_the_pilot_and_a_comparison_that_is_done_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan_nodes, names = nodes()
    sizes = pilots.sizes(plan_nodes)
    small, large, half, _ = (sizes[names[name]] for name in NAMES)
    assert pilots.pilot(small, [half]) is None
    assert pilots.pilot(small, [half, large]) is large
    assert pilots.pilot(small, [small, large]) is small


def test_what_is_done_is_read_as_it_was_planned(tmp_path, monkeypatch):
    """From the spec files of finished jobs, whatever the seed; damaged ones are left out."""
    monkeypatch.chdir(tmp_path)
    plan_nodes, names = nodes()
    for node in plan_nodes:
        folder = tmp_path / "results" / node["stage"] / node["node"]
        folder.mkdir(parents=True, exist_ok=True)
        inputs = [f"results/{stage}/{name}/file" for stage, parents in node["after"].items() for name in parents]
        write_spec(folder / "spec.json", {"settings": node["settings"], "inputs": inputs, "checksums": {}})
    damaged = tmp_path / "results/comparisons/damaged-0123456789"
    damaged.mkdir()
    (damaged / "spec.json").write_text("{")
    assert pilots.sizes(pilots.recorded()) == pilots.sizes(plan_nodes)
    later, _ = nodes(data={"name": "digits", "size": 200, "test_size": 50})
    assert pilots.pilot(pilots.sizes(later)[names["small"]], pilots.sizes(pilots.recorded()).values())
