"""Comparisons on record that foretell a study: of the same kind, whatever their pairs, models and methods."""

from pathlib import Path

from unlearning_audit.store.files import write_spec
from unlearning_audit.workflow import plan as planning
from unlearning_audit.workflow.forecast import pilots

from forecast_cases import planned

SWAP = {"name": "swap", "alpha": 0.25}
NAMES = ("small", "large", "other", "noisy")


def plan(**defaults) -> planning.Plan:
    scenarios = {
        "small": {"protocol": {**SWAP, "pairs": 2, "models_per_split": 1}},
        "large": {"protocol": {**SWAP, "pairs": 6, "models_per_split": 3}, "methods": ["none", "retrain", "neggrad"]},
        "other": {"protocol": {**SWAP, "alpha": 0.5, "pairs": 2, "models_per_split": 1}},
        "noisy": {"data": {"label_noise": 0.2}},
    }
    return planned(scenarios, **defaults)


def names(plan: planning.Plan) -> dict[str, str]:
    """Scenario → the name of its comparison."""
    return {of.scenario.name: Path(of.outputs["spec"]).parent.name for of in plan.comparisons}


def test_the_largest_of_the_same_kind_is_the_pilot_and_a_comparison_that_is_done_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = plan()
    small, large, half, _ = (pilots.planned(whole)[names(whole)[name]] for name in NAMES)
    assert (small.blocks, small.models) == (2, 1)
    assert (large.blocks, large.models) == (6, 3)
    assert pilots.pilot(small, [half]) is None
    assert pilots.pilot(small, [half, large]) is large
    assert pilots.pilot(small, [small, large]) is small


def test_what_is_done_is_read_as_it_was_planned(tmp_path, monkeypatch):
    """From the spec files of finished jobs, whatever the seed; damaged ones are left out."""
    monkeypatch.chdir(tmp_path)
    whole = plan()
    for node in whole.all():
        files = [path for group in node.inputs.values() for path in ([group] if isinstance(group, str) else group)]
        write_spec(node.outputs["spec"], {"settings": node.settings, "inputs": sorted(files), "checksums": {}})
    damaged = tmp_path / "results/comparisons/damaged-0123456789"
    damaged.mkdir()
    (damaged / "spec.json").write_text("{")
    by_name = {size.node: size for size in pilots.recorded()}
    assert by_name == pilots.planned(whole)
    later = plan(data={"name": "digits", "size": 200, "test_size": 50})
    assert pilots.pilot(pilots.planned(later)[names(later)["small"]], pilots.recorded())
