"""A study in a folder of its own, run by Snakemake as a user runs it; real data; which tests begin."""

import fcntl
import gc
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workplace import ROOT, TINY, WORKFLOW, Workplace, copy_tree

#: What all sessions share: runs of the workflow, by the content of the files that they were made with.
SHARED = ROOT / ".snakemake" / "tests"

#: The script beside a clone that unpacks real data.
UNPACK = ROOT.parent / "shared" / "data" / "unpack.py"

#: Folders whose tests run the workflow or wait: the longest, which begin.
FIRST = {"slurm": 0, "end_to_end": 1, "faults": 2}


def pytest_configure() -> None:
    """Processes that share the processors get one thread each, as jobs do: threads of their own would wait for each
    other's turn, which doubles the time."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    gc.disable()  # until all is collected, see below


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Single files need no other process, which would import everything again."""
    return 0 if all(".py" in name for name in config.args) else None


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: nobody looks for garbage there, which takes a second or two
    whenever all of it is looked at."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """At the end it may be collected, or libraries in C++ say that it leaks."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file stays in one process, and the longest begin."""
    items.sort(key=lambda item: FIRST.get(item.path.parent.name, len(FIRST)))


def key() -> str:
    """A digest of every file of the workflow, of the tiny study and of Python's place."""
    digest = hashlib.blake2b(json.dumps([TINY, sys.executable, sys.version]).encode(), digest_size=10)
    names = (
        path for name in WORKFLOW for path in ((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name])
    )
    for path in sorted(path for path in names if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def kept() -> Iterator[Path]:
    """A folder that later sessions find again while no file of the workflow changes. Those of other files go, unless a
    session works there."""
    SHARED.mkdir(parents=True, exist_ok=True)
    folder = SHARED / key()
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        folder.mkdir(exist_ok=True)
        for other in SHARED.glob("*.lock"):
            if other != Path(lock.name):
                with open(other, "w") as handle:
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        continue
                    shutil.rmtree(other.with_suffix(""), ignore_errors=True)
        yield folder


def common(kept: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The folder ``name`` of all sessions, which the first that asks for it makes."""
    with open(kept / f"{name}.making", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / f"{name}.made").exists():
            shutil.rmtree(kept / name, ignore_errors=True)  # what another session could not finish
            make(kept / name)
            (kept / f"{name}.made").touch()
    return kept / name


@pytest.fixture(scope="session")
def tree(kept) -> Path:
    """The workflow's files as they are now, where nobody edits them."""
    return common(kept, "workflow", lambda folder: copy_tree(folder / "tree")) / "tree"


@pytest.fixture
def workplace(tree, tmp_path) -> Workplace:
    """An empty folder with the tiny study."""
    place = Workplace(tree, tmp_path / "work")
    place.folder.mkdir()
    place.write(TINY)
    return place


@pytest.fixture(scope="session")
def finished(tree, kept) -> Workplace:
    """The tiny study, run once. Copy it before you change anything."""

    def run(folder: Path) -> None:
        place = Workplace(tree, folder / "work")
        place.folder.mkdir(parents=True)
        place.write(TINY)
        place.run()

    return Workplace(tree, common(kept, "finished", run) / "work")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A folder with the real data sets, laid out for torchvision: ``UNLEARNING_DATA``, or unpacked once and kept."""
    if "UNLEARNING_DATA" in os.environ:
        return Path(os.environ["UNLEARNING_DATA"])
    if not UNPACK.exists():
        pytest.skip("needs real data: set UNLEARNING_DATA to a folder with cifar-10-batches-py/ and MNIST/raw/")
    folder = Path(tempfile.gettempdir()) / f"unlearning-audit-data-{os.getuid()}"
    if not folder.exists():
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
        subprocess.run([sys.executable, UNPACK, fresh], check=True, stdout=subprocess.DEVNULL)
        try:
            fresh.rename(folder)
        except OSError:  # another test run was faster
            shutil.rmtree(fresh)
    return folder


@pytest.fixture
def workdir(tmp_path, monkeypatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
