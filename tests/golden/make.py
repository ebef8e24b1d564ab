"""Make the kept inputs and the expected numbers anew, from the tree that this is run in.

    uv run python tests/golden/make.py                            # all studies, trained anew
    uv run python tests/golden/make.py thirds imported logs_lira  # some; of inputs without a study, the numbers alone

To be run where numbers are meant to change, or a study was added.
"""

import sys
import tempfile
from contextlib import chdir

import numpy as np
import tree
from check import CACHE, EXPECTED, STUDIES, trained, write_tables

INPUTS = tree.GOLDEN / "inputs"


def make(name: str) -> None:
    """Run a study from the first sample on; keep what its models leave, and the tables that came of it."""
    folder = CACHE / "made" / name
    tables = trained(tree.ROOT, STUDIES / f"{name}.yaml", folder)
    tables.pop("weights")
    with chdir(folder):
        np.savez_compressed(INPUTS / f"{name}.npz", **tree.keep(tree.planned(STUDIES / f"{name}.yaml")))
    write_tables(EXPECTED / name, tables)


def score(name: str) -> None:
    """Keep the tables of inputs that come without a study of ours."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_tables(EXPECTED / name, tree.score(name))


if __name__ == "__main__":
    INPUTS.mkdir(exist_ok=True)
    studies = [path.stem for path in sorted(STUDIES.glob("*.yaml")) if path.stem != "imported"]
    for name in sys.argv[1:] or studies:
        make(name) if name in studies else score(name)
