"""What holds for every attack file, whatever it computes."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from unlearning_audit.evaluation import signals
from unlearning_audit.evaluation.reference import Reference, needs
from unlearning_audit.plugins import registry

from attack_cases import reference_of, two_gaussians

ATTACKS = registry.names("attacks")
NEEDS_NO_REFERENCE = {"correctness", "random"}
#: ART's network learns in a hundred epochs by default; with ten times the rate, ten will do.
QUICK = {"art": {"epochs": 10, "lr": 1e-3}}


@pytest.fixture(scope="module")
def game():
    rng = np.random.default_rng(7)
    logits, y, member = two_gaussians(rng, 18, 60, d=2.0)
    logits += rng.normal(size=logits.shape).astype(np.float32)
    return logits[:12], logits[12:], y, member


def squared_norms(logits, y):
    """Of a model whose weights are its logits: ‖p − one-hot(y)‖²; what cannot be is left to the attack to refuse."""
    one_hot = np.arange(logits.shape[-1]) == np.resize(y, logits.shape[:2])[..., None]
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return ((shifted / shifted.sum(axis=-1, keepdims=True) - one_hot) ** 2).sum(axis=-1)


def tokens(logits, y):
    """Of a model that says all three tokens of a sample as its logits say the label; its other tokens are as uncertain
    for every sample: log p, its mean −2 and standard deviation 1, and the label's rank among the classes."""
    label = np.where(np.resize(y, logits.shape[:2]) < logits.shape[-1], np.resize(y, logits.shape[:2]), 0)[..., None]
    z = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    label_logp = np.take_along_axis(logp, label, -1)
    four = np.concatenate(
        [
            label_logp,
            np.full_like(label_logp, -2),
            np.ones_like(label_logp),
            (logp > label_logp).sum(-1, keepdims=True),
        ],
        -1,
    )
    return np.repeat(four[:, :, None], 3, axis=2)


def compressed(logits, y):
    """Texts of a hundred bytes."""
    return np.full(logits.shape[:2], 100.0)


def neighbours(logits, y):
    """Two of each sample, as likely for every model."""
    return np.full((*logits.shape[:2], 2), -3.0)


def reference_logp(logits, y):
    """Models that find every sample as likely."""
    return np.full(logits.shape[:2], -1.0)


def before(logits, y):
    """Models that were twice as sure of every label before unlearning as after; labels that cannot be are the attack's
    to refuse."""
    return 2 * signals.phi(logits.reshape(-1, logits.shape[-1]), np.resize(y, logits.shape[:2]).ravel() % 3).reshape(
        logits.shape[:2]
    )


SIGNALS = {"squared_norms": squared_norms, "tokens": tokens, "compressed": compressed, "neighbours": neighbours,
           "reference_logp": reference_logp, "before": before}  # fmt: skip


@pytest.fixture(scope="module")
def once(game):
    """Attack → its (score, decision) of the game, computed once."""
    pool, audited, y, member = game
    return cache(lambda name: scored(name, audited, y, reference_of(pool, y, member[:12])))


def scored(name, logits, y, reference, seed=0):
    attack = registry.load("attacks", name)
    signals = {}
    for signal in needs(getattr(attack, "NEEDS", None)):
        signals[signal] = SIGNALS[signal](logits, y)
        reference.signals[signal] = SIGNALS[signal](reference.logits, reference.y)
    return attack.score(
        logits, y, reference, attack.Options(**QUICK.get(name, {})), np.random.default_rng(seed), **signals
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_shapes_types_and_determinism(name, game, once):
    pool, audited, y, member = game
    score, decision = once(name)
    assert (score.shape, score.dtype) == ((6, 60), np.float64)
    assert (decision.shape, decision.dtype) == ((6, 60), bool)
    assert np.isfinite(score).all()
    again = scored(name, audited, np.tile(y, (6, 1)), reference_of(pool, y, member[:12]))
    np.testing.assert_array_equal(again[0], score)
    np.testing.assert_array_equal(again[1], decision)


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"random"}))
def test_every_attack_but_the_control_finds_members(name, game, once):
    *_, member = game
    score, decision = once(name)
    inside = member[12:]
    # phi of members lies two spreads higher; 180 rows a side, so that .2 is four standard errors of both
    wins = (score[inside][:, None] > score[~inside]).mean() + 0.5 * (score[inside][:, None] == score[~inside]).mean()
    assert wins > 0.5 + 0.13
    assert decision[inside].mean() - decision[~inside].mean() > 0.2


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"random"}))
def test_a_models_scores_do_not_depend_on_who_is_scored_with_it(name, game, once):
    pool, audited, y, member = game
    score, decision = once(name)
    subset = [4, 1]
    part_score, part_decision = scored(name, audited[subset], y, reference_of(pool, y, member[:12]))
    np.testing.assert_array_equal(part_score, score[subset])
    np.testing.assert_array_equal(part_decision, decision[subset])


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"random"}))
def test_a_constant_added_to_the_logits_of_a_row_changes_nothing(name, game):
    pool, audited, y, member = game
    shift = np.random.default_rng(0).integers(-8, 9, size=(*audited.shape[:2], 1))
    grid = np.round(audited * 1024) / 1024  # float32 holds these and their shifted copies exactly
    reference = reference_of(pool, y, member[:12])
    score, decision = scored(name, grid, y, reference)
    moved_score, moved_decision = scored(name, (grid + shift).astype(np.float32), y, reference)
    np.testing.assert_allclose(moved_score, score, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(moved_decision, decision)


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"random"}))
def test_unusable_logits_and_labels_are_refused(name, game):
    pool, audited, y, member = game
    reference = reference_of(pool[:4], y, member[:4])  # some attacks learn from it first
    broken = audited.copy()
    broken[2, 3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        scored(name, broken, y, reference)
    with pytest.raises(ValueError, match="labels outside"):
        scored(name, audited, y + 1, reference)
    with pytest.raises(ValueError, match="y must be integers"):
        scored(name, audited, y[:-1], reference)


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - NEEDS_NO_REFERENCE))
def test_a_reference_without_one_side_is_refused(name, game):
    pool, audited, y, member = game
    for inside, outside in [(member[:12] & False, ~member[:12]), (member[:12], member[:12] & False)]:
        with pytest.raises(ValueError, match=r"reference\.|reference models as"):
            scored(name, audited, y, Reference(pool, y, inside, outside))


def test_attacks_import_nothing_slow():
    code = (
        "import sys\nfrom unlearning_audit.plugins import registry\n"
        "for name in registry.names('attacks'): registry.load('attacks', name)\n"
        "print([m for m in ('torch', 'pandas', 'scipy.stats', 'sklearn') if m in sys.modules])"
    )
    scripts = Path(__file__).parents[2] / "scripts"
    run = subprocess.run([sys.executable, "-c", code], cwd=scripts, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_attack_file_says_what_it_does():
    for name in ATTACKS:
        attack = registry.load("attacks", name)
        assert attack.__doc__.split(), name
        assert attack.Options.__doc__.split(), name
        assert attack.score.__doc__.split(), name
