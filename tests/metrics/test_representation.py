"""Representations: layers of known likeness, coverage, the probe by other means, reasons."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from unlearning_audit.evaluation.arrays import ArtifactError, Data, Logits, Membership
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.signal_files import Features, samples_for_features
from unlearning_audit.metrics import representation
from unlearning_audit.store.files import NoAnswerError, write_failure

from ruli_cases import data, swapped_pairs

WIDTH, CORRELATION = 8, 0.7
SIGN = np.where(data().y == 1, 1.0, -1.0)


@pytest.fixture(scope="module")
def member():
    """Five swapped pairs of two models a split."""
    return Membership.concatenate(swapped_pairs(pairs=5, models=2, shadows=0))


class World:
    """A case of models whose hidden layers are given: ``add`` writes those of a population, ``rows`` reads them."""

    def __init__(self, folder, member, y=None):
        self.folder, self.member, self.hidden = folder, member, {}
        default = data()
        self.y = default.y if y is None else y
        Data(default.x, self.y, default.part, self.y, default.index, int(self.y.max()) + 1).write(folder / "data.npz")
        member.write(folder / "splits.npz")

    def add(self, name, layers):
        """Models with the hidden ``layers`` float [models, samples, features]; None: they failed."""
        logits, path = self.folder / f"{name}.npz", self.folder / f"{name}-readings.npz"
        shape = (len(self.member.seed), len(self.y), max(2, int(self.y.max()) + 1))
        if not logits.exists():
            Logits(np.zeros(shape, np.float32), np.arange(len(self.y)), self.y).write(logits)
        index = samples_for_features(self.member)
        if layers is None:
            write_failure(path, "method", "it diverged")
        else:
            Features(np.take_along_axis(layers, index[..., None], 1).astype(np.float32), index).write(path)
        self.hidden[str(logits)] = str(path)
        return [str(logits)]

    def evaluation(self, unlearned, originals, retrained=None, control=None):
        whole, splits = (str(self.folder / f"{name}.npz") for name in ("data", "splits"))
        references = {"retrained_files": retrained, "control_files": control, "feature_files": self.hidden}
        return Evaluation(whole, [splits], originals, unlearned, **references)

    def rows(self, *files):
        return {row.metric: row for row in representation.rows(self.evaluation(*files))}


def near(rng, layers, correlation=CORRELATION):
    """Layers with this correlation to others, of a likeness of its square."""
    return correlation * layers + np.sqrt(1 - correlation**2) * rng.standard_normal(layers.shape)


#: Of unlearned models and `populations`.
TRUTH = {"cka_retrained": 0.49 * 0.81, "cka_gap": 0.49 * (0.81 - 1)}


def populations(world, rng):
    """Files by name: ``retrained`` layers and a ``control`` of likeness .49, ``unlearned`` ones of likeness .49·.9²,
    and the ``original`` from which these differ by another last layer alone."""
    retrained = rng.standard_normal((*world.member.train.shape, WIDTH))
    unlearned = near(rng, retrained, CORRELATION * 0.9)
    layers = {"unlearned": unlearned, "original": unlearned, "retrained": retrained, "control": near(rng, retrained)}
    return {name: world.add(name, of) for name, of in layers.items()}


def test_likenesses_are_those_of_known_layers_and_retraining_has_no_gap(tmp_path, member):
    world = World(tmp_path, member)
    files = populations(world, np.random.default_rng(0))
    table = world.rows(*files.values())
    for metric, value in TRUTH.items():
        row = table[metric]
        assert row.ci_low <= value <= row.ci_high < row.ci_low + 0.2
        assert row.role == "forget"
    assert table["cka_original"].value == pytest.approx(1.0, abs=1e-9)
    assert table["cka_gap"].value < 0
    for audited in ("retrained", "control"):
        table = world.rows(*{**files, "unlearned": files[audited]}.values())
        assert table["cka_retrained"].ci_low <= 0.49 <= table["cka_retrained"].ci_high
        assert "cka_gap" not in table


@pytest.mark.slow
def test_intervals_cover_likeness_and_gap(tmp_path, member):
    """Samples and models are drawn anew each time."""
    world, rng, hits, repeats = World(tmp_path, member), np.random.default_rng(2), np.zeros(2), 40
    for _ in range(repeats):
        table = {
            row.metric: row for row in representation.cka_rows(world.evaluation(*populations(world, rng).values()))
        }
        hits += [table[name].ci_low <= value <= table[name].ci_high for name, value in TRUTH.items()]
    assert (hits >= 0.9 * repeats).all(), hits


def test_intervals_cover_those_of_other_pairs(tmp_path, member):
    """In two of five pairs the layers are those of retraining, in the others they have nothing to do with it: Student's
    interval of five numbers has 4 degrees of freedom at least."""
    world, rng = World(tmp_path, member), np.random.default_rng(5)
    retrained, other = rng.standard_normal((2, *member.train.shape, WIDTH))
    layers = {"own": np.where((member.block < 2)[:, None, None], retrained, other), "retrained": retrained}
    files = {name: world.add(name, of) for name, of in layers.items()}
    row = world.rows(files["own"], files["own"], files["retrained"])["cka_retrained"]
    half = 0.95 * t.ppf(0.975, 4) * np.std([1, 1, 0, 0, 0], ddof=1) / np.sqrt(5)
    assert row.value == pytest.approx(0.4, abs=0.05)
    assert row.value - row.ci_low >= half
    assert row.ci_high == 1 or row.ci_high - row.value >= half


def test_a_probe_tells_sides_where_the_layer_knows_them(tmp_path, member):
    """Two classes at ±1 along one feature; what was forgotten lies at ±(1 + shift), what was never seen at ±1, both
    with a deviation of 1: by φ, which rises along the feature, the area is Φ(shift/√2). A probe that learned what it
    is asked about would not see that it lies on the other side, at a shift of −2."""
    world, rng = World(tmp_path, member), np.random.default_rng(3)
    for size, truth in ((1.0, 0.760), (0.0, 0.5), (-2.0, 0.079)):
        layers = rng.standard_normal((*member.train.shape, WIDTH))
        layers[..., 0] += SIGN * (1 + size * member.forget)
        files = world.add(f"own{size}", layers)
        row = world.rows(files, files)["probe_auc"]
        assert row.ci_low <= truth <= row.ci_high < row.ci_low + 0.2


@pytest.mark.parametrize("classes", [2, 4])
def test_the_probe_is_a_logistic_regression_on_standardised_features(classes):
    """With scikit-learn's own scaling and probabilities, of which φ = log p/(1 − p); the least label is not 0."""
    rng = np.random.default_rng(4)
    retained, query, y = rng.standard_normal((90, 3)), rng.standard_normal((20, 3)), rng.integers(classes, size=90)
    retained[:, 0] = 5 * retained[:, 0] + y
    retained[:, 2] = 7.0  # a feature that does not vary
    labels = rng.integers(classes, size=20)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000)).fit(retained, y)
    expected = logit(model.predict_proba(query)[np.arange(20), labels])
    np.testing.assert_allclose(representation.probe(retained, y + 7, query, labels + 7), expected, rtol=1e-6)


# ---------------------------------------------------------------- reasons


def test_where_other_models_lack_the_rest_is_given_with_the_reason(tmp_path, member):
    world = World(tmp_path, member)
    files = populations(world, np.random.default_rng(5))
    own = files["unlearned"], files["original"]
    table = world.rows(*own)
    assert table["cka_retrained"].note.startswith("there are no other retrained models: add retrain to the methods")
    assert "cka_gap" not in table
    assert table["cka_original"].value == pytest.approx(1.0)
    failed = world.add("failed", None)
    assert world.rows(*own, failed)["cka_retrained"].note == "it diverged"
    beside = world.rows(*own, files["retrained"], failed)
    assert not np.isnan(beside["cka_retrained"].value)
    assert beside["cka_gap"].note == "it diverged"
    with pytest.raises(NoAnswerError, match="it diverged"):
        world.rows(failed, files["original"])
    del world.hidden[own[0][0]]
    with pytest.raises(ArtifactError, match=r"unlearned.npz: the last hidden layer of these models was not read; a f"):
        world.rows(*own)


def test_a_single_label_has_no_last_layer_to_learn_and_a_constant_layer_no_likeness(tmp_path, member):
    world = World(tmp_path, member, np.zeros(len(data().y), np.int64))
    files = world.add("own", np.ones((*member.train.shape, WIDTH)))
    table = world.rows(files, files)
    assert table["probe_auc"].note.startswith("kept samples have a single label")
    assert table["cka_original"].note.startswith("a model has the same features for all forgotten samples")


def test_labels_that_no_kept_sample_has_are_left_out(tmp_path, member):
    y = np.where(member.forget[0] | member.heldout[0], 2, data().y)
    world = World(tmp_path, replace(member, train=(member.retain & (y != 2)) | member.forget), y)
    files = world.add("own", np.random.default_rng(6).standard_normal((*member.train.shape, WIDTH)))
    note = world.rows(files, files)["probe_auc"].note
    assert note.startswith("a model has no forgotten or no held-out samples with a label that kept ones have")


# ---------------------------------------------------------------- a study
