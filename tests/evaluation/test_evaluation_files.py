"""Files of one evaluation are read once, stacked in their order, and refused if they do not belong together."""

import numpy as np
import pytest
from unlearning_audit.evaluation import shadow, signal_files
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Logits, Membership
from unlearning_audit.evaluation.cohort import by_logits
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.signal_files import Gradients
from unlearning_audit.store import tables

SAMPLES, CLASSES = 6, 3
INDEX = np.arange(SAMPLES)
Y = INDEX % CLASSES
ORIGINALS, UNLEARNED = (["original0.npz", "original1.npz"], ["unlearned0.npz", "unlearned1.npz"])


def membership(models, shadow=(), **fields):
    """Six samples and who saw them."""
    train = np.zeros((models, SAMPLES), bool)
    train[:, :4] = True
    forget, heldout = np.zeros_like(train), np.zeros_like(train)
    forget[:, 1:3], heldout[:, 4] = True, True
    seed = np.arange(models)
    return Membership(
        train=train, forget=forget, heldout=heldout, seed=seed, split=seed % 2, block=seed // 2,
        shadow=np.isin(seed, shadow), **fields,
    )  # fmt: skip


def scores(**columns):
    """scores.parquet with columns of one attack, of which some are given."""
    rows = len(next(iter(columns.values())))
    ones = {
        "attack": "loss",
        "form": "trained",
        "model": 0,
        "index": 0,
        "role": "forget",
        "score": 0.5,
        "decision": True,
    }
    columns = {name: np.asarray(columns.get(name, [one] * rows)) for name, one in ones.items()}
    tables.write_scores(
        "scores.parquet", columns | {name: columns[name].astype(np.int32) for name in ("model", "index")}
    )


@pytest.fixture
def study(workdir):
    """A folder with data, two batches of 3 and 2 models, their logits before and after, and scores."""
    Data(np.zeros((SAMPLES, 2), np.float32), Y, np.r_[0, 0, 0, 0, 0, 1], Y, INDEX, CLASSES).write("data.npz")
    rng = np.random.default_rng(0)
    for batch, models in enumerate((3, 2)):
        membership(models, shadow=[0]).write(f"splits{batch}.npz")
        for stage in ("original", "unlearned"):
            logits = rng.normal(size=(models, SAMPLES, CLASSES)).astype(np.float32)
            Logits(logits, INDEX, Y).write(f"{stage}{batch}.npz")
            Gradients(rng.random((models, 2)), rng.random(models)).write(f"{stage}{batch}-readings.npz")
    scores(attack=["loss", "loss", "shadow"], model=[0, 2, 1], index=[1, 5, 0], score=[0.5, 1.5, 2.5],
           decision=[True, False, True])  # fmt: skip


def evaluation(**files):
    defaults = {
        "data_file": "data.npz", "membership_files": ["splits0.npz", "splits1.npz"], "scores_file": "scores.parquet",
        "originals": ORIGINALS, "unlearned_files": UNLEARNED,
        "signal_files": {path: [path.replace(".npz", "-readings.npz")] for path in ORIGINALS + UNLEARNED},
    }  # fmt: skip
    return Evaluation(**defaults | files)


def test_batches_are_stacked_in_their_order(study):
    loaded = evaluation()
    assert np.array_equal(loaded.outputs(ORIGINALS).logits, np.concatenate([Logits.read(p).logits for p in ORIGINALS]))
    assert loaded.unlearned.shape == (5, SAMPLES, CLASSES)
    np.testing.assert_array_equal(loaded.membership.seed, [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(loaded.target, [False, True, True, False, True])
    norms, mean = loaded.gradients
    parts = [signal_files.read(f"unlearned{batch}-readings.npz", models) for batch, models in ((0, 3), (1, 2))]
    np.testing.assert_array_equal(norms, np.concatenate([part.squared_norms for part in parts]))
    np.testing.assert_array_equal(mean[3:], parts[1].mean_squared_norm)


def test_labels_are_those_that_the_models_were_trained_with(study):
    loaded = evaluation()
    assert loaded.labels is loaded.data.y
    assert loaded.labels_of(np.array([0, 3])) is loaded.labels
    labels = [np.tile((INDEX + batch) % CLASSES, (models, 1)) for batch, models in enumerate((3, 2))]
    for batch, part in enumerate(labels):
        membership(len(part), labels=part).write(f"splits{batch}.npz")
    loaded = evaluation()
    np.testing.assert_array_equal(loaded.labels, np.concatenate(labels))
    np.testing.assert_array_equal(loaded.labels_of(INDEX[:5] % 3 == 1), [labels[0][1], labels[1][1]])


def test_scores_lie_where_they_belong_and_nowhere_else(study):
    found = evaluation().scores
    assert set(found) == {("loss", "trained"), ("shadow", "trained")}
    score, decision = found["loss", "trained"]
    expected = np.full((3, SAMPLES), np.nan)
    expected[0, 1], expected[2, 5] = 0.5, 1.5
    np.testing.assert_array_equal(score, expected)
    np.testing.assert_array_equal(np.argwhere(decision), [[0, 1]])


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("original1.npz", {"y": Y[::-1]}, "original1.npz: field 'y' does not match data.npz"),
        ("original1.npz", {"index": INDEX[::-1]}, "original1.npz: field 'y' does not match data.npz"),
        ("original1.npz", {"index": INDEX + 1}, "original1.npz: field 'index' does not match data.npz"),
        ("original1.npz", {"index": np.arange(5), "y": Y[:5], "logits": np.zeros((2, 5, 3))},
         "original1.npz: field 'index' does not match data.npz"),
        ("original1.npz", {"logits": np.zeros((3, SAMPLES, CLASSES))}, r"original1.npz: field 'logits' has shape \(3"),
        ("data.npz", {"classes": np.array(4)}, "original0.npz: field 'logits' has 3 classes, but data.npz has 4"),
        ("splits1.npz", {"train": np.ones((2, 4), bool)}, r"splits1.npz: field 'train' has .*expected \(any, 6\)"),
        ("splits1.npz", {"weight": np.ones(SAMPLES)}, "disagree on weight"),
    ],
)  # fmt: skip
def test_files_that_do_not_belong_together_are_told(study, file, change, message):
    with np.load(file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(file, **arrays | change)
    loaded = evaluation()
    with pytest.raises(ValueError, match=message):
        _ = loaded.original, loaded.membership


def test_gradients_are_asked_for_in_vain_where_no_batch_or_only_one_has_them(study):
    for files in ({"unlearned0.npz": ["unlearned0-readings.npz"]}, {}):
        with pytest.raises(ArtifactError, match=r"unlearned\d.npz: no gradients were read of these models"):
            _ = evaluation(signal_files=files).gradients


def test_signals_belong_to_the_logits_of_their_batch_signal_by_signal():
    logits, files = ["a", "b"], ["a-norms", "b-norms", "a-tokens", "b-tokens"]
    expected = {"a": ["a-norms", "a-tokens"], "b": ["b-norms", "b-tokens"], "c": ["c-norms"]}
    assert by_logits((logits, files), (["a", "b"], ()), (["c"], ["c-norms"])) == expected


def test_the_reference_of_a_sample_are_shadow_models_that_never_saw_it(study):
    """Samples 4 and 5 were seen by nobody, the others by all; a shadow model tells nothing of itself."""
    for batch, models in enumerate((3, 2)):
        membership(models, shadow=[0, 1]).write(f"splits{batch}.npz")
    loaded = evaluation()
    logp = loaded.outputs(ORIGINALS).logits.astype(np.float64)
    logp = (logp - np.log(np.exp(logp).sum(-1, keepdims=True)))[:, INDEX, Y]
    of = loaded.signal("reference_logp", loaded.unlearned_files, np.ones(5, bool), np.array([0, 4, 5]))
    expected = [[np.nan, *logp[[s for s in (0, 1, 3, 4) if s != model]][:, [4, 5]].mean(0)] for model in range(5)]
    np.testing.assert_allclose(of, expected, rtol=1e-6)
    assert shadow.known_mask({"reference_logp": of}).tolist() == [[False, True, True]] * 5


def test_without_retrained_models_there_is_nothing_to_compare_with():
    with pytest.raises(ValueError, match="there are no retrained models to compare with; name retrain"):
        Evaluation("data.npz", ["splits.npz"], ["original.npz"], ["unlearned.npz"]).yardsticks()
