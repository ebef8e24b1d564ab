"""Are convolutions faster on a processor whose weights lie in the memory order of the images (channels last)?

    OMP_NUM_THREADS=1 python tests/benchmarks/weights_last.py [--pairs 12]

Steps of one network (forward, backward, SGD with momentum) with weights in either order, in turn in one run, on images
in channels last as the engine has them. Prints seconds of a processor of a step, and the median of the ratios of pairs
with its quartiles. Asserts nothing.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from unlearning_audit.bank.engine import images_last
from unlearning_audit.plugins import registry

NETWORKS = {"cnn": ("cnn", {}), "ResNet-20": ("resnet_cifar", {"depth": 20}), "airbench": ("airbench", {})}


def stepping(module: str, options: dict, last: bool, batch: int) -> Callable[[], float]:
    """What takes a step of a network and gives the seconds of a processor that it took; weights lie in the order of the
    images if ``last``."""
    architecture = registry.load("models", module)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = architecture.build(architecture.Options(**options), (3, 32, 32), 10)
        x, y = images_last(torch.rand(batch, 3, 32, 32)), torch.randint(0, 10, (batch,))
    model = model.to(memory_format=torch.channels_last) if last else model
    weights = list(model.parameters())
    velocity = [torch.zeros_like(value) for value in weights]

    def step() -> float:
        start = time.process_time()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            gradients = [value.grad for value in weights]
            torch._foreach_mul_(velocity, 0.9)
            torch._foreach_add_(velocity, gradients)
            torch._foreach_add_(weights, velocity, alpha=-0.01)
        for value in weights:
            value.grad = None
        return time.process_time() - start

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, (module, options) in NETWORKS.items():
        first, last = (stepping(module, options, order, arguments.batch) for order in (False, True))
        for step in (first, last):
            step()  # libraries choose their kernels
        pairs = [(first(), last()) if i % 2 else (last(), first())[::-1] for i in range(arguments.pairs)]
        ratios = [a / b for a, b in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4)
        seconds = [statistics.median(part) for part in zip(*pairs, strict=True)]
        print(
            f"{name}: {seconds[0]:.4f} s with weights as they are, {seconds[1]:.4f} s in channels last; "
            f"{middle:.2f} times as fast (quartiles {low:.2f} to {high:.2f}, {arguments.pairs} pairs)",
            flush=True,
        )


if __name__ == "__main__":
    main()
