"""The forecast's bytes of a card against what training and methods take of the pretended one, and those of main memory
against a process that makes and writes models."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from unlearning_audit.bank.bank import Bank
from unlearning_audit.bank.chunks import chunks
from unlearning_audit.bank.recipe import Recipe
from unlearning_audit.bank.streams import Rows
from unlearning_audit.plugins import registry
from unlearning_audit.workflow.forecast import memory

from bank_cases import OPTIONS, SHORT, conv, fresh, rows
from pretended_card import pretended

IMAGE, TOKENS, VOCABULARY = (3, 16, 16), (16,), 500
LORA = {"weights": "LORA", "adapter": {"rank": 4}}
GPT2 = {"vocabulary": VOCABULARY, "layers": 1, "width": 32, "heads": 2}
SWIN = {"image_size": 32, "depths": (1, 1, 1, 1), "heads": (1, 1, 2, 2), "width": 16}
ADAMW, DP = {"optimiser": "adamw", "lr": 1e-3}, {"dp": {"epsilon": 50.0}, "momentum": 0.0}

#: What trains → (file in models/, its options, samples of a batch, what the recipe says).
FAMILIES = {
    "mlp": ("mlp", {"hidden": (64, 64)}, 64, {}),
    "cnn": ("cnn", {"channels": (16, 32)}, 64, {}),
    "cnn, recorded updates": ("cnn", {"channels": (16, 32)}, 64, {"record_updates": True}),
    "cnn, bfloat16": ("cnn", {"channels": (16, 32)}, 64, {"precision": "bfloat16"}),
    "cnn, DP": ("cnn", {"channels": (16, 32), "norm": "group", "groups": 4}, 64, DP),
    "mlp, DP": ("mlp", {"hidden": (64, 64)}, 64, DP),
    "resnet8": ("resnet_cifar", {"depth": 8}, 32, {}),
    "resnet8, DP": ("resnet_cifar", {"depth": 8, "norm": "group"}, 32, DP),
    "airbench": ("airbench", {"widths": (16, 32)}, 32, {}),
    "swin_s": ("swin_s", SWIN, 16, {}),
    "gpt2": ("gpt2", GPT2, 32, ADAMW),
    "gpt2, LoRA": ("gpt2", LORA, 32, ADAMW),
    "llama, LoRA": ("llama", LORA, 32, ADAMW),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Language models as transformers saves them."""
    import transformers as t

    folder = tmp_path_factory.mktemp("weights")
    tokens = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    gpt2 = t.GPT2Config(n_positions=16, n_embd=32, n_layer=1, n_head=2, **tokens)
    t.GPT2LMHeadModel(gpt2).save_pretrained(folder / "gpt2")
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 16, **tokens}  # fmt: skip
    t.LlamaForCausalLM(t.LlamaConfig(**size)).save_pretrained(folder / "llama")
    return folder


def building(module, options, folder=None):
    """What builds a network, and the shape of its samples."""
    architecture = registry.load("models", module)
    shape = TOKENS if module in ("gpt2", "llama") else IMAGE
    if options.get("weights") == "LORA":
        options = options | {"weights": str(folder / module)}
    settings = architecture.Options(**options)
    return lambda: architecture.build(settings, shape, 2), shape


def samples(shape, count):
    rng, tokens = np.random.default_rng(0), len(shape) == 1
    x = rng.integers(1, VOCABULARY, (count, *shape)).astype(np.int32) if tokens else None
    x = rng.integers(0, 256, (count, *shape), dtype=np.uint8) if x is None else x
    return x, np.zeros(count, np.int64) if tokens else rng.integers(0, 2, count)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_what_training_takes_of_a_card_is_what_the_forecast_says(family, weights, monkeypatch):
    """One step of each of two models, one after the other: within 10 % either way, and below it with the allowance for
    gaps between blocks."""
    monkeypatch.setenv("UNLEARNING_IN_FLIGHT", "1")
    module, options, batch, changes = FAMILIES[family]
    build, shape = building(module, options, weights)
    x, y = samples(shape, 2 * batch)
    recipe = Recipe(**{"lr": 0.05, "momentum": 0.9, "batch_size": batch, "epochs": 1} | changes)
    model = memory.footprint(build, shape, len(shape) == 1, recipe.precision, recipe.dp is not None)
    job = memory.Job(
        2, recipe.optimiser, batch, x.nbytes + y.nbytes, 0, recorded=recipe.record_updates,
        private=recipe.dp is not None,
    )  # fmt: skip
    mask = np.zeros((2, len(x)), bool)
    mask[:, :3] = True
    with pretended(1 << 40) as card:
        bank = Bank.create(build, x, y, (3, 4), recipe=recipe, device="cuda")
        bank.train(Rows(np.tile(np.arange(batch), (2, 1))), record=mask if recipe.record_updates else None)
        peak = card.memory.peak
    forecast = memory.on_card(model, job, 2, 1, 1, again=False) - memory.CONTEXT
    assert peak <= forecast
    assert forecast / memory.MARGIN == pytest.approx(peak, rel=0.1)
    assert memory.on_card(model, job, 2, 1, 1) - memory.CONTEXT >= forecast


class Tied(torch.nn.Module):
    """Tokens whose embedding is the weight of the output as well."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(x).mean(1))


def test_weights_that_are_tied_count_once():
    model = memory.footprint(Tied, (6,), True, "float32")
    bank = Bank.create(Tied, *samples((6,), 8), (3,))
    assert model.weights == sum(value[0].nbytes for value in (bank.parameters | bank.buffers).values())
    assert model.weights == 4 * (50 * 8 + 50)


@pytest.mark.parametrize("says", [True, False])
def test_a_file_of_a_user_says_that_it_takes_squared_gradients(tmp_path, says):
    file = tmp_path / "mine.py"
    file.write_text(f"SQUARED_GRADIENTS = {says}\n")
    settings = {"method": "mine", "recipe": {}, "method_options": {}}
    about = {"bytes": 1, "samples": 48, "classes": 2}
    job = memory.job({"settings": settings, "place": {"method_file": str(file)}}, about, {"models": 4})
    assert (job.unlearns, job.curved) == (True, says)


#: Methods that take most of a card beside those with many copies of the weights.
CURVED = ("fisher", "ssd", "lfssd", "unsir", "newton")


@pytest.mark.parametrize(
    ("module", "method"),
    [*(("mlp", name) for name in ("bad_teacher", "scrub", "salun", "amnesiac", "rmu", "task_vector")),
     *(("cnn", name) for name in CURVED)],
)  # fmt: skip
def test_no_method_takes_more_than_the_forecast_says(module, method):
    """Four models at once, whose weights take most on the perceptron, and gradients of single samples on the other."""
    build, shape = building(module, {"hidden": (64, 64)} if module == "mlp" else {"channels": (32, 64)})
    x, y = samples(shape, 48)
    plugin = registry.load("methods", method)
    short = SHORT | {"batch_size": 32}  # one step of each kind, for what is recorded takes more on the pretended card
    short = {name: value for name, value in short.items() if name in plugin.Options.model_fields}
    options = plugin.Options(**short | OPTIONS.get(method, {}))
    about, count = {"bytes": x.nbytes + y.nbytes, "samples": 48, "classes": 2}, {"models": 4}
    settings = {"method": method, "recipe": {}, "method_options": options.model_dump(mode="json")}
    job = memory.job({"settings": settings, "place": {}}, about, count)
    with pretended(1 << 40) as card:
        recipe = Recipe(lr=0.05, batch_size=16, epochs=1, record_updates=method == "amnesiac")
        bank = Bank.create(build, x, y, range(4), recipe=recipe, device="cuda")
        forget, retain = (Rows(np.tile(np.arange(at, at + 16), (4, 1))) for at in (0, 16))
        mask = np.zeros((4, 48), bool)
        mask[:, :16] = True
        if method == "amnesiac":
            bank.train(forget + retain, record=mask)
        card.memory.empty()
        card.memory.forget_peak()
        plugin.unlearn(bank, forget, retain, options)
        peak = card.memory.peak
    model = memory.footprint(build, shape, False, "float32")
    assert peak <= memory.on_card(model, job, 4, 1, 1) - memory.CONTEXT


def test_rows_are_worked_on_in_halves_where_memory_runs_out():
    rows_done, tried = [], []

    def work(part):
        tried.append(part.stop - part.start)
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        rows_done.extend(range(20)[part])

    chunks(20, 11, work)
    assert rows_done == list(range(20))
    assert tried == [11, 6, *[3] * 7]
    with pytest.raises(ValueError, match="shape"):
        chunks(20, 11, lambda part: (_ for _ in ()).throw(ValueError("shape")))
    with pytest.raises(torch.OutOfMemoryError):
        chunks(20, 11, lambda part: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")))


def test_a_full_card_gives_the_same_logits_and_gradients():
    """On a card that holds a few rows at once beside the models."""
    bank = fresh(conv, range(2), backend="serial", dtype=torch.float64)
    forget, _ = rows(bank.seeds)
    logits, gradient = bank.logits(), bank.gradient(forget)
    with pretended(1 << 40) as card:
        on_card = fresh(conv, range(2), backend="serial", dtype=torch.float64, device="cuda")
        card.memory.capacity = card.memory.used() + 40_000
        np.testing.assert_allclose(on_card.logits(), logits, atol=1e-12)
        for name, value in on_card.gradient(forget).items():
            torch.testing.assert_close(value.cpu(), gradient[name], rtol=0, atol=1e-12)
        card.memory.capacity = card.memory.used() + 100
        with pytest.raises(torch.OutOfMemoryError):
            on_card.logits()


PROCESS = """
import functools
import numpy as np
from unlearning_audit.bank.bank import Bank, Shelf
from unlearning_audit.models import mlp

build = functools.partial(mlp.build, mlp.Options(hidden=(2000, 2000)), (3000,), 2)
x, y = np.zeros((4, 3000), np.float32), np.zeros(4, np.int64)
Bank.create(functools.partial(mlp.build, mlp.Options(hidden=(2,)), (3000,), 2), x, y, range(2)).write("small")


def most():
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])


before = most()
bank = Bank.create(build, x, y, range(4))
bank.write("large")
print(before, most(), sum(v[0].nbytes for v in bank.stored().values()))
"""


@pytest.mark.slow
def test_a_process_that_makes_and_writes_models_takes_what_the_forecast_says(tmp_path):
    """Models rest in main memory here, so that the portion beside what is written is theirs."""
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", PROCESS], cwd=tmp_path, env={"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    before, after, weights = map(int, process.stdout.split())
    model = memory.Footprint(weights, 0, 0, 0, True)
    forecast = memory.on_host(model, memory.Job(4, "sgd", 1, 0, 0), 4) - memory.PROCESS
    took = 1024 * (after - before)
    assert before * 1024 < memory.PROCESS
    assert 4 * weights <= took <= forecast
    assert forecast <= 3 * took
