"""What SSD forgets of photographs, and what it costs, at each strength: does any α forget without damage?

    python tests/benchmarks/ssd_strength.py DATA KEPT

Four models (airbench, eight epochs) of 2,273 images of CIFAR-10 in the folder DATA each, of which they forget 227; as
many are held out. A line of the table KEPT is one α, the mean of the models; Fisher information is of means of batches,
as in the published code.
"""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from unlearning_audit.data import cifar10
from unlearning_audit.methods._dampening import dampen
from unlearning_audit.models import airbench
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

MODELS, TRAINED, FORGOTTEN, TESTED = 4, 2273, 227, 2000
STRENGTHS = (10, 5, 4, 3, 2, 1.5, 1)


def main(data: str, kept: str) -> None:
    torch.set_num_threads(1)
    source = cifar10.load(cifar10.Options(data_dir="."), Path(data))
    orders = [np.random.default_rng(m).permutation(50_000)[: TRAINED + FORGOTTEN] for m in range(MODELS)]
    rows = np.stack(orders)
    forget, retain, held_out = (
        rows[:, part] for part in (slice(FORGOTTEN), slice(FORGOTTEN, TRAINED), slice(TRAINED, None))
    )
    test = np.tile(np.arange(50_000, 50_000 + TESTED), (MODELS, 1))
    stack = ModelStack.create(
        lambda: airbench.build(airbench.Options(widths=(16, 64, 64)), (3, 32, 32), 10), source.x, source.y,
        range(MODELS), recipe=Recipe(epochs=8, lr=0.05, momentum=0.9, weight_decay=0.001, schedule="one_cycle"),
    )  # fmt: skip
    stack.train(Rows(rows[:, :TRAINED]))
    total, lost = (stack.squared_gradients(Rows(index), per_sample=False) for index in (rows[:, :TRAINED], forget))
    with Path(kept).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["alpha", "dampened", "forget", "held_out", "retain", "test"])
        for strength in ("", *STRENGTHS):
            models, weights = stack.copy(), sum(value.numel() for value in stack.parameters.values())
            if strength:
                dampen(models, total, lost, strength, 1.0)
            moved = sum(int((models.parameters[k] != v).sum()) for k, v in stack.parameters.items())
            right = [
                np.mean([(single.logits(index[m])[0].argmax(-1) == source.y[index[m]]).mean()
                         for m, single in enumerate(models.take(np.array([m])) for m in range(MODELS))])
                for index in (forget, held_out, retain, test)
            ]  # fmt: skip
            table.writerow([strength, f"{moved / weights:.4f}", *(f"{share:.4f}" for share in right)])
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
