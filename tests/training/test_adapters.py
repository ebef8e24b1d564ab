"""Low-rank adapters: merged as peft merges them, trained alone, stored alone, and the same in any company."""

import copy

import numpy as np
import pytest
import torch
import transformers
from unlearning_audit import stats
from unlearning_audit.models import gpt2, llama
from unlearning_audit.training import rounding
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack, read_models
from unlearning_audit.training.streams import Rows

from text_cases import LENGTH, passages, save_models

SEEDS = [3, 4, 5]
ADAPTER = {"rank": 2, "alpha": 6.0}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Folders of saved models, by kind."""
    folder = tmp_path_factory.mktemp("weights")
    save_models(folder)
    return folder


def build(weights, module=gpt2, **adapter):
    options = module.Options(weights=str(weights / module.__name__.split(".")[-1]), adapter={**ADAPTER, **adapter})
    return module.build(options, (LENGTH,), 2)


def untrained(weights, seeds=SEEDS, module=gpt2, **settings):
    labels = np.zeros(len(passages()), np.int64)
    return ModelStack.create(lambda: build(weights, module), passages(), labels, seeds, **settings)


def stack(weights, seeds=SEEDS, backend="serial", dtype=torch.float64, module=gpt2):
    recipe = Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=2)
    models = untrained(weights, seeds, module, recipe=recipe, backend=backend, dtype=dtype)
    models.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
    return models


@pytest.mark.slow  # importing peft takes seconds
@pytest.mark.parametrize(("module", "reference"), [(gpt2, "GPT2LMHeadModel"), (llama, "LlamaForCausalLM")])
def test_the_merged_weights_are_pefts(weights, module, reference):
    import peft  # seconds, which a process that only lists the tests need not spend

    network = build(weights, module)
    folder = weights / module.__name__.split(".")[-1]
    layers = {key: key.replace("/", ".").removeprefix("trunk.").removesuffix(".weight") for key in network.turned}
    config = peft.LoraConfig(r=2, lora_alpha=6, target_modules=[*layers.values()], fan_in_fan_out=module is gpt2)
    adapted = peft.get_peft_model(getattr(transformers, reference).from_pretrained(folder), config)
    torch.manual_seed(0)
    with torch.no_grad():
        for key, name in layers.items():
            network.b[key].normal_()
            (layer,) = [m for n, m in adapted.named_modules() if n.endswith(name) and hasattr(m, "lora_A")]
            layer.lora_A["default"].weight.copy_(network.a[key])
            layer.lora_B["default"].weight.copy_(network.b[key])
    x = torch.from_numpy(passages()[::3]).long()
    vocabulary = network(x, reading="tokens")
    torch.testing.assert_close(adapted(input_ids=x).logits[:, :-1], vocabulary, rtol=1e-5, atol=1e-5)
    merged, actual = adapted.merge_and_unload().state_dict(), network.merged()
    for name in layers.values():
        (value,) = [v for n, v in merged.items() if n.endswith(f"{name}.weight")]
        torch.testing.assert_close(actual[f"trunk.{name}.weight"], value, rtol=1e-5, atol=1e-6)
    assert len(layers) == (8 if module is gpt2 else 7)


def test_a_fresh_adapter_is_the_frozen_model_and_its_draws_are_the_seeds_own(weights):
    plain = gpt2.build(gpt2.Options(weights=str(weights / "gpt2")), (LENGTH,), 2)
    x = torch.from_numpy(passages())
    assert torch.equal(build(weights)(x), plain(x))
    a = untrained(weights, [1, 2, 1]).parameters["a.trunk/h/0/attn/c_attn/weight"]
    assert torch.equal(a[0], a[2])
    assert not torch.equal(a[0], a[1])


def test_factors_alone_are_trained_and_stored_and_what_is_frozen_stays(weights, tmp_path):
    models = stack(weights)
    before = transformers.GPT2LMHeadModel.from_pretrained(weights / "gpt2").state_dict()
    after = gpt2.build(gpt2.Options(weights=str(weights / "gpt2")), (LENGTH,), 2).trunk.state_dict()
    assert all(torch.equal(value, before[f"transformer.{name}"]) for name, value in after.items())
    models.write(tmp_path / "models.safetensors")
    stored = read_models(tmp_path / "models.safetensors")
    assert set(stored) == {f"{side}.{key}" for key in models.model.turned for side in "ab"}
    assert all(value.any() for value in stored.values())
    again = untrained(weights, dtype=torch.float64)
    again.load(tmp_path / "models.safetensors")
    assert np.array_equal(again.logits(), models.logits())
    # Training has learned something.
    assert (models.logits()[:, :20, 0].mean(1) > models.logits()[:, 20:, 0].mean(1)).all()


@pytest.mark.parametrize("module", [gpt2, llama])
def test_what_is_rounded_are_the_weights_that_are_deployed(weights, module):
    models = stack(weights, SEEDS[:2], module=module)
    rows = np.arange(12)
    phi, _ = rounding.rounded_predictions(models, rows, [24, 2])
    exact = stats.phi(logits=models.logits(rows), y=np.zeros((2, 12), np.int64))
    assert np.abs(phi[:, 0] - exact).max() < 1e-4
    for m in range(2):
        plain = models.extract(m).plain()
        with torch.no_grad():
            for name, value in plain.named_parameters():
                if value.ndim > 1:
                    # A Conv1D's weights lie [inputs, outputs].
                    own = value.mT if models.model.turned.get(name.replace(".", "/")) else value
                    own.copy_(rounding.rounded(own[None].clone(), 2)[0])
            logits = plain(torch.from_numpy(passages()[rows])).numpy()
        assert np.abs(phi[m, 1] - stats.phi(logits=logits[None], y=np.zeros((1, 12), np.int64))).max() < 1e-4
    assert np.abs(phi[:, 1] - phi[:, 0]).max() > 0.01


def test_what_cannot_be_adapted_is_said(weights):
    assert set(build(weights, targets=("attn.c_attn",)).turned) == {f"trunk/h/{i}/attn/c_attn/weight" for i in (0, 1)}
    with pytest.raises(ValueError, match="no linear layer has a name that ends with query, key"):
        build(weights, targets=("query", "key"))
    with pytest.raises(ValueError, match="adapter needs weights"):
        gpt2.Options(adapter=ADAPTER)
    with pytest.raises(ValueError, match="no final layer of its own"):
        _ = stack(weights, SEEDS[:2]).head
    network = build(weights)
    assert torch.equal(copy.deepcopy(network)(torch.from_numpy(passages())), network(torch.from_numpy(passages())))
