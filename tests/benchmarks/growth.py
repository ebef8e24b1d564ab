"""How do seconds and memory grow with each size of an audit? ``python tests/benchmarks/growth.py [--of methods …]``

Each axis alone, at three sizes, each in a process of its own that has imported what it needs: ranks of many methods,
joint intervals of many attacks, RMIA with a learned threshold over many reference models and many samples, the shadow
attack with many classes, reading one scenario of a table of many. Prints seconds of CPU, peak memory above what making
its input took, and the exponent of the seconds between the last two sizes: 1 = linear, 2 = quadratic.
"""

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT)]

import numpy as np  # noqa: E402 (found through the line above)
from unlearning_audit.attacks import rmia, shadow  # noqa: E402
from unlearning_audit.evaluation import rows  # noqa: E402
from unlearning_audit.evaluation.reference import Reference  # noqa: E402
from unlearning_audit.stats import rank_sets, simultaneous  # noqa: E402

SIZES = {
    "methods": (50, 100, 200),
    "attacks": (50, 100, 200),
    "models": (32, 64, 128),
    "samples": (10_000, 20_000, 40_000),
    "classes": (100, 300, 1000),
    "scenarios": (10, 30, 100),
}


def distances(count: int):
    """Simulated distances of ``count`` methods, or by as many attacks, from 24 models and 400 samples."""
    from audit_worlds import World

    rng = np.random.default_rng(0)
    return World(truth=tuple(rng.normal(0, 0.1, count)), pair=0.05, model=0.05, samples=400, asked=100).read(rng)


def game(models: int, samples: int, classes: int) -> tuple[np.ndarray, np.ndarray, Reference]:
    """Logits of an audited model and of reference models that know half of the samples each."""
    rng = np.random.default_rng(0)
    y, member = rng.integers(classes, size=samples), rng.random((models, samples)) < 0.5
    pool = rng.standard_normal((models, samples, classes), np.float32)
    pool[:, np.arange(samples), y] += 2 + member
    audited = rng.standard_normal((1, samples, classes), np.float32)
    audited[:, np.arange(samples), y] += 2
    return audited, y, Reference(pool, y, member, ~member)


def attacked(attack, models: int, samples: int, classes: int):
    """What scores such a game."""
    audited, y, reference = game(models, samples, classes)
    return lambda: attack.score(audited, y, reference, attack.Options(), np.random.default_rng(0))


def table(scenarios: int):
    """What reads one scenario of a table with 3,000 rows for each."""
    place = Path(tempfile.mkdtemp()) / "metrics.csv"
    records = (
        rows.Record(f"scenario{k}", "swap", "none", {}, rows.Row("advantage", i / 7, 0.0, 1.0, i, attack="kde", pair=i))
        for k in range(scenarios)
        for i in range(3000)
    )
    rows.write_union(place, "study", list(records))

    def read():
        rows.read_union(place, ["scenario1"])
        place.unlink()

    return read


def work(axis: str, size: int):
    """The function that is measured."""
    rng = np.random.default_rng(1)
    if axis in ("methods", "attacks"):
        read, of = distances(size), rank_sets.rank_sets if axis == "methods" else simultaneous.together
        return lambda: of(distances=read, rng=rng)
    if axis == "models":
        return attacked(rmia, size, 20_000, 10)
    if axis == "samples":
        return attacked(rmia, 64, size, 10)
    return attacked(shadow, 4, 2000, size) if axis == "classes" else table(size)


def measure(axis: str, size: int) -> None:
    """Print seconds and MiB of one size; runs in a process of its own."""
    run = work(axis, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    run()
    spent = time.process_time() - start
    print(spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--of", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.measure[0], int(arguments.measure[1]))
    for axis in arguments.of:
        seconds = []
        for size in SIZES[axis]:
            command = [sys.executable, __file__, "--measure", axis, str(size)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            spent, memory = map(float, out.split())
            seconds.append(spent)
            print(f"{size:7,d} {axis:10} {spent:7.2f} s {memory:7,.0f} MiB", flush=True)
        (small, large), sizes = seconds[-2:], SIZES[axis][-2:]
        print(f"{'':8}{axis:10} grow with exponent {math.log(large / small) / math.log(sizes[1] / sizes[0]):.2f}")
    return None


if __name__ == "__main__":
    main()
