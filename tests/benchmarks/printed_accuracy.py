"""Which setting that the SWAP test's paper does not print makes its networks less accurate than ours?

    python tests/benchmarks/printed_accuracy.py DATA [--images 2272 --epochs 20 --keep TABLE]

ResNet-20 by the recipe of studies/swap_inf.yaml in fewer epochs, on CIFAR-10 in the folder DATA: once as it stands, and
once for each setting that is changed. A line of the table is a model: its accuracy on the 10,000 test images and on its
own. What the table has already is not trained again.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from unlearning_audit.data import cifar10
from unlearning_audit.models import resnet_cifar
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

#: What is changed → the network, the recipe, and by how much the number of images is multiplied.
CHANGES = {
    "as in swap_inf": ({}, {}, 1),
    "batch 512": ({}, {"batch_size": 512}, 1),
    "group norm": ({"norm": "group"}, {}, 1),
    "half of the images": ({}, {}, 0.5),
    "twice the images": ({}, {}, 2),
    "pixels in [0, 1]": ({"mean": (0.0,) * 3, "std": (1.0,) * 3}, {}, 1),
    "shifted and mirrored": ({}, {"augment": "crop_flip"}, 1),
    "constant rate": ({}, {"schedule": "constant", "milestones": ()}, 1),
    "four times the images": ({}, {}, 4),
}


def trained(source, network: dict, recipe: dict, images: int, epochs: int) -> tuple[float, float]:
    """Accuracy of one model on the test images and on those it was trained on."""
    settings = {
        "epochs": epochs, "batch_size": 128, "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-5, "precision": "bfloat16",
        "schedule": "multistep", "milestones": (epochs // 2, epochs * 3 // 4),
    }  # fmt: skip
    options = resnet_cifar.Options(**network)
    stack = ModelStack.create(
        lambda: resnet_cifar.build(options, (3, 32, 32), 10), source.x, source.y, [0],
        recipe=Recipe(**{**settings, **recipe}),
    )  # fmt: skip
    rows = np.random.default_rng(0).permutation(50_000)[:images]
    stack.train(Rows(rows[None]))
    right = [
        (stack.logits(index)[0].argmax(-1) == source.y[index]).mean() for index in (np.arange(50_000, 60_000), rows)
    ]
    return float(right[0]), float(right[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--images", type=int, default=2272)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--keep", type=Path, default=Path("resources/measured/swap_inf/accuracy.csv"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source = cifar10.load(cifar10.Options(data_dir="."), arguments.data)
    columns = ("changed", "images", "epochs", "test_accuracy", "train_accuracy")
    lines = []
    if arguments.keep.exists():
        with arguments.keep.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    for change, (network, recipe, share) in CHANGES.items():
        images = round(arguments.images * share)
        at = {"changed": change, "images": str(images), "epochs": str(arguments.epochs)}
        if any(all(line[name] == value for name, value in at.items()) for line in lines):
            continue
        test, train = trained(source, network, recipe, images, arguments.epochs)
        lines.append({**at, "test_accuracy": f"{test:.4f}", "train_accuracy": f"{train:.4f}"})
        with arguments.keep.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, columns, lineterminator="\n")
            table.writeheader()
            table.writerows(lines)
        print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
