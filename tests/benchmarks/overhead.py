"""What the workflow itself takes of a run: ``python tests/benchmarks/overhead.py [--cores 2] [--study FILE]``.

Runs a study from nothing in an empty folder, the default one if no other is named, and adds up what the functions of
its jobs took of a processor, by the jobs' own account. All else that passes on the cores is overhead: planning,
starting processes, importing libraries, writing records, and waiting; but not what a virtual machine had to leave to
others, which Linux counts (``steal``). Target: at most 12 % of the default study on two cores.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOK = re.compile(r"(\w+) took ([\d.]+) s, ([\d.]+) s of a processor$", re.MULTILINE)


def took(results: Path) -> tuple[Counter, Counter]:
    """How many jobs there were of each rule, and what their functions took of a processor, in seconds."""
    jobs, seconds = Counter(), Counter()
    for log in (*results.glob("*/*/log.txt"), *results.glob("*/logs/*.txt")):
        for rule, wall, processor in TOOK.findall(log.read_text()):
            jobs[rule] += 1
            seconds[rule] += min(float(wall), float(processor))
    return jobs, seconds


def stolen() -> float:
    """Seconds that the cores of a virtual machine had to leave to others since it was started; 0 where none counts."""
    try:
        return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--study", help="the default one if not given")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = ["--configfile", str(Path(asked.study).resolve())] if asked.study else []
        command = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--cores", str(asked.cores),
                   "--directory", folder, *study]  # fmt: skip
        before, taken, started = resource.getrusage(resource.RUSAGE_CHILDREN), stolen(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = stolen() - taken if asked.cores == os.cpu_count() else 0.0
        jobs, seconds = took(Path(folder, "results"))
    for rule, count in jobs.most_common():
        print(f"{rule:10} {count:5d} jobs {seconds[rule]:8.2f} s")
    within, of = seconds.total(), asked.cores * wall - taken
    others = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"\n{jobs.total()} jobs in {wall:.1f} s on {asked.cores} cores, {taken:.1f} s of these left to others")
    print(f"Snakemake, with jobs that are no forks: {others:.1f} s")
    print(f"functions {within:.1f} s of {of:.1f} s: overhead {100 * (1 - within / of):.1f} %")


if __name__ == "__main__":
    main()
