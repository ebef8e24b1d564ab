"""What pruning costs the vulnerable samples that a model keeps (Naderloui et al. 2025, §6.3), on a small run.

    python tests/benchmarks/sparsity.py DATA KEPT

Eight models (airbench, eight epochs) of random halves of 10,000 images of CIFAR-10 in the folder DATA, in pairs of
opposite halves. Six of them say which twentieth of the samples is vulnerable: where φ of members and of others lies
furthest apart. The other two forget 300 of their samples by ℓ1-sparse, with and without pruning before, or are
retrained. A line of the table KEPT is a model: its weights that are 0, and its accuracy.
"""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from unlearning_audit import stats
from unlearning_audit.data import cifar10
from unlearning_audit.methods import l1_sparse
from unlearning_audit.models import airbench
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

IMAGES, MODELS, FORGOTTEN, TESTED, VULNERABLE = 10_000, 8, 300, 2000, 0.05
PRUNED = {"penalty alone": 0.0, "7 % pruned": 0.07, "60 % pruned": 0.6}
#: The method as in studies/ruli_cifar10_small.yaml.
OPTIONS = {"lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4, "schedule": "cosine", "epochs": 1, "batch_size": 128,
           "alpha": 3e-4, "penalty_schedule": "increase"}  # fmt: skip


def main(data: str, kept: str) -> None:
    torch.set_num_threads(1)
    source, rng = cifar10.load(cifar10.Options(data_dir="."), Path(data)), np.random.default_rng(0)
    orders = [rng.permutation(IMAGES) for _ in range(MODELS // 2)]
    members = np.sort([half for order in orders for half in np.split(order, 2)])

    def trained(rows: np.ndarray, seeds: range) -> ModelStack:
        stack = ModelStack.create(
            lambda: airbench.build(airbench.Options(widths=(16, 64, 64)), (3, 32, 32), 10), source.x, source.y, seeds,
            recipe=Recipe(epochs=8, batch_size=64, lr=0.05, momentum=0.9, weight_decay=0.001, schedule="one_cycle",
                          precision="bfloat16"),
        )  # fmt: skip
        stack.train(Rows(rows))
        return stack

    stack = trained(members, range(MODELS))
    phi = np.stack([stats.phi(logits=z, y=source.y[:IMAGES]) for z in stack.logits(np.arange(IMAGES))])[:-2]
    inside = np.zeros((MODELS, IMAGES), bool)
    np.put_along_axis(inside, members, True, 1)
    means, spreads = zip(
        *[(phi.mean(0, where=side), phi.var(0, where=side)) for side in (inside[:-2], ~inside[:-2])], strict=True
    )
    apart = (means[0] - means[1]) / np.sqrt(sum(spreads))
    vulnerable = apart >= np.quantile(apart, 1 - VULNERABLE)
    audited = stack.take(np.array([MODELS - 2, MODELS - 1]))
    mixed = rng.permuted(members[-2:], axis=1)
    forget, retain = mixed[:, :FORGOTTEN], mixed[:, FORGOTTEN:]
    models = {"before": audited, "retrained": trained(retain, range(MODELS, MODELS + 2))}
    for name, share in PRUNED.items():
        models[name] = audited.copy()
        l1_sparse.unlearn(models[name], Rows(forget), Rows(retain), l1_sparse.Options(**OPTIONS, prune=share))
    with Path(kept).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["models", "model", "zero", "vulnerable", "samples", "retain", "forget", "test"])
        for name, unlearned in models.items():
            for m in range(2):
                single = unlearned.take(np.array([m]))
                left = [value.flatten() for value in single.parameters.values() if value.ndim > 2]
                exposed = np.intersect1d(retain[m], np.flatnonzero(vulnerable))
                parts = exposed, retain[m], forget[m], np.arange(50_000, 50_000 + TESTED)
                right = [float((single.logits(of)[0].argmax(-1) == source.y[of]).mean()) for of in parts]
                zero = float((torch.cat(left) == 0).float().mean())
                table.writerow(
                    [name, m, f"{zero:.3f}", f"{right[0]:.3f}", len(exposed), *(f"{r:.3f}" for r in right[1:])]
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
