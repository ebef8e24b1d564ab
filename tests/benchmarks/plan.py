"""How long Snakemake takes to plan: ``python tests/benchmarks/plan.py [nodes …]`` prints seconds and memory.

A study of about as many nodes as asked for, planned by ``snakemake --dry-run`` in an empty folder. Targets on one
core: 1,000 nodes in 4 s, 20,000 in 30 s and 700 MiB. ``--profile`` shows where the time of planning goes.
"""

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("finetune", "neggrad", "ftfinal", "retrfinal", "fisher", "salun", "ssd", "random_label")
#: Nodes of one point of the axis below: data, then for every batch splits, train and each method's models, then scores.
BATCHES = 10
PER_POINT = 1 + BATCHES * (2 + len(METHODS) + 2) + 2 * (len(METHODS) + 3)


def study(nodes: int) -> dict:
    """A study with about ``nodes`` nodes: one scenario along an axis of label noise, ten batches at each point."""
    points = max(1, round(nodes / PER_POINT))
    return {
        "study": "large",
        "batch": 1,
        "defaults": {
            "data": {"name": "digits", "test_size": 197},
            "model": {"name": "mlp"},
            "protocol": {"name": "swap", "pairs": BATCHES},
            "methods": {name: {} for name in ("none", "retrain", *METHODS)},
            "attacks": {name: {} for name in ("confidence", "entropy", "kde", "loss", "random")},
        },
        "limit": 10**8,
        "scenarios": {"large": {"vary": {"data.label_noise": [round(i / points * 0.9, 5) for i in range(points)]}}},
    }


def dry_run(nodes: int) -> tuple[int, float, float, float]:
    """Jobs in the plan, seconds of wall and of CPU, and peak memory in MiB of one dry run."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "study.yaml").write_text(yaml.safe_dump(study(nodes)))
        command = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--dry-run",
                   "--directory", folder, "--configfile", f"{folder}/study.yaml"]  # fmt: skip
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return planned(nodes), wall, cpu, after.ru_maxrss / 1024


def planned(nodes: int) -> int:
    """How many nodes the study really has."""
    from unlearning_audit.study import reading
    from unlearning_audit.workflow import plan

    return len(plan.make(reading.read(study(nodes))))


def profile(nodes: int) -> None:
    """Print where the time of ``snakemake --dry-run`` goes, ours first."""
    from snakemake import cli

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "study.yaml").write_text(yaml.safe_dump(study(nodes)))
        arguments = ["-s", str(ROOT / "Snakefile"), "--dry-run", "--directory", folder,
                     "--configfile", f"{folder}/study.yaml"]  # fmt: skip
        watch = cProfile.Profile()
        watch.enable()
        parser, args = cli.parse_args(arguments)
        cli.args_to_api(args, parser)
        watch.disable()
    report = pstats.Stats(watch).sort_stats("cumulative")
    report.print_stats(r"unlearning|Snakefile|\.smk", 25)
    report.sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "scripts"))
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("nodes", nargs="*", type=int, default=[1000, 20000])
    options.add_argument("--profile", action="store_true")
    command_line = options.parse_args()
    for size in command_line.nodes:
        if command_line.profile:
            profile(size)
        else:
            count, wall, cpu, memory = dry_run(size)
            print(f"{count:6d} nodes: {wall:6.1f} s wall, {cpu:6.1f} s CPU, {memory:6.0f} MiB")
