"""The adapter for a function of a user's own."""

import random
from copy import deepcopy

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from unlearning_audit.methods._call import unlearned_weights
from unlearning_audit.methods.classic import Options
from unlearning_audit.plugins.guard import PluginError
from unlearning_audit.randomness.keyed import seed_of

from stack_cases import SEEDS, masks, mlp, part, same, trained, unlearned


@pytest.fixture
def user(tmp_path):
    """Write a function to a file and return the options that name it."""

    def write(source, **options):
        path = tmp_path / "mine.py"
        path.write_text("import random\nimport numpy as np\nimport torch\nSEEN = []\n" + source)
        return {"file": str(path), **options}

    return write


RECORDER = (
    "def unlearn(model, retain, forget{extra}):\n"
    "    loaders = [retain, forget{extra}]\n"
    "    weight = torch.cat([torch.cat([x[:, :1] * 1000 + y[:, None] for x, y in loader]) for loader in loaders])\n"
    "    with torch.no_grad():\n"
    "        model[0].weight.zero_()\n"
    "        model[0].weight.view(-1)[: min(54, len(weight))] = weight[:54, 0]\n"
    "    assert model.training and model[0].weight.requires_grad\n"
    "    return model\n"
)


def code(stack, index):
    """One number that identifies a sample and its label."""
    return stack.x[index, 0] * 1000 + stack.labels[index]


@pytest.mark.parametrize("extra", ["", ", val"])
def test_the_loaders_hold_the_rows_of_the_model_and_nothing_else(user, extra):
    """31 kept and 13 forgotten samples, and 10 more of the kept for validation, fill 54 weights."""
    stack = trained(seeds=SEEDS[:3])
    options = user(RECORDER.format(extra=extra), batch_size=7, validation=10 / 31)
    after = unlearned(stack, "classic", **options)
    for m, (retain, forget) in enumerate(zip(*masks(stack.seeds), strict=True)):
        weights = after.parameters["0.weight"][m].flatten()
        assert torch.equal(weights[:31].sort().values, code(stack, retain).sort().values)
        assert torch.equal(weights[31:44].sort().values, code(stack, forget).sort().values)
        assert not torch.equal(weights[:31], code(stack, retain)), "the order is shuffled"
        validation = set(weights[44:].tolist())
        assert validation <= set(code(stack, retain).tolist()) if extra else validation == {0.0}
        assert len(validation) == (10 if extra else 1)
    # The order is the model's own.
    assert same(unlearned(part(stack, [2, 0]), "classic", **options), after, slots_b=[2, 0])


def test_global_generators_are_seeded_for_it_and_put_back(user):
    stack = trained(seeds=SEEDS[:3])
    options = user(
        "def unlearn(model, retain, forget):\n"
        "    with torch.no_grad():\n"
        "        model[0].bias[:3] = torch.tensor([torch.rand(()), np.random.rand(), random.random()])\n"
        "    return model\n"
    )
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    expected = torch.rand(2).tolist(), np.random.rand(), random.random()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    first = unlearned(stack, "classic", **options)
    assert (torch.rand(2).tolist(), np.random.rand(), random.random()) == expected
    assert same(first, unlearned(stack, "classic", **options))
    draws = first.parameters["0.bias"][:, :3]
    assert len(set(draws.flatten().tolist())) == 9
    for m, seed in enumerate(stack.seeds):
        key = seed_of(seed, "classic")
        uniforms = (
            torch.rand((), generator=torch.Generator().manual_seed(key)),
            np.random.RandomState(key % 2**32).rand(),
        )
        assert torch.equal(draws[m], torch.tensor([*uniforms, random.Random(key).random()]))


SHAPES = "the architecture must stay as it is: tensor"
MORE = "return torch.nn.Sequential(*model, torch.nn.Linear(7, 7))"
OTHER = "return torch.nn.Sequential(*model[:2], torch.nn.Linear(9, 2))"


@pytest.mark.parametrize(
    ("signature", "last", "message"),
    [
        ("unlearn(model, retain, forget)", "return model[0]", rf"{SHAPES} '0\.weight' of shape \(9, 6\) is missing"),
        ("unlearn(model, retain, forget)", OTHER, rf"{SHAPES} '2\.weight' has shape \(2, 9\), expected \(7, 9\)"),
        ("unlearn(model, retain, forget)", MORE, rf"{SHAPES} '5\.weight' of shape \(7, 7\) belongs to another model"),
        ("unlearn(model)", "return model", r"must take \(model, retain_loader, forget_loader\)"),
        ("unlearn(model, a, b)", "return model", "the parameter 'a' is not known; set options.a, or say with"),
        ("other(model, retain, forget)", "return model", "there is no function 'unlearn'"),
    ],
)
def test_what_cannot_be_used_is_said(user, signature, last, message):
    options = user(f"def {signature}:\n    {last}\n")
    with pytest.raises(ValueError, match=message) as error:
        unlearned(trained(seeds=SEEDS[:2]), "classic", **options)
    assert "mine.py" in str(error.value)
    assert isinstance(error.value, PluginError) or "architecture" not in message, "no line of ours is told with it"


def test_models_that_differ_are_not_chosen_by_their_order():
    model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    for beside in (deepcopy(model), {"loss": torch.zeros(())}):
        assert unlearned_weights((model, beside), model)["weight"].equal(model.weight)
    with pytest.raises(ValueError, match="it returned 2 different models; return only the one that forgot"):
        unlearned_weights((other, model), model)


def test_one_option_takes_the_place_of_its_default_and_options_that_are_none_are_refused():
    given = {"file": "mine.py", "options.lr": 0.1}
    assert Options(**given, options={"lr": 1.0, "epochs": 3}).options == {"lr": 0.1, "epochs": 3}
    assert Options(**given).options == {"lr": 0.1}
    with pytest.raises(ValidationError) as refused:
        Options(**given, options="lr")
    assert ("options",) in [error["loc"] for error in refused.value.errors()]


def test_a_missing_file_is_named():
    with pytest.raises(ValueError, match=r"nowhere\.py: there is no such file"):
        unlearned(trained(mlp, SEEDS[:2]), "classic", file="nowhere.py")
