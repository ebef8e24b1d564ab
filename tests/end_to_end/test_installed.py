"""The wheel holds the library, the command and the workflow's files: it runs a study in an empty folder by itself."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from workplace import ROOT, TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel that is built from this tree."""
    place = tmp_path_factory.mktemp("wheel")
    built = ["uv", "build", "--wheel", "--quiet", "--out-dir", str(place), str(ROOT)]
    process = subprocess.run(built, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    (path,) = place.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel) -> Path:
    """A folder with nothing but what the wheel holds, and the bytecode of what tests have imported from it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def test_every_file_of_the_workflow_is_in_the_wheel(wheel, site):
    inside = site / "unlearning_audit" / "pipeline"
    for name in ("Snakefile", "config.yaml", "rules", "scripts", "profiles", "resources", "studies", "envs"):
        files = [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.*")
        for file in files:
            if "__pycache__" not in file.parts and file.is_file():
                assert (inside / file.relative_to(ROOT)).read_bytes() == file.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".pyc")]


def test_an_installed_command_runs_a_study_in_an_empty_folder(site, finished, tmp_path):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(TINY, sort_keys=False))
    settings = {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", "UNLEARNING_DEVICE": "cpu"}
    settings["XDG_CACHE_HOME"] = str(tmp_path)
    program = "import unlearning_audit as it; from unlearning_audit import stats; print(it.ROOT, stats.__file__)"
    for command in (["-c", program], ["-m", "unlearning_audit.command", "run", "mine.yaml", "--cores", "2"]):
        process = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stdout + process.stderr
        if command[0] == "-c":
            assert all(Path(path).is_relative_to(site) for path in process.stdout.split())
    metrics = "results/tiny/metrics.csv"
    assert (tmp_path / metrics).read_bytes() == (finished.folder / metrics).read_bytes()
