"""Seconds of `audit()` and of `audit read`, beside those of importing scipy, pandas and scikit-learn.

Run: python tests/benchmarks/audits.py [--rounds N] [--logs FILE-OR-FOLDER...]

Every line is a process of its own, in turn, so that all see the same machine: its wall-clock and processor seconds, the
median over the rounds. The arrays are 8 models × 1,000 samples × 10 classes, with five attacks; `--logs` names result
files.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

IMPORTS = "import scipy, pandas, sklearn"
AUDIT = """
import numpy
from unlearning_audit import audit
attacks = ["correctness", "confidence", "entropy", "modified_entropy", "shadow"]
result = audit(**numpy.load("arrays.npz"), attacks=attacks, progress=False)
assert len(result.verdicts) == 3, result
"""
READ = "import sys; from unlearning_audit.command import main; main(['read', *sys.argv[1:]])"


def arrays(folder: Path, models: int = 8, samples: int = 1000, classes: int = 10) -> None:
    """Models that forget a tenth of the samples, and as many again that they never saw."""
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=samples)
    train, forget = np.zeros((2, models, samples), bool)
    for model in range(0, models, 2):  # pairs of swapped splits
        sides = rng.permutation(samples)[: samples // 5].reshape(2, -1)
        train[model : model + 2] = True
        for i in range(2):
            forget[model + i, sides[i]], train[model + i, sides[1 - i]] = True, False
    parts = {}
    for name, left in {"target": 1, "original": 2, "retrain": 0, "shadow": 1, "shadow_original": 2}.items():
        parts[name] = rng.normal(size=(models, samples, classes)).astype(np.float32)
        member = 2 * (train & ~forget) + left * forget
        np.put_along_axis(parts[name], np.broadcast_to(labels[:, None], (models, samples, 1)), member[..., None], -1)
    np.savez(folder / "arrays.npz", labels=labels, train=train, forget=forget, **parts)


def seconds(program: str, folder: Path, *arguments: str) -> tuple[float, float]:
    """Of a process of Python in a folder: wall clock and processor."""
    started, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, *arguments], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logs", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    logs = [str(path.resolve()) for path in options.logs]
    programs = {"imports": (IMPORTS,), "audit()": (AUDIT,), **({"audit read": (READ, *logs)} if logs else {})}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, (program, *arguments) in programs.items():
            with tempfile.TemporaryDirectory() as folder:
                arrays(Path(folder))
                taken[name].append(seconds(program, Path(folder), *arguments))
    base = median(wall for wall, _ in taken["imports"])
    print("| what | seconds | of a processor | × imports |\n|---|---|---|---|")
    for name, times in taken.items():
        wall, used = (median(column) for column in zip(*times, strict=True))
        print(f"| {name} | {wall:.1f} | {used:.1f} | {wall / base:.1f} |")


if __name__ == "__main__":
    main()
