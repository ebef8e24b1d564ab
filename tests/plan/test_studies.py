"""The studies that are shipped say what they mean, and their plans hold what they promise."""

from pathlib import Path

import pytest
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from external_cases import GOOD, save

ROOT = Path(__file__).parents[2]
#: Studies whose plans take seconds.
LARGE = ("leaderboard", "swap_grid", "ruli")
TRAINED = sorted(path for path in (ROOT / "studies").glob("*.yaml") if path.stem != "external")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LARGE)) for path in (ROOT / "config.yaml", *TRAINED)],
    ids=lambda path: path.stem,
)
def test_a_shipped_study_plans_every_method_of_every_scenario(path):
    study = reading.read(*reading.load([path]))
    whole = plan.make(study)
    assert study.name == ("quickstart" if path.stem == "config" else path.stem)
    assert len(whole.cases) == sum(len(scenario.methods) for scenario in study.scenarios)
    assert set(whole.nodes["metrics"]) >= {Path(case.metrics).parent.name for case in whole.cases}
    assert study.tables


def test_the_template_of_imported_logits_is_a_study(workdir):
    save("my_logits/target", **GOOD)
    whole = plan.make(reading.read(*reading.load([ROOT / "studies/external.yaml"])))
    assert [len(whole.nodes[stage]) for stage in ("external", "metrics")] == [1, 1]


def test_the_swap_study_has_the_settings_of_the_paper():
    """Tu, Hu & Ma 2024, section 4.1."""
    scenarios = reading.read(*reading.load([ROOT / "studies" / "swap.yaml"])).scenarios
    budgets = {s.axes["epsilon"]: s for s in scenarios if s.name == "budget"}
    assert list(budgets) == ["50", "150", "600", "inf"]
    plain = budgets.pop("inf")
    assert (plain.model.name, plain.model.options["depth"], plain.recipe.dp) == ("resnet_cifar", 20, None)
    assert (plain.recipe.epochs, plain.recipe.lr, plain.recipe.milestones) == (200, 0.1, (100, 150))
    assert (plain.protocol.options["alpha"], plain.protocol.options["models_per_split"]) == (0.1, 3)
    for label, private in budgets.items():
        recipe = private.recipe
        assert (private.model.name, private.model.options["norm"]) == ("resnet18", "group")
        assert (recipe.dp.epsilon, recipe.dp.delta, recipe.optimiser) == (float(label), 1e-5, "rmsprop")
        assert (recipe.lr, recipe.epochs) == (0.01, 100)
