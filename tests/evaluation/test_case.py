"""Files of one case are read once, stacked in their order, and refused if they do not belong together."""

import numpy as np
import pytest
from unlearning_audit.evaluation import readings, reference
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Logits
from unlearning_audit.evaluation.cohort import by_logits
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.readings import Gradients
from unlearning_audit.store import tables

from member_cases import SAMPLES, membership

CLASSES = 3


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with data, two batches of 3 and 2 models, their logits before and after, and scores."""
    monkeypatch.chdir(tmp_path)
    y = np.arange(SAMPLES) % CLASSES
    Data(np.zeros((SAMPLES, 2), np.float32), y, np.r_[0, 0, 0, 0, 0, 1], y, np.arange(SAMPLES), CLASSES).write(
        "data.npz"
    )
    rng = np.random.default_rng(0)
    for batch, models in enumerate((3, 2)):
        membership(models, shadow=[0]).write(f"splits{batch}.npz")
        for stage in ("original", "unlearned"):
            logits = rng.normal(size=(models, SAMPLES, CLASSES)).astype(np.float32)
            Logits(logits, np.arange(SAMPLES), y).write(f"{stage}{batch}.npz")
            Gradients(rng.random((models, 2)), rng.random(models)).write(f"{stage}{batch}-readings.npz")
    columns = {
        "attack": np.array(["loss", "loss", "shadow"]), "form": np.array(["trained"] * 3),
        "model": np.array([0, 2, 1], np.int32), "index": np.array([1, 5, 0], np.int32),
        "role": np.array(["forget"] * 3), "score": np.array([0.5, 1.5, 2.5]), "decision": np.array([True, False, True]),
    }  # fmt: skip
    tables.write_scores("scores.parquet", columns)
    return tmp_path


def case(**files):
    defaults = {
        "data_file": "data.npz", "splits": ["splits0.npz", "splits1.npz"], "scores_file": "scores.parquet",
        "originals": ["original0.npz", "original1.npz"], "unlearned_files": ["unlearned0.npz", "unlearned1.npz"],
        "readings": {f"{stage}{batch}.npz": [f"{stage}{batch}-readings.npz"]
                     for stage in ("original", "unlearned") for batch in (0, 1)},
    }  # fmt: skip
    return Evaluation(**defaults | files)


def rewrite(path, **fields):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "node"}
    np.savez(path, **{name: value for name, value in {**arrays, **fields}.items() if value is not None})


def test_batches_are_stacked_in_their_order(study):
    loaded = case()
    parts = [Logits.read(f"original{batch}.npz").logits for batch in range(2)]
    np.testing.assert_array_equal(loaded.original, np.concatenate(parts))
    assert loaded.unlearned.shape == (5, SAMPLES, CLASSES)
    np.testing.assert_array_equal(loaded.membership.seed, [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(loaded.target, [False, True, True, False, True])
    norms, mean = loaded.gradients
    parts = [readings.read(f"unlearned{batch}-readings.npz", models, SAMPLES) for batch, models in ((0, 3), (1, 2))]
    np.testing.assert_array_equal(norms, np.concatenate([part.squared_norms for part in parts]))
    np.testing.assert_array_equal(mean[3:], parts[1].mean_squared_norm)


def test_files_that_play_two_roles_are_read_once(study):
    loaded = case(
        unlearned_files=["original0.npz", "original1.npz"], retrained_files=["unlearned0.npz", "unlearned1.npz"]
    )
    assert loaded.original is loaded.unlearned
    assert loaded.answers(loaded.retrained_files).logits is not loaded.original
    for name in ("original0.npz", "original1.npz"):
        (study / name).unlink()
    assert loaded.gradients[0].shape == (5, 2)


def test_labels_are_those_that_the_models_were_trained_with(study):
    loaded = case()
    assert loaded.labels is loaded.data.y
    assert loaded.labels_of(np.array([0, 3])) is loaded.labels
    batch_labels = [np.tile((np.arange(SAMPLES) + batch) % CLASSES, (models, 1)) for batch, models in enumerate((3, 2))]
    for batch, labels in enumerate(batch_labels):
        membership(len(labels), labels=labels).write(f"splits{batch}.npz")
    loaded = case()
    np.testing.assert_array_equal(loaded.labels, np.concatenate(batch_labels))
    np.testing.assert_array_equal(
        loaded.labels_of(np.array([False, True, False, False, True])), [batch_labels[0][1], batch_labels[1][1]]
    )


def test_scores_lie_where_they_belong_and_nowhere_else(study):
    scores = case().scores
    assert set(scores) == {("loss", "trained"), ("shadow", "trained")}
    score, decision = scores["loss", "trained"]
    expected = np.full((3, SAMPLES), np.nan)
    expected[0, 1], expected[2, 5] = 0.5, 1.5
    np.testing.assert_array_equal(score, expected)
    np.testing.assert_array_equal(np.argwhere(decision), [[0, 1]])


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("original1.npz", {"y": np.arange(SAMPLES)[::-1] % CLASSES}, "field 'y' does not match data.npz"),
        ("original1.npz", {"index": np.arange(SAMPLES)[::-1]}, "field 'y' does not match data.npz"),
        ("original1.npz", {"index": np.arange(SAMPLES) + 1}, "field 'index' does not match data.npz"),
        ("original1.npz", {"index": np.arange(5), "y": np.zeros(5, int), "logits": np.zeros((2, 5, 3))},
         "field 'index' does not match data.npz"),
        ("original1.npz", {"logits": np.zeros((3, SAMPLES, CLASSES))}, r"field 'logits' has shape \(3, 6, 3\)"),
        ("original1.npz", {"logits": np.zeros((2, SAMPLES, 4))}, "has other classes than original0.npz"),
        ("data.npz", {"classes": np.array(4)}, "original0.npz: field 'logits' has 3 classes, but data.npz has 4"),
        ("splits1.npz", {"train": np.ones((2, 4), bool)}, r"field 'train' has shape \(2, 4\), expected \(any, 6\)"),
        ("splits1.npz", {"weight": np.ones(SAMPLES)}, "disagree on weight"),
    ],
)  # fmt: skip
def test_files_that_do_not_belong_together_are_told(study, file, change, message):
    rewrite(study / file, **change)
    loaded = case()
    with pytest.raises(ValueError, match=message) as error:
        _ = loaded.original, loaded.membership
    assert file in str(error.value) or "weight" in message


def test_gradients_are_asked_for_in_vain_where_no_batch_or_only_one_has_them(study):
    first = {"unlearned0.npz": ["unlearned0-readings.npz"]}
    for files in (first, {}):
        with pytest.raises(ArtifactError, match=r"unlearned\d.npz: no gradients were read of these models"):
            _ = case(readings=files).gradients
    Gradients(np.ones((3, 4)), np.ones(3)).write("unlearned0-readings.npz")
    with pytest.raises(ArtifactError, match=r"readings.npz: field 'squared_norms' has 4 columns for 2 samples"):
        _ = case().gradients


def test_readings_belong_to_the_logits_of_their_batch_signal_by_signal():
    logits, files = ["a", "b"], ["a-norms", "b-norms", "a-tokens", "b-tokens"]
    assert by_logits((logits, files), (["a", "b"], ()), (["c"], ["c-norms"])) == {
        "a": ["a-norms", "a-tokens"], "b": ["b-norms", "b-tokens"], "c": ["c-norms"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value", "size"),
    [("model", 3, 3), ("model", -1, 3), ("index", SAMPLES, SAMPLES), ("index", -1, SAMPLES)],
)
def test_scores_of_models_or_samples_that_do_not_exist_are_told(study, column, value, size):
    columns = {name: np.array(["test"]) for name in ("attack", "form", "role")}
    columns |= {name: np.array([0], np.int32) for name in ("model", "index")}
    columns |= {"score": np.array([0.5]), "decision": np.array([True])}
    tables.write_scores("scores.parquet", columns | {column: np.array([value], np.int32)})
    with pytest.raises(ArtifactError, match=f"^scores.parquet: field '{column}' has values outside 0 … {size - 1}"):
        _ = case().scores


def test_the_reference_of_a_sample_are_shadow_models_that_never_saw_it(study):
    """Samples 4 and 5 were seen by nobody, the others by all; a shadow model is no reference of itself."""
    for batch, models in enumerate((3, 2)):
        membership(models, shadow=[0, 1]).write(f"splits{batch}.npz")
    loaded = case()
    logp = loaded.original.astype(np.float64)
    logp = logp - np.log(np.exp(logp).sum(-1, keepdims=True))
    logp = logp[:, np.arange(SAMPLES), loaded.data.y]
    shadow = np.flatnonzero(~loaded.target)
    assert shadow.tolist() == [0, 1, 3, 4]
    of = loaded.signal("reference_logp", loaded.unlearned_files, np.ones(5, bool), np.array([0, 4, 5]))
    assert of.shape == (5, 3)
    assert np.isnan(of[:, 0]).all()
    for model in range(5):
        references = [s for s in shadow if s != model]
        np.testing.assert_allclose(of[model, 1:], logp[references][:, [4, 5]].mean(0), rtol=1e-6)
    assert np.isnan(reference.mask_of({"reference_logp": of})).sum() == 0
    assert reference.mask_of({"reference_logp": of}).tolist() == [[False, True, True]] * 5


def test_without_retrained_models_there_is_nothing_to_compare_with():
    with pytest.raises(ValueError, match="there are no retrained models to compare with; name retrain"):
        Evaluation("data.npz", ["splits.npz"], ["original.npz"], ["unlearned.npz"]).yardsticks()
