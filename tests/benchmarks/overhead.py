"""What the workflow itself takes of a run: ``python tests/benchmarks/overhead.py [--cores 2] [--study FILE]``.

Runs a study from nothing in an empty folder, the default one if no other is named, and adds up what the functions of
its jobs took of a processor, by the jobs' own account. All else that passes on the cores is overhead: planning,
starting processes, importing libraries, writing records, and waiting; but not what a virtual machine had to leave to
others, which Linux counts (``steal``). Says how much of it is Snakemake's own process, the servers that import
libraries for jobs, jobs outside of their functions, and idle cores: nothing else may run on the machine. Needs Linux.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
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


def seconds_of_cores() -> Counter:
    """Seconds since the machine was started that its cores were ``busy``, ``idle`` or a virtual machine's left to
    others (``steal``)."""
    user, nice, system, idle, waiting, interrupts, short, steal = (
        int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return Counter(busy=user + nice + system + interrupts + short, idle=idle + waiting, steal=steal)


class Watch(threading.Thread):
    """What a process and its servers, which are the descendants that live until it ends, have taken of a processor."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.ended, self.seconds, self.sightings = root, threading.Event(), {}, {}

    def run(self) -> None:
        while not self.ended.wait(0.2):
            family = {self.root}
            for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
                try:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has ended
                    continue
                pid = int(folder.name)
                if pid == self.root or int(fields[1]) in family:
                    family.add(pid)
                    self.seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                    self.sightings.setdefault(pid, []).append(time.perf_counter())

    def of_servers(self, started: float, ended: float) -> float:
        """Seconds of the descendants that were there for the last second and most of the run."""
        lasting = [
            pid for pid, times in self.sightings.items() if times[-1] > ended - 1 and times[0] < (started + ended) / 2
        ]
        return sum(self.seconds[pid] for pid in lasting if pid != self.root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--study", help="the default one if not given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = ["--configfile", str(Path(options.study).resolve())] if options.study else []
        command = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--cores", str(options.cores),
                   "--directory", folder, *study]  # fmt: skip
        before, started = seconds_of_cores(), time.perf_counter()
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch = Watch(run.pid)
        watch.start()
        status, ended = run.wait(), time.perf_counter()
        watch.ended.set()
        passed = seconds_of_cores()
        passed.subtract(before)
        if status:
            sys.exit(f"the run ended with status {status}")
        jobs, seconds = took(Path(folder, "results"))
    for rule, count in jobs.most_common():
        print(f"{rule:12} {count:5d} jobs {seconds[rule]:8.2f} s")
    # On fewer cores than there are, the others are idle.
    available = options.cores * (ended - started) - (passed["steal"] if options.cores == os.cpu_count() else 0)
    functions, snakemake, servers = seconds.total(), watch.seconds[run.pid], watch.of_servers(started, ended)
    parts = {
        "functions of jobs": functions,
        "Snakemake": snakemake,
        "servers": servers,
        "jobs outside of their functions": passed["busy"] - functions - snakemake - servers,
        "idle": available - passed["busy"],
    }
    print(f"\n{jobs.total()} jobs in {ended - started:.1f} s on {options.cores} cores")
    for part, value in parts.items():
        print(f"{part:32} {value:7.1f} s {100 * value / available:6.1f} %")
    print(f"overhead {100 * (1 - functions / available):.1f} %")


if __name__ == "__main__":
    main()
