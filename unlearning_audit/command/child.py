"""Start Snakemake and wait for it."""

import signal
import subprocess
import sys
from importlib.util import find_spec

from unlearning_audit import ROOT


def command(*arguments: str) -> list[str]:
    """Return the command line that runs Snakemake with this workflow and further ``arguments``. Raises ValueError if
    Snakemake is not installed."""
    if find_spec("snakemake") is None:
        advice = 'install the workflow: pip install "unlearning-audit[workflow]"'
        raise ValueError(f"Snakemake is not installed here; {advice}")
    # -P: a module in the working directory must not replace one of a library.
    return [sys.executable, "-P", "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *arguments]


def run(arguments: list[str]) -> int:
    """Run Snakemake and return its exit status as shells report it.

    SIGTERM is passed on to Snakemake. Ctrl-C is not, because a terminal sends it to both processes.
    """
    process = subprocess.Popen(command(*arguments))
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())  # passes it on to Snakemake, ``process``
    try:
        while process.returncode is None:
            try:
                process.wait()
            except KeyboardInterrupt:  # Snakemake got it too, and takes its time to end
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
    # Python gives the number of a signal that ended a process as a negative status, shells as 128 more than it.
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
