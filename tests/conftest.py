"""A study in a folder of its own, run by Snakemake as a user runs it."""

import os
from pathlib import Path

import pytest

from workplace import TINY, Workplace, copy_tree


def pytest_configure(config: pytest.Config) -> None:
    """Processes that share the processors get one thread each, as jobs do: threads of their own would wait for each
    other's turn, which doubles the time. Without ``-n`` there are as many as NumPy and torch choose."""
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``-n 2`` a file stays in one process. Those that wait for a cluster begin, then those that run the workflow:
    the longest."""
    first = {"slurm": 0, "workflow": 1, "faults": 2}
    items.sort(key=lambda item: first.get(item.path.parent.name, len(first)))


@pytest.fixture(scope="session")
def tree(tmp_path_factory) -> Path:
    """The workflow's files as they are now, where nobody edits them."""
    return copy_tree(tmp_path_factory.mktemp("workflow") / "tree")


@pytest.fixture
def workplace(tree, tmp_path) -> Workplace:
    """An empty folder with the tiny study."""
    place = Workplace(tree, tmp_path / "work")
    place.folder.mkdir()
    place.write(TINY)
    return place


@pytest.fixture(scope="session")
def finished(tree, tmp_path_factory) -> Workplace:
    """The tiny study, run once. Copy it before you change anything."""
    place = Workplace(tree, tmp_path_factory.mktemp("finished") / "work")
    place.folder.mkdir()
    place.write(TINY)
    place.run()
    return place
