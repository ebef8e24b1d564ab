"""The same study gives the same bytes, wherever, whenever, with however many cores and however its jobs start."""

import os

import pytest

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow


def test_a_run_from_scratch_in_another_folder_gives_the_same_bytes(finished, tmp_path, monkeypatch):
    place = Workplace(finished.tree, tmp_path / "another folder")
    place.folder.mkdir()
    place.write(TINY)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("UNLEARNING_WARM", "0")
    mask = os.umask(0o077)
    try:
        place.run("--cores", "1")
    finally:
        os.umask(mask)
    first, second = finished.contents(), place.contents()
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert len(first) > 20
