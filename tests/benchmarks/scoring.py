"""Does scoring cost what is asked about, or what was trained on? ``python tests/benchmarks/scoring.py [--models N] …``

Writes the files of a RULI study as its jobs do (data, memberships, logits of original, unlearned and retrained models)
for a large and a small number of samples and the same number of targets, and runs the metrics of each in a process of
its own. Prints seconds of CPU and wall, peak memory, and the ratio of the two. Target, for 1,024 models, 50,000 against
1,000 samples, 10 classes and 999 targets: at most 1.5 GiB, and 1.5 times the seconds of CPU.

The default writes 6 GB into the folder for temporary files, and removes them at the end.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from unlearning_audit.evaluation.arrays import Data, Logits, Membership
from unlearning_audit.plugins import registry
from unlearning_audit.protocols import ruli
from unlearning_audit.store.files import checksum, write_spec

POPULATIONS = ("originals", "unlearned", "retrained")
#: Blocks of three models in a file, as a study has by default, and blocks of audited models.
BATCH, TARGETS = 4, 2

OUTPUTS = {"scores": "scores.parquet", "metrics": "metrics.csv", "effects": "effects.npz", "records": "records.csv"}
#: File in which the process of a job leaves its peak memory in MiB.
PEAK = "peak.txt"
ATTACKS = ("confidence", "entropy", "modified_entropy", "kde", "shadow")


def build(folder: Path, models: int, samples: int, classes: int, targets: int) -> None:
    """All files of one scenario, with the checksums that its jobs would have written."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, samples)
    part = (np.arange(samples) >= samples - min(samples // 6, samples - targets)).astype(np.uint8)
    x = rng.integers(0, 256, (samples, 3, 32, 32), dtype=np.uint8)
    data = Data(x, y, part, y, np.arange(samples), classes)
    sealed(data, folder / "data" / "data.npz")
    options = ruli.Options(target_size=targets, target_blocks=TARGETS, shadow_blocks=models // 3 - TARGETS)
    for population, count in ruli.blocks(options).items():
        for start in range(0, count, BATCH):
            batch = range(start, min(start + BATCH, count))
            member = Membership.concatenate([ruli.draw(block, population, data, options, 0) for block in batch])
            name = f"{population}{start:04d}"
            sealed(member, folder / "splits" / name / "membership.npz")
            for source in POPULATIONS:
                logits = rng.random((len(member.seed), samples, classes), np.float32)
                answers = Logits(logits, np.arange(samples), y)
                sealed(answers, folder / source / name / "logits.npz", member.queries.any(axis=0))


def sealed(value: Data | Membership | Logits, path: Path, *how: np.ndarray) -> None:
    """Write an artifact and its ``spec.json``."""
    value.write(path, *how)
    write_spec(path.with_name("spec.json"), {"checksums": {path.name: checksum(path)}})


def inputs(folder: Path, *names: str) -> dict[str, list[str]]:
    """The files of a job, by what it calls them."""
    return {name: [str(path) for path in sorted(Path(folder, name).glob("*/*.npz"))] for name in names}


def judge(folder: Path, *attacks: str) -> None:
    """The job that judges them by ``attacks`` and by the metrics that read logits; the protocol's third metric, blind,
    reads none."""
    from unlearning_audit.stages.metrics import metrics as job

    job(
        **{name: str(folder / file) for name, file in OUTPUTS.items()},
        settings={
            "metrics": plugins("metrics", "ruli", "accuracy"), "paper_set": [], "adaptive_set": [], "bootstrap": 1000,
            "seed": 0, "attacks": plugins("attacks", *attacks),
        },
        place={kind: {"files": {}, "terms": {}, "keys": {name: name for name in names}}
               for kind, names in (("attacks", attacks), ("metrics", ("ruli", "accuracy")))},
        data=str(folder / "data" / "data.npz"), **inputs(folder, "splits", *POPULATIONS),
    )  # fmt: skip


def plugins(kind: str, *names: str) -> dict[str, dict]:
    """Plug-ins as the plan names them to a job, with their default options."""
    return {name: {"name": name, "options": registry.options(kind, name)().model_dump(mode="json")} for name in names}


def measured(folder: Path, attacks: Sequence[str] = ()) -> tuple[float, float, float]:
    """Seconds of CPU and of wall, and peak memory in MiB, of scoring in a process of its own."""
    started = time.perf_counter()
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, "--score", str(folder), *attacks])
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit("scoring failed")
    peak = float(Path(folder, PEAK).read_text())
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1024)
    parser.add_argument("--samples", type=int, nargs=2, default=[50_000, 1_000], help="the large and the small number")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--targets", type=int, default=999)
    parser.add_argument("--score", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.score:
        folder, *attacks = options.score
        judge(Path(folder), *attacks)
        # A child's maximum by wait4 is that of its parent, where the parent's is larger.
        (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        Path(folder, PEAK).write_text(str(int(line.split()[1]) / 1024))
        return
    runs = []
    for samples in options.samples:
        with tempfile.TemporaryDirectory() as name:
            build(Path(name), options.models, samples, options.classes, options.targets)
            size = sum(path.stat().st_size for path in Path(name).glob("*/*/logits.npz"))
            runs.append(measured(Path(name)))
        cpu, wall, memory = runs[-1]
        print(f"{options.models} models x {samples:6d} samples ({size / 2**20:6,.0f} MiB of logits): "
              f"{cpu:5.1f} s CPU, {wall:5.1f} s wall, {memory:6,.0f} MiB", flush=True)  # fmt: skip
    print(f"ratio: {runs[0][0] / runs[1][0]:.2f} in CPU, {runs[0][2] / runs[1][2]:.2f} in memory")


if __name__ == "__main__":
    main()
