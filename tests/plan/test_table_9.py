"""The grid by which Naderloui et al. 2025 tune (table 9) lies in what the methods declare, and their settings in it."""

import pytest
from unlearning_audit.study import choice, reading

from printed_numbers import ROOT

BATCHES = (16, 64, 128)

#: Method → option → what table 9 lists. NegGrad+ calls β α there, and its epochs maximizing steps, as SCRUB's msteps.
GRID = {
    "l1_sparse": {
        "lr": (0.01,), "alpha": (1e-4, 2e-4, 3e-4, 5e-4), "batch_size": BATCHES,
        "penalty_schedule": ("increase", "decay", "constant"),
    },
    "scrub": {
        "lr": (5e-4, 1e-4, 5e-5), "alpha": (0.1,), "gamma": (0.99,), "batch_size": BATCHES,
        "forget_batch_size": BATCHES, "msteps": (1, 2, 4, 6), "epochs": (2, 5, 6, 10),
    },
    "ga_plus": {
        "lr": (1e-4, 1e-3), "epochs": (3, 5, 7, 10, 15, 20), "refine_epochs": (0, 3, 4, 5), "batch_size": BATCHES,
    },
    "neggrad_plus": {
        "lr": (5e-4, 5e-5), "beta": (0.1, 0.3, 0.35, 0.4, 0.5, 0.9), "batch_size": BATCHES,
        "forget_batch_size": BATCHES, "epochs": (1, 2, 4, 6),
    },
}  # fmt: skip

#: What the studies take from the published code although the table does not list it.
FROM_THE_CODE = {("ga_plus", "batch_size"): 50, ("neggrad_plus", "epochs"): 10}


def methods(study):
    raw, _ = reading.load([ROOT / "studies" / f"{study}.yaml"])
    return raw["defaults"]["methods"]


def holds(axis, value):
    return value in axis if isinstance(axis, list) else axis.low <= value <= axis.high


@pytest.mark.parametrize("name", GRID)
def test_a_tuned_study_searches_a_space_that_holds_the_grid(name):
    options = methods("ruli")[name] | {"tune": {"trials": 16, "objective": "accuracy"}}
    space = choice.choose("methods", {"name": name, **options}, "methods", name).tune.space
    outside = {(option, value) for option, values in GRID[name].items() for value in values
               if option not in space or not holds(space[option], value)}  # fmt: skip
    assert not outside


@pytest.mark.parametrize("study", ["ruli", "ruli_cifar100"])
@pytest.mark.parametrize("name", GRID)
def test_the_settings_of_a_study_are_points_of_the_grid_or_those_of_the_code(study, name):
    options = methods(study)[name]
    for option in options.keys() & GRID[name].keys():
        assert options[option] in (*GRID[name][option], FROM_THE_CODE.get((name, option))), option
