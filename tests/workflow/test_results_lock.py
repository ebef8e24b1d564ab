"""A lock says whose it is, and whether the run that left it was one of this folder and machine."""

import platform

import pytest
from unlearning_audit.workflow import results_lock


def test_it_is_held_by_one_and_signed_until_it_is_freed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lock = results_lock.take(tmp_path)
    assert lock.holder == ""
    assert not lock.is_left_here()
    lock.sign()
    with pytest.raises(ValueError, match=f"{tmp_path}: the run in {tmp_path} .* writes these results"):
        results_lock.take(tmp_path)
    lock.free()
    lock = results_lock.take(tmp_path)
    assert lock.holder == ""
    lock.free()


@pytest.mark.parametrize("elsewhere", ["", "folder", "machine"])
def test_what_a_killed_run_signed_tells_where_it_was(tmp_path, monkeypatch, elsewhere):
    monkeypatch.chdir(tmp_path)
    killed = results_lock.take(tmp_path)
    killed.sign()
    killed.file.close()  # as the system does
    (tmp_path / "folder").mkdir()
    if elsewhere == "folder":
        monkeypatch.chdir("folder")
    if elsewhere == "machine":
        monkeypatch.setattr(platform, "node", lambda: "another")
    lock = results_lock.take(tmp_path)
    assert lock.is_left_here() == (not elsewhere)
    lock.free()


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert results_lock.take(tmp_path / "nowhere") is None
