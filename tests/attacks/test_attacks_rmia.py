"""The relative attack RMIA."""

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.attacks import rmia
from unlearning_audit.evaluation.shadow import Shadow

from attack_cases import logits_of, run


def logit(p):
    return np.log(p) - np.log1p(-p)


def oracle(p, pool, member, nonmember, *, mode, a, gamma, z):
    """The score by loops over models, x and z, in plain probabilities."""
    ratio = p.copy()
    for j in range(p.shape[1]):
        out = pool[nonmember[:, j], j].mean()
        inside = pool[member[:, j], j].mean() if member[:, j].any() else out
        ratio[:, j] /= (out + inside) / 2 if mode == "online" else ((1 + a) * out + (1 - a)) / 2
    return np.array([[np.mean([row[j] / row[k] >= gamma for k in z if k != j]) for j in range(len(row))]
                     for row in ratio])  # fmt: skip


@pytest.fixture
def game(rng):
    y = rng.integers(3, size=15)
    member = rng.random((8, 15)) < 0.4
    member[0], member[1], member[2:4] = True, True, False
    nonmember = ~member & (rng.random((8, 15)) < 0.8)
    nonmember[2:4] = True
    member[:, 10:], nonmember[:, 10:] = False, True  # five samples that no shadow saw
    return y, rng.uniform(0.05, 0.95, size=(8, 15)), rng.uniform(0.05, 0.95, size=(3, 15)), member, nonmember


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("gamma", [0.8, 1.0, 2.0])
@pytest.mark.parametrize("z", ["others", "population"])
def test_score_equals_loops(game, mode, gamma, z):
    y, pool, p, member, nonmember = game
    columns = np.arange(15) if z == "population" or mode == "offline" else np.arange(10)
    y, pool, p, member, nonmember = y[columns], *(v[:, columns] for v in (pool, p, member, nonmember))
    options = {"mode": mode, "a": 0.4, "gamma": gamma, "z": z, "beta": 0.5}
    shadow = Shadow(logits_of(logit(pool), y), y, member, nonmember)
    score, decision = run(rmia, logits_of(logit(p), y), y, shadow, **options)
    z_columns = np.flatnonzero(nonmember.all(0)) if z == "population" else np.arange(len(columns))
    want = oracle(p, pool, member, nonmember, mode=mode, a=0.4, gamma=gamma, z=z_columns)
    np.testing.assert_allclose(score, want, atol=1e-12)
    np.testing.assert_array_equal(decision, score >= 0.5)


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("gamma", [0.8, 1.3])
@pytest.mark.parametrize("z", ["others", "population"])
def test_beta_is_learned_on_each_reference_model_without_itself(game, mode, gamma, z):
    y, pool, p, member, _ = game
    columns = np.arange(15 if z == "population" else 10)
    y, pool, p, member = y[columns], pool[:, columns], p[:, columns], member[:, columns]
    how, rivals = {"mode": mode, "a": 0.3, "gamma": gamma}, columns[10:] if z == "population" else columns
    left_out = np.empty(pool.shape)
    for m in range(8):
        rest = np.arange(8) != m
        left_out[m] = oracle(pool[[m]], pool[rest], member[rest], ~member[rest], z=rivals, **how)[0]
    beta = stats.best_threshold(value=left_out.ravel(), positive=member.ravel())
    shadow = Shadow(logits_of(logit(pool), y), y, member, ~member)
    score, decision = run(rmia, logits_of(logit(p), y), y, shadow, **how, z=z)
    np.testing.assert_array_equal(decision, score >= beta - 1e-9)
    assert 0 < decision.mean() < 1


def test_equal_ratios_dominate_at_one_and_not_above():
    everyone = np.ones(6, dtype=bool)
    for step, gamma, z, expected in (
        (0.0, 1.0, everyone, [1] * 6),
        (0.0, 1.01, everyone, [0] * 6),
        (np.log(3.0), 2.0, everyone, np.arange(6) / 5),
        (np.log(3.0), 4.0, everyone, [0, 0, 0.2, 0.4, 0.6, 0.8]),
        (np.log(3.0), 2.0, np.arange(6) < 2, [0, 1, 1, 1, 1, 1]),
    ):
        np.testing.assert_allclose(rmia.share_dominated(step * np.arange(6)[None], z, gamma=gamma), [expected])


def test_what_the_attack_refuses(rng):
    y = np.zeros(5, dtype=int)
    member = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], dtype=bool)
    pool = logits_of(rng.normal(size=(2, 5)), y)
    audited = logits_of(rng.normal(size=(1, 5)), y)
    shadow = Shadow(pool, y, member, ~member)

    run(rmia, audited, y, shadow, mode="offline", beta=0.5)
    for logits, options, message in (
        (audited, {"beta": 0.5}, "sample 4 has 0 shadow models as member"),
        (audited, {"mode": "offline", "beta": 0.5, "minimum": 2}, "fewer than 2"),
        # learning beta leaves one model out, and one non-member model is all there is
        (audited, {"mode": "offline"}, "sample 0 has 0 other shadow models as non-member"),
        (audited, {"z": "population", "beta": 0.5}, "no samples to compare"),
        (pool[:1], {"mode": "offline", "beta": 0.5}, "also a shadow model"),
    ):
        with pytest.raises(ValueError, match=message):
            run(rmia, logits, y, shadow, **options)
