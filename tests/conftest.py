"""A study in a folder of its own, run by Snakemake as a user runs it."""

import fcntl
import gc
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from workplace import TINY, Workplace, copy_tree


def pytest_configure(config: pytest.Config) -> None:
    """Processes that share the processors get one thread each, as jobs do: threads of their own would wait for each
    other's turn, which doubles the time. Without ``-n`` there are as many as NumPy and torch choose."""
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    gc.disable()  # until all is collected, see below


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: nobody looks for garbage there, which takes a second or two
    whenever all of it is looked at."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """At the end it may be collected, or libraries in C++ say that it leaks."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``-n 2`` a file stays in one process. Those that wait for a cluster begin, then those that run the workflow:
    the longest."""
    first = {"slurm": 0, "workflow": 1, "faults": 2}
    items.sort(key=lambda item: first.get(item.path.parent.name, len(first)))


def common(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of all processes of this session, which the first that asks for it makes."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent / "common" if "PYTEST_XDIST_WORKER" in os.environ else root / "common"
    root.mkdir(exist_ok=True)
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / f"{name}.made").exists():
            shutil.rmtree(root / name, ignore_errors=True)  # what another process could not finish
            make(root / name)
            (root / f"{name}.made").touch()
    return root / name


@pytest.fixture(scope="session")
def tree(tmp_path_factory) -> Path:
    """The workflow's files as they are now, where nobody edits them."""
    return common(tmp_path_factory, "workflow", lambda folder: copy_tree(folder / "tree")) / "tree"


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

    def run(folder: Path) -> None:
        place = Workplace(tree, folder / "work")
        place.folder.mkdir(parents=True)
        place.write(TINY)
        place.run()

    return Workplace(tree, common(tmp_path_factory, "finished", run) / "work")
