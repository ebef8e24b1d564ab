"""Models that are what they were before unlearning are told apart by what lies in the directory of their files."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import ArtifactError, Logits
from unlearning_audit.evaluation.logits import content
from unlearning_audit.evaluation.measuring import unchanged
from unlearning_audit.store.files import write_failure

NAN = float("nan")


def logits(folder, name: str, values) -> str:
    """A file of logits; its node is its folder's name, which differs."""
    path = folder / name / "logits.npz"
    Logits(np.asarray(values, np.float32), np.arange(2), np.array([0, 1])).write(path)
    return str(path)


@pytest.fixture
def files(tmp_path):
    arrays = {"before": [[[1, 2], [3, 4]]], "same": [[[1, 2], [3, 4]]], "other": [[[1, 2], [3, 5]]],
              "diverged": [[[NAN, 2], [3, 4]]]}  # fmt: skip
    paths = {name: logits(tmp_path, name, values) for name, values in arrays.items()}
    for name in ("failed", "failed too"):
        paths[name] = str(tmp_path / name / "logits.npz")
        write_failure(paths[name], "method", "it raised")
    return paths


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(["before"], ["same"], 1), (["before"], ["other"], None), (["before"] * 2, ["other", "same"], 0.5),
     (["before"], ["diverged"], None), (["failed"], ["failed too"], None),
     (["before"], ["before"], None), ([], ["same"], None)],
    ids=["all", "none", "half", "diverged", "never made", "handed on", "no originals"],
)  # fmt: skip
def test_the_share_of_batches_whose_logits_stayed_the_same_is_told(files, before, after, share):
    rows = unchanged([files[name] for name in before], [files[name] for name in after])
    assert [(row.metric, row.value, row.n) for row in rows] == [("unchanged", share, len(after))] * bool(share)


def test_a_damaged_file_is_named(files):
    with open(files["same"], "wb") as file:
        file.write(b"no archive")
    with pytest.raises(ArtifactError, match=r"same/logits\.npz: this file is damaged"):
        unchanged([files["before"]], [files["same"]])


def test_the_content_of_a_file_is_that_of_its_arrays(files):
    assert content(files["before"]) == content(files["same"])
    assert content(files["before"]) != content(files["other"])
    assert {name for name, _ in content(files["same"]).items()} == {
        "logits.npy",
        "index.npy",
        "y.npy",
        "not_finite.npy",
    }
