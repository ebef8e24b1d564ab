"""Weights that no job needs any more may go: all other files are the same, and what needs them makes them again."""

import pytest

from workplace import TINY, Workplace

pytestmark = pytest.mark.slow


def test_a_study_that_keeps_logits_gives_the_same_and_leaves_no_weights(finished, tmp_path):
    place = Workplace(finished.tree, tmp_path / "work")
    place.folder.mkdir()
    study = {**TINY, "keep": "logits"}
    place.write(study)
    place.run()
    assert place.find("**/models.safetensors") == []
    without_weights = {p: content for p, content in finished.contents().items() if "models.safetensors" not in p}
    assert place.contents() == without_weights
    assert place.planned() == {}
    study["defaults"] = {**TINY["defaults"], "methods": {**TINY["defaults"]["methods"], "neggrad": {"lr": 0.001}}}
    place.write(study)
    assert place.job_counts(place.run("--printshellcmds").stdout)["train"] == 1
    assert place.find("**/models.safetensors") == []
    trained = "train/*/logits.npz"
    assert [path.read_bytes() for path in place.find(trained)] == [p.read_bytes() for p in finished.find(trained)]
