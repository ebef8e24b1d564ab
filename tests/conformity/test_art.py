"""The attack art is the toolbox's own: the same numbers as calling it by hand, and what it must find in known data."""

import numpy as np
import pytest
import torch
from unlearning_audit.attacks import art
from unlearning_audit.evaluation.shadow import Shadow

pytestmark = pytest.mark.slow

SHORT = {"epochs": 5}


def population(rng, n=300, classes=4, lift=0.0):
    """Logits [1, n, classes], labels and membership of a model that is surer of members by ``lift``."""
    y, member = rng.integers(classes, size=n), rng.random(n) < 0.5
    logits = rng.normal(size=(1, n, classes)).astype(np.float32)
    logits[0, np.arange(n), y] += np.float32(lift) * member
    return logits, y, member


def by_hand(kind, logits, y, member, queries, query_y, *, scaler="standard", epochs=100, seed=0):
    """`MembershipInferenceBlackBox` as its documentation calls it, on predictions."""
    # Seconds, which a process that only lists the tests need not spend.
    from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
    from art.estimators.classification import BlackBoxClassifier

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    np.random.seed(seed)
    torch.manual_seed(seed)
    classes = logits.shape[-1]
    target = BlackBoxClassifier(lambda x: x, input_shape=(classes,), nb_classes=classes)
    attack = MembershipInferenceBlackBox(
        target, attack_model_type=kind, input_type="prediction", scaler_type=scaler, nn_model_epochs=epochs
    )
    attack.fit(pred=logits[member], y=y[member], test_pred=logits[~member], test_y=y[~member])
    scores = attack.infer(None, query_y, pred=queries, probabilities=True)
    torch.set_num_threads(threads)
    return scores.ravel()


class Seed:
    """A generator whose next integer is known, so that ART can be called by hand with the same seed."""

    def integers(self, top):
        assert top == 2**31
        return 17


def scored(logits, y, shadow, rng=None, **options):
    return art.score(logits, y, shadow, art.Options(**options), rng or np.random.default_rng(0))


@pytest.mark.parametrize("scaler", ["standard", "none"])
@pytest.mark.parametrize("kind", art.Options.model_json_schema()["properties"]["model"]["enum"])
def test_scores_are_those_of_the_library_called_by_hand(kind, scaler):
    rng = np.random.default_rng(1)
    (logits, y, member), (queries, query_y, _) = population(rng, lift=1.0), population(rng, n=250)
    shadow = Shadow(logits, y, member[None], ~member[None])
    actual, decision = scored(
        queries, query_y, shadow, Seed(),
        model=kind, features="logits", scaler=scaler, balanced=False, rows=None, **SHORT,
    )  # fmt: skip
    expected = by_hand(
        kind, logits[0], y, member, queries[0], query_y, scaler=None if scaler == "none" else scaler, seed=17, **SHORT
    )
    np.testing.assert_array_equal(actual[0], expected)
    np.testing.assert_array_equal(decision[0], expected > 0.5)
    assert np.ptp(actual) > 0


def test_what_it_is_told_of_a_sample_is_what_was_asked_for():
    logits = np.array([[1.0, 2.0, 4.0]])
    p = np.exp(logits) / np.exp(logits).sum()
    for kind, expected in (("logits", logits), ("probabilities", p), ("log_probabilities", np.log(p))):
        actual = art.features(logits, np.array([0]), kind)
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_rows_are_drawn_from_both_sides():
    member = np.arange(50) < 30
    for options, inside, outside in (
        ({"balanced": False, "rows": None}, 30, 20),
        ({"balanced": True, "rows": None}, 20, 20),
        ({"balanced": True, "rows": 7}, 7, 7),
        ({"balanced": False, "rows": 25}, 25, 20),
    ):
        rows = art.sampled_rows(member, art.Options(**options), np.random.default_rng(0))
        assert (member[rows].sum(), (~member[rows]).sum()) == (inside, outside)
        assert len(set(rows.tolist())) == len(rows)
    np.testing.assert_array_equal(
        art.sampled_rows(member, art.Options(balanced=False, rows=None), np.random.default_rng(0)), np.arange(50)
    )


def test_a_sample_may_be_asked_about_alone_and_global_generators_stay_as_they_were():
    logits, y, member = population(np.random.default_rng(5))
    shadow = Shadow(logits, y, member[None], ~member[None])
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), torch.get_num_threads()
    for kind in ("nn", "rf"):
        whole = scored(logits, y, shadow, model=kind, **SHORT)[0]
        alone = scored(logits[:, :1], y[:1], shadow, model=kind, **SHORT)[0]
        np.testing.assert_allclose(alone, whole[:, :1])
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])
    assert torch.equal(torch.get_rng_state(), before[1])
    assert torch.get_num_threads() == before[2]
