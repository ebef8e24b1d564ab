"""ε, its points and its bounds against closed forms, brute force and randomised response."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from unlearning_audit.metrics import _epsilon
from unlearning_audit.metrics._epsilon import epsilon_table, epsilons, points
from unlearning_audit.metrics._epsilon_bound import bound_table, epsilon_bounds

from epsilon_cases import DELTA, brute_force, published_grid


def random_case(rng: np.random.Generator, largest: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """phi of all scales, shifts and shapes, with ties in a third of the cases: [models, 1] each."""
    n, m = rng.integers(3, largest, 2)
    scale = 10 ** rng.uniform(-1.5, 1.1)
    u = rng.normal(size=(n, 1)) * scale * rng.choice([0.3, 1, 3])
    r = (rng.normal(size=(m, 1)) + rng.choice([0, 0.5, 1, 3])) * scale
    if rng.random() < 1 / 3:
        u, r = np.round(u / scale * 2) * scale / 2, np.round(r / scale * 2) * scale / 2
    return u, r


def test_table_holds_equation_1_for_two_gaussians_at_a_fixed_threshold():
    models = 1000
    table = epsilon_table(models, models, DELTA).reshape(models + 1, models + 1)
    for shift, t in ((1.0, 0.5), (1.0, 2.0), (3.0, 1.0)):
        fpr, fnr = ndtr(-t), ndtr(t - shift)
        truth = max(math.log((1 - DELTA - fpr) / fnr), math.log((1 - DELTA - fnr) / fpr))
        tp, fp = round((1 - fnr) * models), round(fpr * models)
        # one count more or less changes ε by about 1/(count) of the rarer side
        assert abs(table[tp, fp] - truth) < 1.1 * (0.5 / min(models * fpr, models * fnr) + 0.5 / (models * 0.5))
    assert table[models, 0] == np.inf
    assert (table[:models, 0] == -np.inf).all()
    assert (table[models, 1:] == -np.inf).all()
    assert table[1:models, 1:].min() == 0.0


def test_symmetric_gaussians_separated_by_quantiles():
    # phi at the quantiles of N(±d/2, 1): at the cut 0 both rates are known, and ε may only exceed that attack
    models, d = 400, 2.0
    from scipy.special import ndtri

    z = ndtri((np.arange(models) + 0.5) / models)[:, None]
    rate = np.floor(models * ndtr(-d / 2) + 0.5) / models
    at_zero = math.log((1 - DELTA - rate) / rate)
    epsilon = epsilons(unlearned=z + d / 2, retrained=z - d / 2)[0]
    assert at_zero <= epsilon <= math.log(models - 1)


@pytest.mark.parametrize("threshold", [0, 24], ids=["one by one", "at once"])
def test_exact_equals_brute_force(threshold, monkeypatch):
    monkeypatch.setattr(_epsilon, "MOST_AT_ONCE", threshold)
    rng = np.random.default_rng(0)
    for _ in range(400):
        u, r = random_case(rng, largest=9)
        if min(np.ptp(u), np.ptp(r)) < 0.01 * max(np.ptp(u), np.ptp(r)):
            continue
        assert epsilons(unlearned=u, retrained=r)[0] == pytest.approx(brute_force(u[:, 0], r[:, 0]), abs=1e-12)


def test_grid_equals_the_published_thresholds():
    rng = np.random.default_rng(1)
    for _ in range(6):
        u, r = random_case(rng, largest=15)
        if min(np.ptp(u), np.ptp(r)) >= 0.01 * max(np.ptp(u), np.ptp(r)):
            actual = epsilons(unlearned=u, retrained=r, rule="grid")[0]
            assert actual == pytest.approx(published_grid(u[:, 0], r[:, 0]), abs=1e-12)


@pytest.mark.slow
def test_exact_is_never_below_the_grid():
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(600):
        u, r = random_case(rng)
        pairs.append([epsilons(unlearned=u, retrained=r, rule=rule)[0] for rule in ("exact", "grid")])
    exact, grid = np.array(pairs).T
    assert (exact >= grid - 1e-12).all()
    assert (exact > grid + 1e-6).sum() > 20  # the grid misses thresholds where phi varies little


def test_extremes():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 1))
    far = x + 100
    for rule in ("exact", "grid"):
        assert epsilons(unlearned=far, retrained=x, rule=rule)[0] == 50.0
        assert epsilons(unlearned=x, retrained=x[::-1], rule=rule)[0] == 0.0
        assert epsilons(unlearned=x * 0.005 + x.mean(), retrained=x, rule=rule)[0] == 50.0
        assert epsilons(unlearned=x * 0 + 1, retrained=x * 0 + 1, rule=rule)[0] == 0.0
        assert epsilons(unlearned=x * 0 + 1, retrained=x * 0 + 2, rule=rule)[0] == 50.0
    # one model on the wrong side of a perfect cut: FPR = 1/50 and FNR = 1/50 is the best cut left
    left, right = np.arange(50.0)[:, None], np.arange(50.0)[:, None] + 49.5
    left[-1], right[0] = 49.6, 48.5
    assert epsilons(unlearned=right, retrained=left)[0] == pytest.approx(math.log((1 - DELTA - 0.02) / 0.02))


def test_invariances():
    rng = np.random.default_rng(4)
    u, r = rng.normal(size=(40, 30)), rng.normal(size=(40, 30)) * 1.3 + 0.5
    base = epsilons(unlearned=u, retrained=r)
    np.testing.assert_array_equal(base, epsilons(unlearned=r, retrained=u))
    np.testing.assert_array_equal(base, epsilons(unlearned=rng.permutation(u), retrained=r))
    np.testing.assert_array_equal(base, epsilons(unlearned=u + 64.0, retrained=r + 64.0))
    # every rate stays when each retrained model is counted twice: sizes may differ
    np.testing.assert_allclose(base, epsilons(unlearned=u, retrained=np.repeat(r, 2, axis=0)), rtol=1e-12)
    # the box is absolute: where it does not bind ε does not depend on the scale, where it binds it falls
    free = epsilons(unlearned=u * 0.1, retrained=r * 0.1)
    np.testing.assert_array_equal(free, epsilons(unlearned=u * 0.01, retrained=r * 0.01))
    assert (epsilons(unlearned=u * 30, retrained=r * 30) <= free).all()


def test_bad_phi_is_refused():
    x = np.zeros((4, 3))
    for u, r in ((x, x[:, :2]), (x[:1], x), (x[:, :0], x[:, :0]), (x[0], x)):
        with pytest.raises(ValueError, match=r"phi of unlearned|at least two"):
            epsilons(unlearned=u, retrained=r)
    with pytest.raises(ValueError, match="NaN or infinite"):
        epsilons(unlearned=x + np.nan, retrained=x)
    with pytest.raises(ValueError, match="exact or grid"):
        epsilons(unlearned=x, retrained=x, rule="fine")


def test_points_are_the_published_bins():
    values = np.array([0.0, 0.49, 0.5, 1.0, 1.5, 1.99, 6.0, 6.49, 7.0, 50.0, np.inf])
    expected = [1, 1, 0.5, 0.25, 0.125, 0.125, 2.0**-12, 2.0**-12, 0, 0, 0]
    np.testing.assert_array_equal(points(values, models=512), expected)
    # ⌈ln(N − 1)⌉: two bins for N = 3, none for N = 2
    np.testing.assert_array_equal(points([0.2, 0.7, 1.0], models=3), [1, 0.5, 0])
    np.testing.assert_array_equal(points([0.2], models=2), [0])
    # 13 bins as printed or 14 as ⌈ln(N − 1)⌉ has it: no finite ε tells them apart
    table = epsilon_table(512, 512, DELTA)
    assert table[np.isfinite(table)].max() < 6.5


def test_bound_of_perfect_separation_is_closed_form():
    n, confidence = 20, 0.9
    x = np.arange(2.0 * n)[:, None]
    halves = {"unlearned": (x[:n] + 100, x[n:] + 100), "retrained": (x[:n], x[n:])}
    upper = 1 - (0.05) ** (1 / n)  # Clopper–Pearson for no event, half of 1 − confidence
    truth = math.log((1 - DELTA - upper) / upper)
    assert epsilon_bounds(**halves, confidence=confidence)[0] == pytest.approx(truth, rel=1e-9)
    assert epsilon_bounds(**halves, confidence=0.99)[0] < truth
    table = bound_table(n, n, DELTA, confidence)
    assert (np.diff(table, axis=0) >= 0)[:, 0].all()
    assert (np.diff(table, axis=1) <= 0)[-1].all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
def test_bound_holds_at_its_confidence(epsilon):
    # phi = ±1 by randomised response has exactly this ε; a little noise keeps thresholds apart from ties
    rng = np.random.default_rng(6)
    samples, models, confidence = 800, 60, 0.9
    p = 1 / (1 + math.exp(-epsilon))

    def phi(rate):
        return np.where(rng.random((models, samples)) < rate, 1.0, -1.0) + 1e-3 * rng.normal(size=(models, samples))

    u, r = phi(p), phi(1 - p)
    half = models // 2
    bounds = epsilon_bounds(unlearned=(u[:half], u[half:]), retrained=(r[:half], r[half:]), confidence=confidence)
    allowed = 1 - confidence
    assert (bounds > epsilon).mean() <= allowed + 3 * math.sqrt(allowed * confidence / samples)
    if epsilon == 2.0:
        assert np.median(bounds) > 0.5


def test_bound_needs_a_rule_chosen_elsewhere():
    # choosing and bounding on the same models would call noise unlike: the two halves must not be the same
    rng = np.random.default_rng(7)
    u, r = rng.normal(size=(2, 40, 400))
    fair = epsilon_bounds(unlearned=(u[:20], u[20:]), retrained=(r[:20], r[20:]), confidence=0.6)
    unfair = epsilon_bounds(unlearned=(u[:20], u[:20]), retrained=(r[:20], r[:20]), confidence=0.6)
    assert (fair > 0).mean() < 0.4
    assert (unfair > 0).mean() > 0.6
    with pytest.raises(ValueError, match="between 0 and 1"):
        epsilon_bounds(unlearned=(u, u), retrained=(r, r), confidence=95)
