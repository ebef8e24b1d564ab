"""What a run with nothing to do takes of a processor: ``python tests/benchmarks/second_run.py [--folder FINISHED]``.

Beside it, in turn, what importing Snakemake's command alone takes; the least of each, for other programs only add, and
their ratio. Runs the tour from nothing in an empty folder first, unless ``--folder`` names one where it was
run to its end. Counts all processes that a run has waited for.
"""

import argparse
import resource
import subprocess
import sys
import tempfile

from overhead import ROOT

NOTHING = "Nothing to be done"


def took(*command: str, says: str = "") -> float:
    """Seconds of a processor that a Python command took, with its children. Raises CalledProcessError if it fails, and
    SystemExit if it does not say ``says``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if says not in run.stdout:
        sys.exit(f"{' '.join(command)} was to say {says!r}: run the study to its end with this code first")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where the tour was run to its end")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as empty:
        snakemake = ["-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        run = [*snakemake, "--directory", options.folder or empty, "--cores", "2"]
        if options.folder is None:
            print(f"the run from nothing: {took(*run):.1f} s of a processor", flush=True)
        seconds = [(took(*run, says=NOTHING), took("-c", "import snakemake.cli")) for _ in range(options.times)]
    again, imported = (min(column) for column in zip(*seconds, strict=True))
    print(f"a run with nothing to do: {again:.2f} s of a processor")
    print(f"importing snakemake.cli: {imported:.2f} s\nratio {again / imported:.2f}")


if __name__ == "__main__":
    main()
