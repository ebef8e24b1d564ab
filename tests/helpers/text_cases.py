"""A tiny language model on tiny passages, for tests."""

import functools

import numpy as np
import torch
from unlearning_audit.models import gpt2
from unlearning_audit.plugins import registry
from unlearning_audit.training.optim import Optimiser
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

LENGTH, VOCABULARY = 9, 23
SEEDS = [3, 4, 5]

torch.set_num_threads(1)


def tiny(layers=1):
    """A GPT-2, 12 wide, on passages of nine tokens."""
    return gpt2.build(gpt2.Options(vocabulary=VOCABULARY, layers=layers, width=12, heads=2), (LENGTH,), 2)


def save_models(folder) -> None:
    """A tiny GPT-2 and a tiny Llama as transformers saves them, in ``folder``/gpt2 and ``folder``/llama."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    nobody = {"bos_token_id": None, "eos_token_id": None}
    small = GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=12, n_layer=2, n_head=2, **nobody)
    GPT2LMHeadModel(small).save_pretrained(folder / "gpt2")
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=2, intermediate_size=16, max_position_embeddings=LENGTH, pad_token_id=None,
                         **nobody)  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder / "llama")


def passages(n=30, seed=0) -> np.ndarray:
    """int32 [n, LENGTH]: some whole, some with a question that is not scored, some padded."""
    x = np.random.default_rng(seed).integers(1, VOCABULARY, (n, LENGTH)).astype(np.int32)
    x[1::3, :4] = ~x[1::3, :4]
    x[2::3, 6:] = -1
    return x


def stack(seeds=SEEDS, dtype=torch.float64, backend="serial", epochs=2, layers=1) -> ModelStack:
    """Models trained for a few steps."""
    recipe = Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=epochs)
    x = passages()
    build = functools.partial(tiny, layers)
    models = ModelStack.create(build, x, np.zeros(len(x), np.int64), seeds, recipe=recipe, dtype=dtype, backend=backend)
    models.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
    return models


def rows(seeds=SEEDS) -> tuple[Rows, Rows]:
    """(forget, retain)."""
    return Rows(np.tile(np.arange(6), (len(seeds), 1))), Rows(np.tile(np.arange(6, 20), (len(seeds), 1)))


def unlearned(before: ModelStack, name: str, **options) -> ModelStack:
    """A copy after one full-batch step of plain descent by a method, at rate 1, so that the update is the gradient."""
    method = registry.load("methods", name)
    plain = {k: v for k, v in Optimiser(lr=1.0, batch_size=100).model_dump().items() if k != "schedule"}
    after = before.copy()
    method.unlearn(after, *rows(before.seeds), method.Options(**{**plain, "epochs": 1, **options}))
    return after
