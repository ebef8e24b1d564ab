"""The library without the workflow, in environments of its own: that takes a network, and uv."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USE = Path(__file__).with_name("use_the_library.py")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("uv"), reason="needs uv")]


def uv(*arguments: object) -> str:
    """What uv prints; elsewhere than in the clone, whose constraints it would take."""
    done = subprocess.run(
        ["uv", *map(str, arguments)], cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path, version: str, *packages: str) -> Path:
    """The Python of a new environment with this package and others; skipped where there is no such Python."""
    if subprocess.run(["uv", "python", "find", "--no-python-downloads", version], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version}")
    uv("venv", "--quiet", "--no-python-downloads", "--python", version, folder)
    python = folder / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python, ROOT, *packages)
    return python


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_it_works_alone(tmp_path, version):
    python = environment(tmp_path / "alone", version)
    subprocess.run([python, USE], cwd=tmp_path, check=True)
    names = {line.split("==")[0] for line in uv("pip", "freeze", "--python", python).splitlines()}
    assert not names & {"torch", "snakemake", "transformers", "datasets", "opacus"}
    done = subprocess.run(
        [tmp_path / "alone" / "bin" / "audit", "run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "install the workflow" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_works_with_the_oldest_versions_that_it_allows(tmp_path):
    python = environment(tmp_path / "oldest", "3.11", "--resolution", "lowest-direct")
    subprocess.run([python, USE], cwd=tmp_path, check=True)


def test_it_works_beside_torch_2_4(tmp_path):
    python = environment(tmp_path / "beside", "3.11", "torch==2.4.1")
    subprocess.run([python, "-c", "import torch; torch.ones(2).numpy()"], cwd=tmp_path, check=True)
    subprocess.run([python, USE], cwd=tmp_path, check=True)
