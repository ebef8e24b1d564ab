"""What methods cost here and in their authors' own code, on the same models and samples, in one run on one core.

    python tests/benchmarks/methods.py --sources FOLDER [--models 32] [--repeats 5]

FOLDER holds check-outs of the authors' repositories, each under a name: ``bad_teaching`` (vikram2000b/
bad-teaching-unlearning), ``ssd`` (if-loops/selective-synaptic-dampening), ``deepunlearn`` (xcadet/deepunlearn); those
that are not there are left out. Their functions run as a user's file does, unchanged, model by model, over loaders; the
methods here change all models of a stack at once. Perceptrons of 64 hidden units that learned digits, a tenth to be
forgotten, batches of 64, as many passes on both sides. Both take turns; time is the processor's. Prints milliseconds
for one model and the ratio of theirs to ours, as the median over repeats with the smallest and largest value.
"""

import argparse
import io
import logging
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from unlearning_audit.methods import classic
from unlearning_audit.plugins import registry
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from common import by_turns, clocked, told

#: Samples that are to be forgotten.
FORGOTTEN = 180
SGD = {"optimizer": {"name": "SGD", "lr": 0.01, "momentum": 0.9}}
LOGGERS = ["optuna", "hydra", "omegaconf", "hydra_zen", "timm", "tensorboard"]
SSD = {"batch": "x, y, y", "without": ["wandb", "seaborn"], "skip": ["get_metric_scores"]}
DAMPENING = {"dampening_constant": 1.0, "selection_weighting": 10.0}
SSD_FILE = "ssd/src/forget_full_class_strategies.py:ssd_tuning"
#: What is compared → the method here, its options; the authors' file and function, what a study says beside them.
WAYS = {
    "NegGrad+, 5 epochs": (
        "neggrad_plus", {"epochs": 5, "beta": 0.95},
        "deepunlearn/munl/unlearning/neggradplus.py:negative_grad",
        {"without": LOGGERS, "options": {**SGD, "epochs": 5, "alpha": 0.95, "weight_decay": 0.0}},
    ),
    "SalUn's random labels, 1 epoch": (
        "salun", {"epochs": 1, "keep": 0.5},
        "deepunlearn/munl/unlearning/salun.py:RandomRelabel",
        {"without": LOGGERS, "options": SGD},
    ),
    "bad teacher, 5 epochs": (
        "bad_teacher", {"epochs": 5, "retain_share": 1.0},
        "bad_teaching/unlearn.py:blindspot_unlearner",
        {"options": {"epochs": 5, "lr": 5e-4, "batch_size": 64, "num_workers": 0}},
    ),
    "SSD, batches": ("ssd", {"per_sample": False}, SSD_FILE, {**SSD, "options": DAMPENING}),
    "SSD, sample by sample": ("ssd", {"per_sample": True}, SSD_FILE, {**SSD, "batch_size": 1, "options": DAMPENING}),
}  # fmt: skip


def trained(models: int) -> tuple[ModelStack, Rows, Rows]:
    """Models that know all samples, what they are to forget, and the rest."""
    digits = load_digits()
    x, y = (digits.data / 16).astype(np.float32), digits.target.astype(np.int64)
    mlp = registry.load("models", "mlp")
    recipe = Recipe(lr=0.05, momentum=0.9, batch_size=64, epochs=10)
    options, shape = mlp.Options(hidden=(64,)), x.shape[1:]
    stack = ModelStack.create(lambda: mlp.build(options, shape, 10), x, y, range(models), recipe=recipe)
    order = np.random.default_rng(0).permutation(len(x))
    forget, retain = (Rows(np.tile(np.sort(part), (models, 1))) for part in (order[:FORGOTTEN], order[FORGOTTEN:]))
    stack.train(retain + forget)
    return stack, forget, retain


def seconds(stack: ModelStack, forget: Rows, retain: Rows, method, options) -> float:
    """Processor time of one model's unlearning."""
    with redirect_stdout(io.StringIO()):  # authors' code prints as it goes
        return clocked(method.unlearn, stack.copy(), forget, retain, options) / len(stack)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    stack, forget, retain = trained(arguments.models)
    # Authors' code takes the same time for every model, so that two models are enough.
    two_models = stack.take(np.arange(2)), forget[[0, 1]], retain[[0, 1]]
    for name, (plugin, options, place, fields) in WAYS.items():
        path, function = place.rsplit(":", 1)
        if not (arguments.sources / path).is_file():
            continue
        method = registry.load("methods", plugin)
        library = (stack, forget, retain, method, method.Options(**options))
        file = str(arguments.sources / path)
        published = (*two_models, classic, classic.Options(file=file, function=function, **fields))
        ways = {"theirs": partial(seconds, *published), "here": partial(seconds, *library)}
        print(f"{name:31} {told(by_turns(ways, arguments.repeats))}", flush=True)


if __name__ == "__main__":
    main()
