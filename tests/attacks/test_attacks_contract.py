"""What holds for every attack file, whatever it computes."""

from functools import cache

import numpy as np
import pytest
from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.shadow import Shadow, needs
from unlearning_audit.plugins import registry

from attack_cases import advantage, run, shadow_of, two_gaussians

#: Importing ART takes longer than all of these tests.
ATTACKS = [pytest.param(name, marks=[pytest.mark.slow] * (name == "art")) for name in registry.names("attacks")]
INFORMED = [attack for attack in ATTACKS if attack.values != ("random",)]
#: ART's network learns in a hundred epochs by default; with ten times the rate, ten will do.
QUICK = {"art": {"epochs": 10, "lr": 1e-3}}


@pytest.fixture(scope="module")
def game():
    """Shadow models, audited models, labels and the membership of both."""
    rng = np.random.default_rng(7)
    logits, y, member = two_gaussians(rng, 18, 60, d=2.0)
    logits += rng.normal(size=logits.shape).astype(np.float32)
    return logits[:12], logits[12:], y, member


def read(logits, y):
    """What attacks read besides logits: of models whose weights are their logits, which say all three tokens of a
    sample as they say its label, and were twice as sure of it before unlearning. Labels that cannot be are the attack's
    to refuse."""
    label = np.resize(y, logits.shape[:2]) % logits.shape[-1]
    logp, one = signals.log_probabilities(logits), np.ones(label.shape)
    of_label = signals.of_label(logp, label)
    tokens = np.stack([of_label, -2 * one, one, (logp > of_label[..., None]).sum(-1)], axis=-1)
    return {
        "squared_norms": ((np.exp(logp) - np.eye(logits.shape[-1])[label]) ** 2).sum(-1),
        "tokens": np.repeat(tokens[:, :, None], 3, axis=2),
        "compressed": 100 * one,
        "neighbours": np.stack([-3 * one] * 2, axis=-1),
        "reference_logp": -one,
        "before": 2 * (of_label - signals.of_label(signals.log_complements(logits), label)),
    }


def scored(name, logits, y, shadow):
    attack = registry.load("attacks", name)
    of_audited, of_shadow = ({signal: read(*of)[signal] for signal in needs(attack)}
                                for of in ((logits, y), (shadow.logits, shadow.y)))  # fmt: skip
    shadow.signals.update(of_shadow)
    return run(attack, logits, y, shadow, signals=of_audited, **QUICK.get(name, {}))


@pytest.fixture(scope="module")
def once(game):
    """Attack → its (score, decision) of the game, computed once."""
    pool, audited, y, member = game
    return cache(lambda name: scored(name, audited, y, shadow_of(pool, y, member[:12])))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_models_scores_are_finite_and_depend_on_nobody_who_is_scored_with_it(name, game, once):
    pool, audited, y, member = game
    score, decision = once(name)
    assert (score.shape, score.dtype, decision.shape, decision.dtype) == ((6, 60), np.float64, (6, 60), bool)
    assert np.isfinite(score).all()
    some = [0, 1] if name == "random" else [4, 1]
    again = scored(name, audited[some], np.tile(y, (2, 1)), shadow_of(pool, y, member[:12]))
    np.testing.assert_array_equal(again[0], score[some])
    np.testing.assert_array_equal(again[1], decision[some])


@pytest.mark.parametrize("name", INFORMED)
def test_every_attack_but_the_control_finds_members(name, game, once):
    inside = game[-1][12:]
    score, decision = once(name)
    # phi of members lies two spreads higher; 180 rows a side, so that .2 is four standard errors of both
    wins = np.sign(score[inside][:, None] - score[~inside]).mean()
    assert wins > 0.26
    assert advantage(decision, inside) > 0.2


@pytest.mark.parametrize("name", INFORMED)
def test_a_constant_added_to_the_logits_of_a_row_changes_nothing(name, game):
    pool, audited, y, member = game
    shift = np.random.default_rng(0).integers(-8, 9, size=(*audited.shape[:2], 1))
    grid = np.round(audited * 1024) / 1024  # float32 holds these and their shifted copies exactly
    shadow = shadow_of(pool, y, member[:12])
    score, decision = scored(name, grid, y, shadow)
    moved_score, moved_decision = scored(name, (grid + shift).astype(np.float32), y, shadow)
    np.testing.assert_allclose(moved_score, score, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(moved_decision, decision)


@pytest.mark.parametrize("name", INFORMED)
def test_unusable_logits_and_labels_are_refused(name, game):
    pool, audited, y, member = game
    shadow = shadow_of(pool[:4], y, member[:4])  # some attacks learn from it first
    broken = audited.copy()
    broken[2, 3, 1] = np.nan
    for logits, labels, message in (
        (broken, y, "NaN or infinite"), (audited, y + 1, "labels outside"), (audited, y[:-1], "y must be integers"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            scored(name, logits, labels, shadow)


@pytest.mark.parametrize("name", [attack for attack in INFORMED if attack.values != ("correctness",)])
def test_a_reference_without_one_side_is_refused(name, game):
    pool, audited, y, member = game
    nobody = member[:12] & False
    for inside, outside in [(nobody, ~member[:12]), (member[:12], nobody)]:
        with pytest.raises(ValueError, match=r"shadow\.|shadow models as"):
            scored(name, audited, y, Shadow(pool, y, inside, outside))
