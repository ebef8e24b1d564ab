"""One cluster for all tests of this folder."""

import pytest

from cluster import Cluster, missing


@pytest.fixture(scope="session")
def slurm():
    """A running cluster; tests that ask for it are skipped where SLURM is not installed."""
    if lacking := missing():
        pytest.skip(f"SLURM is not installed here: {', '.join(lacking)} not found")
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
