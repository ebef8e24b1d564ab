"""Weights of text models from a folder, and samples and weights that do not fit."""

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
from unlearning_audit.models import bert, embedding_bag, gpt2

from text_cases import LENGTH, VOCABULARY


@pytest.fixture
def saved(tmp_path):
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=12, n_embd=12, n_layer=1, n_head=2,
                        bos_token_id=None, eos_token_id=None)  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny", model


def test_weights_come_from_a_folder(saved):
    path, reference = saved
    model = gpt2.build(gpt2.Options(weights=str(path)), (LENGTH,), 2)
    for name, value in reference.transformer.state_dict().items():
        assert torch.equal(model.trunk.state_dict()[name], value), name
    assert model.vocabulary == VOCABULARY
    second = gpt2.build(gpt2.Options(weights=str(path)), (LENGTH,), 2)
    with torch.no_grad():
        next(second.parameters()).zero_()
    assert next(model.parameters()).any(), "models share no memory"


def test_an_encoder_takes_its_trunk_from_a_folder(tmp_path):
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16, max_position_embeddings=12)  # fmt: skip
    reference = BertModel(config)
    reference.save_pretrained(tmp_path)
    model = bert.build(bert.Options(weights=str(tmp_path)), (LENGTH,), 4)
    trunk = model.trunk.state_dict()
    assert trunk
    assert all(torch.equal(reference.state_dict()[name], value) for name, value in trunk.items())


def test_unusable_weights_and_samples_are_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path, _ = saved
    with pytest.raises(ValueError, match=r"12 positions; shorten data.length"):
        gpt2.build(gpt2.Options(weights=str(path)), (13,), 2)
    with pytest.raises(ValueError, match=r"weights: .*nothing.* name a folder"):
        gpt2.build(gpt2.Options(weights=str(tmp_path / "nothing")), (LENGTH,), 2)
    for module in (gpt2, embedding_bag, bert):
        with pytest.raises(ValueError, match=r"needs tokens \[length\]"):
            module.build(module.Options(), (3, 32, 32), 2)


def test_tiny_is_gpt2_small_in_small():
    """The published size of GPT-2 small, from its printed dimensions, without building it."""
    options = gpt2.Options(vocabulary=50257, layers=12, width=768, heads=12)
    with torch.device("meta"):
        model = gpt2.build(options, (1024,), 2)
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == 124
