"""A file system on which no other file can be made."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def few_inodes(tmp_path):
    """A file system that can hold few more files than the study's, of which the tests may use all."""
    folder = tmp_path / "few"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "nr_inodes=60,size=200m", "none", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount") or subprocess.run(options, capture_output=True).returncode:
        pytest.skip("a file system of its own takes root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_file_system_without_inodes_is_told_in_a_sentence(workplace, few_inodes, finished):
    (workplace.folder / "results").symlink_to(few_inodes)
    process = workplace.run(check=False)
    assert process.returncode != 0
    assert "could not be written (No space left on device); free space or fix the permissions" in process.stdout
    subprocess.run(["mount", "-o", "remount,nr_inodes=10000", str(few_inodes)], check=True)
    workplace.run()
    assert workplace.contents() == finished.contents()
