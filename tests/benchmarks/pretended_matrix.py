"""All that a card is given, on the pretended one against the processor: every architecture by training (recorded SGD,
Adam and relatives, momentum, jitter, recorded updates, bfloat16, DP), every method, curvature, readings and generation.

    python tests/benchmarks/pretended_matrix.py [--models resnet8 gpt2 ...] [--parts train private methods read]

Networks are tiny; images are random numbers. Prints a line for each cell: the largest difference of any number, where
numbers are larger than 1 in shares of the largest of its tensor; replays, uploads, the two most frequent waits and
their lines, and seconds. A cell that cannot be computed on the processor either says why. Ends with 1 if a cell failed
or differs by more than `TOLERANCE` (`SCHEDULED` and `HALF` where rates or numbers are rounded). The suite runs a part
of this, `tests/training/test_on_a_card.py`. Of a ResNet-18 the allocator keeps gigabytes after each cell, unless
MALLOC_MMAP_THRESHOLD_=1000000 stands in the environment.
"""

import argparse
import gc
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

import numpy as np
import torch
from pydantic import BaseModel
from unlearning_audit.plugins import registry
from unlearning_audit.training import features, generation, relearning, tokens
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from pretended_card import pretended
from stack_cases import OPTIONS, SHORT

#: All is computed in double precision but learning rates, which a card has in single precision: methods get rates that
#: single precision has (and that move the weights, as published ones hardly do in a few steps), schedules are rounded.
TOLERANCE, SCHEDULED, HALF = 1e-9, 1e-5, 2e-2
RATE, METHOD_RATE = 2**-4, 2**-7

IMAGES, TEXT, LENGTH, VOCABULARY = (3, 12, 12), "text", 9, 37
SAMPLES, SEEDS = 40, (3, 4)
SIZE = {"vocabulary": VOCABULARY, "layers": 2, "width": 8, "heads": 2}

#: Cell → (file in models/, its options, what it reads); "LORA" stands for a folder of saved weights.
MODELS: dict[str, tuple[str, dict, object]] = {
    "linear": ("linear", {}, IMAGES),
    "mlp": ("mlp", {"hidden": (9, 7)}, IMAGES),
    "cnn": ("cnn", {"channels": (4, 6)}, IMAGES),
    "cnn, group norm": ("cnn", {"channels": (4, 8), "norm": "group", "groups": 2}, IMAGES),
    "resnet18": ("resnet18", {}, IMAGES),
    "resnet18, group norm": ("resnet18", {"norm": "group"}, IMAGES),
    "resnet8": ("resnet_cifar", {"depth": 8}, IMAGES),
    "airbench": ("airbench", {"widths": (8, 8)}, IMAGES),
    "swin_s": ("swin_s", {"image_size": 32, "depths": (1, 1, 1, 1), "heads": (1, 1, 2, 2), "width": 8}, IMAGES),
    "embedding_bag": ("embedding_bag", {"vocabulary": VOCABULARY, "width": 6}, TEXT),
    "bert": ("bert", SIZE, TEXT),
    "distilbert": ("distilbert", SIZE, TEXT),
    "gpt2": ("gpt2", SIZE, TEXT),
    "gpt_neox": ("gpt_neox", SIZE, TEXT),
    "llama": ("llama", SIZE, TEXT),
    "gpt2, LoRA": ("gpt2", {"weights": "LORA", "adapter": {"rank": 2}}, TEXT),
    "gpt_neox, LoRA": ("gpt_neox", {"weights": "LORA", "adapter": {"rank": 2}}, TEXT),
    "llama, LoRA": ("llama", {"weights": "LORA", "adapter": {"rank": 2}}, TEXT),
}

#: What runs: a stack on its device → the stack, or arrays.
Run = Callable[[ModelStack], object]


def seeds(name: str) -> tuple[int, ...]:
    """Those of the models of a cell; recordings of two ResNet-18 take more than 20 GB."""
    return SEEDS[:1] if MODELS[name][0] == "resnet18" else SEEDS


def saved(folder: Path) -> None:
    """Write tiny language models as transformers saves them, for the adapters."""
    import transformers as t

    t.logging.disable_progress_bar()
    tokens_of = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
            "max_position_embeddings": LENGTH, **tokens_of}  # fmt: skip
    gpt2 = t.GPT2Config(n_positions=LENGTH, n_embd=8, n_layer=1, n_head=2, **tokens_of)
    t.GPT2LMHeadModel(gpt2).save_pretrained(folder / "gpt2")
    t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**size)).save_pretrained(folder / "gpt_neox")
    t.LlamaForCausalLM(t.LlamaConfig(num_key_value_heads=2, **size)).save_pretrained(folder / "llama")


def stack(name: str, folder: Path, device: str, dtype: torch.dtype, **recipe: object) -> ModelStack:
    """Untrained models of one cell."""
    module, options, reads = MODELS[name]
    architecture, rng = registry.load("models", module), np.random.default_rng(0)
    if options.get("weights") == "LORA":
        options = options | {"weights": str(folder / module)}
    settings = architecture.Options(**options)
    if reads == TEXT:
        x = rng.integers(0, VOCABULARY, (SAMPLES, LENGTH)).astype(np.int32)
        x[:, 0] = ~x[:, 0]
        shape, classes = (LENGTH,), 2
        y = rng.integers(0, classes, SAMPLES) * (module in ("embedding_bag", "bert", "distilbert"))
    else:
        shape, classes = reads, 4
        x, y = rng.integers(0, 256, (SAMPLES, *shape), dtype=np.uint8), rng.integers(0, classes, SAMPLES)
    recipe = {"lr": RATE, "momentum": 0.9, "weight_decay": 5e-4, "batch_size": 8, "epochs": 2} | recipe
    models = ModelStack.create(
        lambda: architecture.build(settings, shape, classes), x, y, seeds(name), recipe=Recipe(**recipe), device=device,
        dtype=dtype,
    )  # fmt: skip
    following = [(np.arange(SAMPLES) + step) % SAMPLES for step in (1, 2)]
    models.views = {
        "refusal": torch.from_numpy(following[0][:, None]).to(device),
        "alternate": torch.from_numpy(np.stack(following, 1)).to(device),
    }
    return models


def rows(name: str) -> tuple[Rows, Rows, np.ndarray]:
    """Rows to forget and to retain, and bool [models, samples] of those to forget."""
    orders = np.stack([np.random.default_rng(seed).permutation(SAMPLES) for seed in seeds(name)])
    forget = np.zeros((len(orders), SAMPLES), bool)
    np.put_along_axis(forget, orders[:, :9], True, 1)
    return Rows.where(forget), Rows(orders[:, 9:29]), forget


def training(name: str) -> Iterator[tuple[str, dict, Run]]:
    """Cells of training: label, recipe, what runs."""
    _, retain, mask = rows(name)

    def train(models: ModelStack) -> ModelStack:
        models.train(retain, record=mask if models.recipe.record_updates else None)
        return models

    recipes = {"sgd, cosine": {"schedule": "cosine"}, "sgd, one_cycle": {"schedule": "one_cycle"}}
    recipes |= {kind: {"optimiser": kind, "lr": 2**-10, "schedule": "cosine"} for kind in ("adam", "adamw", "rmsprop")}
    recipes |= {"recorded updates": {"record_updates": True}, "bfloat16": {"precision": "bfloat16"},
                "class weights": {"class_weights": "balanced"}}  # fmt: skip
    if MODELS[name][2] != TEXT and name not in ("linear", "mlp"):
        recipes["crop_flip"] = {"augment": "crop_flip"}
    return ((label, recipe, train) for label, recipe in recipes.items())


def private(name: str) -> Iterator[tuple[str, dict, Run]]:
    """The cell of training with DP."""
    for label, _, train in training(name):
        if label == "sgd, cosine":
            yield "dp", {"dp": {"epsilon": 50.0}, "momentum": 0.0}, train


def rates(settings: type[BaseModel]) -> dict:
    """All learning rates of a method's options, those of its stages too, as `METHOD_RATE`."""
    changes: dict = {}
    for name, field in settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            changes[name] = rates(field.annotation)
        elif name == "lr" or name.endswith("_lr"):
            changes[name] = METHOD_RATE
    return changes


def methods(name: str) -> Iterator[tuple[str, dict, Run]]:
    """A cell for each method, on models that were trained with recorded updates."""
    forget, retain, mask = rows(name)
    for method in registry.names("methods"):
        module = registry.load("methods", method)
        fields = module.Options.model_fields
        options = {key: value for key, value in SHORT.items() if key in fields} | OPTIONS.get(method, {})
        options = rates(module.Options) | options

        def run(models: ModelStack, module=module, options=options) -> ModelStack:
            models.train(retain + forget, record=mask)
            module.unlearn(models, forget, retain, module.Options(**options))
            return models

        yield method, {"epochs": 1, "record_updates": True}, run


def read(name: str) -> Iterator[tuple[str, dict, Run]]:
    """Cells of curvature, logits, readings, relearning and generation."""
    forget, _, _ = rows(name)

    def state(values: dict) -> list:
        return [value.cpu() for value in values.values()]

    batch = np.tile(np.arange(5), (len(seeds(name)), 1))
    cells: dict[str, Run] = {
        "logits": lambda b: [b.logits(), b.logits(np.arange(5))],
        "gradient": lambda b: state(b.gradient(forget)),
        "squared norms": lambda b: [b.squared_norms(forget).cpu()],
        "curvature, observed": lambda b: state(b.squared_gradients(forget)),
        "curvature, model": lambda b: state(b.squared_gradients(forget, labels="model")),
        "curvature, batches": lambda b: state(b.squared_gradients(forget, per_sample=False, batch_size=4)),
        "features": lambda b: [features.readings(b, forget.index)],
        "relearning": lambda b: list(relearning.curves(b, forget, np.arange(10), 3)[1:2]),
    }
    if MODELS[name][0] in ("gpt2", "gpt_neox", "llama"):
        cells["tokens"] = lambda b: [tokens.readings(b, np.arange(10))]
        cells["generation"] = lambda b: [generation.greedy(b, batch)]
    return ((label, {}, run) for label, run in cells.items())


PARTS = {"train": training, "private": private, "methods": methods, "read": read}


def difference(expected: object, value: object) -> float:
    """The largest difference of two stacks, or of two lists of arrays, in shares of the largest number of its tensor
    where that is above 1; infinite where one holds NaN alone."""
    if isinstance(expected, ModelStack):
        states = [{**stack.parameters, **stack.buffers} for stack in (expected, value)]
        pairs = [(states[0][name], states[1][name].cpu()) for name in states[0]]
    else:
        pairs = list(zip(expected, value, strict=True))
    gaps = [0.0]
    for a, b in pairs:
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        same = np.isnan(a) & np.isnan(b)
        gap = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf)).max(initial=0.0)
        gaps.append(float(gap / np.maximum(1.0, np.nan_to_num(np.abs(a)).max(initial=0.0))))
    return max(gaps)


def cell(name: str, folder: Path, recipe: dict, run: Run) -> tuple[bool, str]:
    """Whether one cell is right, and its line."""
    half, scheduled = recipe.get("precision") == "bfloat16", recipe.get("schedule", "constant") != "constant"
    dtype, bound = (torch.float32, HALF) if half else (torch.float64, SCHEDULED if scheduled else TOLERANCE)
    try:
        expected = run(stack(name, folder, "cpu", dtype, **recipe))
    except ValueError as error:
        return True, f"not on the processor either: {error}"
    except Exception as error:
        return False, f"FAILS on the processor: {summary(error)}"
    with pretended() as card:
        try:
            models = stack(name, folder, "cuda", dtype, **recipe)
            card.waits.clear()
            card.uploads.clear()
            actual = run(models)
            waits = card.waits.copy()
            uploads, replays = sum(card.uploads.values()), card.replays
            gap = difference(expected, actual)
        except Exception as error:
            return False, f"FAILS: {summary(error)}"
    right = gap <= bound
    mark, most = "" if right else "DIFFERS: ", ", ".join(f"{wait} × {n}" for wait, n in waits.most_common(2))
    return right, f"{mark}{gap:.1e}, {replays} replays, {uploads} uploads, waits: {most or 'none'}"


def summary(error: Exception) -> str:
    """Type and first line of an error."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"


def main() -> int:
    """0 if all cells are right, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="CELL")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "Full backward hook|Secure RNG|Using a non-full backward")
    torch.set_num_threads(1)
    right = []
    with tempfile.TemporaryDirectory() as folder:
        if any(MODELS[name][1].get("weights") == "LORA" for name in options.models):
            saved(Path(folder))
        for name in options.models:
            for part in options.parts:
                for label, recipe, run in PARTS[part](name):
                    start, (passed, line) = time.perf_counter(), cell(name, Path(folder), recipe, run)
                    right.append(passed)
                    gc.collect()  # recorded steps hold each other
                    print(f"{name} {part} {label}: {line} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{len(right)} cells, {right.count(False)} wrong")
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
