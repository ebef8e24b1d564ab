"""Logits stay in their file: only what is asked for is read, and its directory tells which models are unchanged."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership, NotFiniteError
from unlearning_audit.evaluation.logits import Logits
from unlearning_audit.evaluation.measuring import unchanged
from unlearning_audit.evaluation.outputs import Outputs
from unlearning_audit.store.files import checksum, write_failure, write_spec

MODELS, SAMPLES, CLASSES = 6, 8000, 10
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(MODELS, SAMPLES, CLASSES)).astype(np.float32)
Y = RNG.integers(0, CLASSES, SAMPLES)
ASKED = np.sort(RNG.permutation(SAMPLES)[:300])
FIRST = np.isin(np.arange(SAMPLES), ASKED)


def write_logits(folder, logits=LOGITS):
    """A file as a job leaves it, with its checksum; it holds its asked rows first."""
    path = folder / "logits.npz"
    Logits(logits, np.arange(SAMPLES), Y).write(path, FIRST)
    write_spec(folder / "spec.json", {"checksums": {path.name: checksum(path)}})
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_logits(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("models", [None, np.arange(MODELS) > 3, np.arange(MODELS) > MODELS])
@pytest.mark.parametrize("rows", [None, FIRST, ASKED[::-1], np.array([5, 7999, 5]), np.zeros(0, int)])
def test_models_and_samples_come_in_the_order_of_the_data(path, models, rows):
    numbers, none = np.arange(MODELS), np.zeros((MODELS, SAMPLES), bool)
    member = Membership(~none, none, none, numbers, numbers, numbers, numbers > 1)
    data = Data(np.zeros((SAMPLES, 1), np.uint8), Y, np.zeros(SAMPLES, np.uint8), Y, np.arange(SAMPLES), CLASSES)
    answers = Outputs([str(path)], [member], data, "data.npz", [[]])
    expected = LOGITS if models is None else LOGITS[models]
    expected = expected if rows is None else expected[:, rows]
    np.testing.assert_array_equal(answers.stacked(models, rows), expected)
    np.testing.assert_array_equal(answers.logits, LOGITS)
    np.testing.assert_array_equal(answers.stacked(models, rows), expected)  # now from memory


def test_a_file_read_whole_is_what_was_written(path):
    whole = Logits.read(path)
    for field, expected in (("logits", LOGITS), ("index", np.arange(SAMPLES)), ("y", Y)):
        np.testing.assert_array_equal(getattr(whole, field), expected)


@pytest.mark.parametrize("at", [0, 5000, -1], ids=["beginning", "logits", "end"])
def test_damage_is_noticed(tmp_path, at):
    path = write_logits(tmp_path)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match="not as it was made"):
        Logits.open(path)


def test_models_that_diverged_are_named_and_a_users_own_file_is_believed_in_nothing(tmp_path):
    """A job's file says how many values are not finite; a file without checksum is looked at, whatever it says."""
    broken = LOGITS.copy()
    broken[3, 4000:4002, 1] = np.inf, np.nan
    job, own = write_logits(tmp_path, broken), tmp_path / "own.npz"
    np.savez_compressed(own, logits=broken, index=np.arange(SAMPLES), y=Y, not_finite=np.array(0))
    for path in (job, own):
        with pytest.raises(NotFiniteError, match=r"field 'logits' has 2 values that are NaN or infinite"):
            Logits.open(path)


def test_what_is_pickled_is_refused(tmp_path):
    np.savez(tmp_path / "logits.npz", logits=np.array([{}], dtype=object), index=np.arange(1), y=Y[:1])
    with pytest.raises(ArtifactError, match=r"logits\.npz.*pickled"):
        Logits.open(tmp_path / "logits.npz")


# ---------------------------------------------------------------- models that are what they were before unlearning


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(["before"], ["same"], 1), (["before"], ["other"], None), (["before"] * 2, ["other", "same"], 0.5),
     (["before"], ["diverged"], None), (["failed"], ["failed too"], None),
     (["before"], ["before"], None), ([], ["same"], None)],
    ids=["all", "none", "half", "diverged", "never made", "handed on", "no originals"],
)  # fmt: skip
def test_the_share_of_batches_whose_logits_stayed_the_same_is_told(tmp_path, before, after, share):
    """The node of each file is its folder's name, which differs."""
    arrays = {"before": [[1, 2], [3, 4]], "same": [[1, 2], [3, 4]], "other": [[1, 2], [3, 5]],
              "diverged": [[np.nan, 2], [3, 4]]}  # fmt: skip
    files = {name: str(tmp_path / name / "logits.npz") for name in (*arrays, "failed", "failed too")}
    for name, path in files.items():
        if name in arrays:
            Logits(np.array([arrays[name]], np.float32), np.arange(2), np.array([0, 1])).write(path)
        else:
            write_failure(path, "method", "it raised")
    rows = unchanged([files[name] for name in before], [files[name] for name in after])
    assert [(row.metric, row.value, row.n) for row in rows] == [("unchanged", share, len(after))] * bool(share)
