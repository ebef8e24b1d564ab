"""Published code of seven authors runs as it is: what its functions are called with, and what comes out of them."""

import sys

import pytest
import torch
from unlearning_audit.methods import _packages
from unlearning_audit.methods._processor import OnProcessor
from unlearning_audit.plugins import syntax
from unlearning_audit.plugins.arguments import Parameter, assigned, role
from unlearning_audit.plugins.guard import PluginError

from published_methods import PUBLISHED, write_method
from stack_cases import SEEDS, largest_gap, part, same, state, trained, unlearned


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_code_runs_as_it_is_and_depends_on_the_model_s_seed_alone(tmp_path, name):
    fields = write_method(tmp_path, name)
    stack = trained(seeds=SEEDS[:3])
    before, path = set(sys.modules), list(sys.path)
    after = unlearned(stack, "classic", **fields)
    assert largest_gap(after, stack) > 1e-4
    assert all(value.isfinite().all() for value in state(after).values())
    assert same(unlearned(part(stack, [2, 0]), "classic", **fields), after, slots_b=[2, 0])
    assert sys.path == path
    assert not {module for module in set(sys.modules) - before if module in ("ssd", "opts", "utils", "unlearn")}
    assert not list(tmp_path.rglob("__pycache__"))


#: What is given to a function → names of parameters that receive it.
ROLES = {
    "model": "net student",
    "original": "model_t",
    "args": "args",
    "device": "device_",
    "num_classes": "num_classes",
    "retain_loader": "retain retain_train_dl loader_remain remain_batch D_retain retainLoader remaining_dl RETAIN",
    "retain_data": "remain_dataset retain_samples to_keep_set retainset2",
    "forget_loader": "train_forget_loader forget_valid_dl D_forget forgetLoader cifar_forget_loader DForget removed_dl "
                     "unlearn_batch erased delete FORGET",
    "forget_data": "unlearn_data erased_samples forgetset to_unlearn_set forgetset1",
    "val_loader": "retain_valid_dl valid_dl test_loader test",
    "train_loader": "full_train_dl",
    "train_data": "trainset",
    None: "alpha forget_class train_epochs unlearn_lr allowed dataset_name retain_weight noisy_loader clean_loader df "
          "D_r forget_and_retain_loader non_forget_loader num_forget_samples all use_train_set forgery_loader testify "
          "model_f",
}  # fmt: skip


def test_parameters_are_known_by_their_names():
    expected = {name: what for what, names in ROLES.items() for name in names.split()}
    assert {name: role(name) for name in expected} == expected


def parameters(*names):
    return [Parameter(name, True) for name in names]


PAIRS = ["forget_loader retain_loader", "df dr", "df_loader dr_loader", "D_f D_r", "Df Dr", "delete keep"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("order", ["model {f} {r}", "model {r} {f}", "{f} {r} model"])
def test_names_and_never_the_order_say_what_is_to_be_forgotten(pair, order):
    forget, retain = pair.split()
    places = assigned(parameters(*order.format(f=forget, r=retain).split()), {}, {}, more=False)
    assert [places[name].partition("_")[0] for name in ("model", forget, retain)] == ["model", "forget", "retain"]


@pytest.mark.parametrize(
    "names",
    ["a b c", "model noisy_loader clean_loader", "df dr model_f", "model df loader", "model retain_loader x",
     "model data_a data_b", "model forget_loader retain_forget_loader", "model x y val", "net first second third",
     "teacher reference_model forget retain"],
)  # fmt: skip
def test_what_no_name_tells_is_asked(names):
    with pytest.raises(ValueError, match=r"the parameter '.*' is not known; .* say with give\.|it must take \(model"):
        assigned(parameters(*names.split()), {}, {}, more=False)


@pytest.mark.parametrize(
    ("names", "options", "give", "sentence"),
    [
        ("model forget_loader beta", {}, {}, "the parameter 'beta' is not known; set options.beta, or say with give"),
        ("model retain forget", {"lr": 1}, {}, "options.lr: there is no parameter 'lr'"),
        ("model retain forget rate", {"rte": 1, "rate": 1}, {}, "options.rte: there is no parameter 'rte', did you"),
        ("model retain x", {}, {"x": "forget"}, "give.x: there is no thing 'forget' to be given, did you mean"),
        ("model", {}, {}, r"it must take (model, retain_loader, forget_loader) or some of these; it takes (model)"),
        ("retain forget", {}, {}, "it must take (model, retain_loader, forget_loader)"),
    ],
)
def test_what_is_not_known_is_told(names, options, give, sentence):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the sentence is compared below)
        assigned(parameters(*names.split()), options, give, more=False)
    assert str(error.value).startswith(sentence)


def test_code_for_a_card_runs_on_the_processor():
    model = torch.nn.Linear(3, 2)
    with OnProcessor():
        moved = model.cuda().to("cuda:0")
        x = torch.zeros(4, 3, device="cuda").cuda().to(torch.device("cuda"), torch.float32)
        answer = moved(x)
        whole = torch.arange(3, device=torch.device("cuda:1")).to("cpu")
    assert {value.device.type for value in (answer, x, whole, *model.parameters())} == {"cpu"}
    torch.testing.assert_close(answer, model(torch.zeros(4, 3)))


def repository(folder) -> str:
    """A published function with the habits that stop newcomers: packages for figures and logs, a parser of arguments,
    an evaluation that today's versions of packages refuse."""
    (folder / "helper.py").write_text(
        "import notherea\nfrom nothereb.plots import figure\ntry:\n    import notherec\nexcept ImportError:\n    pass\n"
    )
    (folder / "mine.py").write_text(
        "import os\nimport torch\nimport helper\nfrom nothered import log\n\n\n@log.watched\n"
        "def unlearn(model, data_loaders, args):\n    helper.notherea.init(project='x')\n"
        "    with helper.figure(1) as axes, torch.no_grad():\n        axes.plot([1])\n"
        "        model[0].weight.fill_(args.unlearn_lr * args.unlearn_epochs)\n"
        "    assert args.num_classes > 0\n    log.scalar(1.0)\n    evaluate(model)\n\n\n"
        "def evaluate(model):\n    raise TypeError('multi_class')\n"
    )
    return str(folder / "mine.py")


WITHOUT = ["notherea", "nothereb", "nothered"]


def test_a_package_that_is_not_installed_is_named_with_what_to_do(tmp_path):
    file, stack = repository(tmp_path), trained(seeds=SEEDS[:2])
    with pytest.raises(PluginError, match=r"notherea is not installed; .* without: \[notherea\]"):
        unlearned(stack, "classic", file=file)
    with pytest.raises(PluginError, match=r"nothered is not installed"):
        unlearned(stack, "classic", file=file, without=WITHOUT[:2])
    inside = tmp_path / "inside.py"
    inside.write_text("def unlearn(model, forget_loader):\n    import notheree.plots\n")
    with pytest.raises(PluginError, match=r"notheree is not installed; .* without: \[notheree\]"):
        unlearned(stack, "classic", file=str(inside))


def test_arguments_come_from_the_options_and_evaluation_is_skipped(tmp_path):
    file, stack = repository(tmp_path), trained(seeds=SEEDS[:2])
    fields = {"file": file, "without": WITHOUT}
    with pytest.raises(AttributeError, match=r"args\.unlearn_lr is not set; give options\.unlearn_lr"):
        unlearned(stack, "classic", **fields)
    fields |= {"options": {"unlearn_lr": 3.0, "unlearn_epochs": 1}}
    with pytest.raises(TypeError, match="multi_class"):
        unlearned(stack, "classic", **fields)
    fields |= {"skip": ["evaluate"]}
    after = unlearned(stack, "classic", **fields)
    assert (after.parameters["0.weight"] == 3.0).all()
    assert "notherea" not in sys.modules
    with pytest.raises(ValueError, match="no function 'measure'"):
        unlearned(stack, "classic", **fields | {"skip": ["measure"]})


def test_a_class_whose_method_takes_the_model_and_its_loaders(tmp_path):
    file, stack = tmp_path / "mine.py", trained(seeds=SEEDS[:2])
    file.write_text(
        "import torch\n\n\nclass Fill:\n    def __init__(self, cfg, device, writer=None):\n"
        "        self.value, self.most = cfg['value'] + cfg.get('more', 1), cfg.most\n\n"
        "    def unlearn(self, net, retain_loader, forget_loader, val_loader, scale=1.0):\n"
        "        assert len(retain_loader) and len(forget_loader)\n"
        "        with torch.no_grad():\n            net[0].weight.fill_(self.value * scale)\n        return net\n"
    )
    options = {"value": 2.0, "most": 1, "scale": 3.0}
    after = unlearned(stack, "classic", file=str(file), function="Fill.unlearn", options=options)
    assert (after.parameters["0.weight"] == 9.0).all()
    arguments, more = syntax.signature(file, "Fill.unlearn")
    assert not more
    assert dict(arguments) == {"cfg": True, "device": True, "writer": False, "net": True, "retain_loader": True,
                               "forget_loader": True, "val_loader": True, "scale": False}  # fmt: skip


def test_what_stands_in_for_a_package_is_no_number():
    with _packages.replaced(["gauges"]):
        from gauges.inner import level

        with pytest.raises(TypeError):
            level * 2.0
        with pytest.raises(TypeError):
            float(level())
    with pytest.raises(ModuleNotFoundError):
        import gauges  # noqa: F401
    from xml.sax import handler  # a part of a package that is installed, and imported already

    with _packages.replaced(["xml.sax"]):
        from xml.sax import handler as absent

        assert isinstance(absent, _packages.StandIn)
    from xml.sax import handler as again

    assert again is handler


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("pass", 1.0), ("return {'accuracy': 0.5}", 1.0), ("return other, {'loss': 1.0}", 2.0),
        ("return other.state_dict()", 2.0), ("return torch.nn.DataParallel(other)", 2.0),
        ("return {f'module.{k}': v for k, v in other.state_dict().items()}", 2.0),
        ("return {f'_orig_mod.module.{k}': v for k, v in other.state_dict().items()}", 2.0),
        ("return {'accuracy': 0.5, 'model': other}", 2.0), ("return {'state_dict': other.state_dict()}", 2.0),
    ],
)  # fmt: skip
def test_a_result_is_taken_in_every_form(tmp_path, last, expected):
    file = tmp_path / "mine.py"
    file.write_text(
        "import copy\nimport torch\n\n\ndef unlearn(model, retain, forget):\n    other = copy.deepcopy(model)\n"
        "    with torch.no_grad():\n        model[0].weight.fill_(1.0)\n        other[0].weight.fill_(2.0)\n"
        f"    {last}\n"
    )
    after = unlearned(trained(seeds=SEEDS[:2]), "classic", file=str(file))
    assert (after.parameters["0.weight"] == expected).all()
