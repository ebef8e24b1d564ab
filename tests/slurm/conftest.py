"""One cluster for all tests of this folder."""

import os

import pytest

from cluster import Cluster, missing


@pytest.fixture(scope="session")
def slurm():
    """A running cluster; tests that ask for it are skipped where SLURM is not installed, or its daemons not allowed."""
    if lacking := missing():
        pytest.skip(f"SLURM is not installed here: {', '.join(lacking)} not found")
    if os.geteuid() != 0:
        pytest.skip("SLURM's daemons start jobs as their users, which takes root")
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
