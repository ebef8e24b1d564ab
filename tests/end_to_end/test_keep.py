"""Weights that no job needs any more may go: all other files are the same, and what needs them makes them again."""

import pytest

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow


def without_weights(files: dict[str, bytes]) -> dict[str, bytes]:
    """``files`` but for weights and their checksums."""
    return {path: content for path, content in files.items() if "models.safetensors" not in path}


def test_a_study_that_keeps_logits_gives_the_same_and_leaves_no_weights(finished, tmp_path):
    place = Workplace(finished.tree, tmp_path / "work")
    place.folder.mkdir()
    study = {**TINY, "keep": "logits"}
    place.write(study)
    place.run()
    assert place.find("**/models.safetensors") == []
    assert place.contents() == without_weights(finished.contents())
    assert place.planned() == {}
    study["defaults"] = {**TINY["defaults"], "methods": {**TINY["defaults"]["methods"], "neggrad": {"lr": 0.001}}}
    place.write(study)
    assert place.job_counts(place.run("--printshellcmds").stdout)["train"] == 1
    assert place.find("**/models.safetensors") == []
    trained = "train/*/logits.npz"
    assert [path.read_bytes() for path in place.find(trained)] == [p.read_bytes() for p in finished.find(trained)]
