"""How long ε takes per forget sample: exact thresholds, the published grid by counting, and the grid as published.

Run: OMP_NUM_THREADS=1 PYTHONPATH=scripts python tests/benchmarks/epsilon.py
"""

import time
from collections.abc import Callable

import numpy as np
from unlearning_audit.metrics._epsilon import epsilons


def milliseconds(function: Callable[[], object], samples: int, repeats: int = 3) -> float:
    """Best of ``repeats``, per sample."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best / samples


def dense(u: np.ndarray, r: np.ndarray) -> None:
    """Every threshold against every model, as the published code does on a GPU; rates only, in blocks."""
    positive, negative = (u, r) if np.ptp(u) < np.ptp(r) else (r, u)
    width = np.ptp(positive)
    right = np.repeat(np.linspace(positive.max() - 2, positive.max() + 2, 400), 400)
    left = right - width + np.tile(np.linspace(-2, 2, 400), 400)
    for start in range(0, len(right), 4000):
        block = slice(start, start + 4000)
        for side in (positive, negative):
            ((left[block, None] <= side) & (side <= right[block, None])).mean(axis=1)


def main() -> None:
    """Print a table in milliseconds per sample and the largest difference in ε."""
    rng = np.random.default_rng(0)
    print("models   sd  exact ms   grid ms  dense ms  grid/exact  mean ε exact  mean ε grid  largest gap  below grid")
    for models in (64, 256, 512):
        for sd in (0.3, 1.5, 4.0):
            samples = 40
            u, r = rng.normal(size=(2, models, samples)) * sd
            exact, grid = (epsilons(unlearned=u, retrained=r, rule=rule) for rule in ("exact", "grid"))
            cost = {
                rule: milliseconds(lambda rule=rule, u=u, r=r: epsilons(unlearned=u, retrained=r, rule=rule), samples)
                for rule in ("exact", "grid")
            }
            as_published = milliseconds(lambda u=u, r=r: dense(u[:, 0], r[:, 0]), 1, repeats=1)
            print(
                f"{models:6d} {sd:4.1f} {cost['exact']:9.2f} {cost['grid']:9.2f} {as_published:9.0f} "
                f"{cost['grid'] / cost['exact']:11.1f} {exact.mean():13.2f} {grid.mean():12.2f} "
                f"{(exact - grid).max():12.2f} {(exact < grid - 1e-9).sum():11d}"
            )


if __name__ == "__main__":
    main()
