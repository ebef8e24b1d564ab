"""Logits stay in their file: only what is asked for is read, and what is read is what was written."""

import numpy as np
import pytest
from unlearning_audit.evaluation.answers import Answers
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Membership, NotFiniteError
from unlearning_audit.evaluation.logits import Logits, StoredLogits
from unlearning_audit.store.files import checksum, write_spec

MODELS, SAMPLES, CLASSES = 6, 8000, 10
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(MODELS, SAMPLES, CLASSES)).astype(np.float32)
Y = RNG.integers(0, CLASSES, SAMPLES)
ASKED = np.sort(RNG.permutation(SAMPLES)[:300])
FIRST = np.isin(np.arange(SAMPLES), ASKED)


def write_logits(folder, logits=LOGITS, first=FIRST):
    """A file as a job leaves it, with its checksum; it holds its asked rows first."""
    path = folder / "logits.npz"
    Logits(logits, np.arange(SAMPLES), Y).write(path, first)
    write_spec(folder / "spec.json", {"checksums": {path.name: checksum(path)}})
    return path


def answers(path) -> Answers:
    train = np.ones((MODELS, SAMPLES), bool)
    numbers, none = np.arange(MODELS), np.zeros((MODELS, SAMPLES), bool)
    member = Membership(train, none, none, numbers, numbers, numbers, numbers > 1)
    data = Data(np.zeros((SAMPLES, 1), np.uint8), Y, np.zeros(SAMPLES, np.uint8), Y, np.arange(SAMPLES), CLASSES)
    return Answers([str(path)], [member], data, "data.npz")


def flip(path, at: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_logits(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("models", [None, np.arange(MODELS) > 3, np.arange(MODELS) > MODELS])
@pytest.mark.parametrize(
    "rows",
    [None, FIRST, ASKED[::-1], np.array([5, 7999, 5]), np.zeros(0, int)],
    ids=["all", "mask", "order", "twice", "none"],
)
def test_models_and_samples_come_in_the_order_of_the_data(path, models, rows):
    expected = LOGITS if models is None else LOGITS[models]
    expected = expected if rows is None else expected[:, rows]
    reader = answers(path)
    np.testing.assert_array_equal(reader.of(models, rows), expected)
    _ = reader.logits  # from now on from memory
    np.testing.assert_array_equal(reader.of(models, rows), expected)


def test_a_file_read_whole_is_what_was_written(path):
    whole = Logits.read(path, models=MODELS)
    np.testing.assert_array_equal(whole.logits, LOGITS)
    np.testing.assert_array_equal(whole.index, np.arange(SAMPLES))
    np.testing.assert_array_equal(whole.y, Y)


def test_all_models_and_all_samples_are_kept_once_however_they_are_named(path):
    reader, mask = answers(path), np.ones(MODELS, bool)
    assert reader.predicted() is reader.predicted(mask)
    assert reader.phi(Y) is reader.phi(Y, mask, np.ones(SAMPLES, bool))
    assert reader.logits is reader.of(mask)
    assert reader.predicted(np.arange(MODELS) > 0) is not reader.predicted()


@pytest.mark.parametrize("at", [0, 5000, -1], ids=["beginning", "logits", "end"])
def test_damage_is_noticed(tmp_path, at):
    path = write_logits(tmp_path)
    flip(path, at)
    with pytest.raises(ArtifactError, match="not as it was made"):
        StoredLogits.open(path)


def test_models_that_diverged_are_named_without_reading_them(tmp_path):
    broken = LOGITS.copy()
    broken[3, 4000:4002, 1] = np.inf, np.nan
    path = write_logits(tmp_path, broken)
    with pytest.raises(NotFiniteError, match=r"field 'logits' has 2 values that are NaN or infinite"):
        StoredLogits.open(path)


def test_a_users_own_file_is_believed_in_nothing(tmp_path):
    """Without checksums, whether all is finite is looked at, whatever the file says of itself."""
    broken = LOGITS.copy()
    broken[1, 2, 3] = np.nan
    np.savez(tmp_path / "logits.npz", logits=broken, index=np.arange(SAMPLES), y=Y, not_finite=np.array(0))
    with pytest.raises(NotFiniteError, match="has 1 values"):
        StoredLogits.open(tmp_path / "logits.npz")


@pytest.mark.parametrize(("rows", "classes"), [(5, 1), (0, 3)])
def test_one_class_and_no_rows_are_logits_too(tmp_path, rows, classes):
    logits = Logits(np.zeros((2, rows, classes), np.float32), np.arange(rows), np.zeros(rows, np.int64))
    logits.write(tmp_path / "logits.npz")
    assert Logits.read(tmp_path / "logits.npz").logits.shape == (2, rows, classes)


class Pickled:
    """Leaves the file ``ran`` when it is unpickled."""

    def __init__(self, ran):
        self.ran = ran

    def __reduce__(self):
        return type(self.ran).touch, (self.ran,)


@pytest.mark.parametrize("name", ["index", "logits"])
def test_what_is_pickled_is_refused_and_never_run(tmp_path, name):
    arrays = {"logits": LOGITS[:, :1], "index": np.arange(1), "y": Y[:1]}
    ran = tmp_path / "ran"
    np.savez(tmp_path / "logits.npz", **arrays | {name: np.array([Pickled(ran)], dtype=object)})
    with pytest.raises(ArtifactError, match=r"logits\.npz"):
        list(StoredLogits.open(tmp_path / "logits.npz").by_model(range(1)))
    assert not ran.exists()
