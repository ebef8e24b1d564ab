"""Fixtures that several test files share."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

UNPACK = Path(__file__).resolve().parents[3] / "shared" / "data" / "unpack.py"


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
