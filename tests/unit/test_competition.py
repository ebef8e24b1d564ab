"""ε, points, bounds and the final score against closed forms, brute force and simulations with known truth."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from unlearning import stats
from unlearning.metrics import _jackknife, competition
from unlearning.metrics._epsilon import epsilon_table, epsilons, points
from unlearning.metrics._epsilon_bound import bound_table, epsilon_bounds

DELTA = 1e-5


def equation_1(fpr: float, fnr: float) -> float:
    """Algorithm 1 of the document for one attack; NaN if it is discarded."""
    if fpr == 0 and fnr == 0:
        return math.inf
    if fpr == 0 or fnr == 0:
        return math.nan
    found = [math.log(1 - DELTA - a) - math.log(b) for a, b in ((fpr, fnr), (fnr, fpr)) if 1 - DELTA - a > 0]
    return max(found, default=math.nan)


def brute_force(u: np.ndarray, r: np.ndarray, buffer: float = 2.0) -> float:
    """The largest ε over all thresholds of the published box, one set of scores after the other."""
    positive, negative = (r, u) if np.median(r) > np.median(u) else (u, r)
    best = 0.0

    def consider(is_positive):
        nonlocal best
        value = equation_1(np.mean(is_positive(negative)), 1 - np.mean(is_positive(positive)))
        best = max(best, 0.0 if math.isnan(value) else value)

    t = np.unique(np.concatenate([u, r]))
    for cut in t:
        consider(lambda x, cut=cut: x >= cut)
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative = negative, positive
    width, top = np.ptp(positive), positive.max()
    for i in range(len(t)):
        for j in range(i, len(t)):
            left = (t[i - 1] if i else -np.inf), t[i]
            right = max(t[j], top - buffer), min(t[j + 1] if j + 1 < len(t) else np.inf, top + buffer)
            reach = right[0] - left[1], right[1] - left[0]
            if right[0] <= right[1] and reach[0] <= width + buffer + 1e-9 and reach[1] >= width - buffer - 1e-9:
                consider(lambda x, i=i, j=j: (t[i] <= x) & (x <= t[j]))
    return min(best, 50.0)


def published_grid(u: np.ndarray, r: np.ndarray) -> float:
    """The same on the published thresholds, every rate counted one threshold at a time."""
    positive, negative = (r, u) if np.median(r) > np.median(u) else (u, r)
    low, high = min(u.min(), r.min()), max(u.max(), r.max())
    t = np.linspace(low, high, math.ceil((high - low) * 100))[:, None]
    rates = [((negative >= t).mean(1), (positive < t).mean(1))]
    if np.ptp(positive) >= np.ptp(negative):
        positive, negative = negative, positive
    width, top = np.ptp(positive), positive.max() + 2
    start = positive.min() + width - 2
    for right in np.linspace(start, top, math.ceil((top - start) * 100)):
        left = np.linspace(right - width - 2, right - width + 2, 400)[:, None]
        hit = (left <= positive) & (positive <= right), (left <= negative) & (negative <= right)
        rates.append((hit[1].mean(1), (~hit[0]).mean(1)))
    found = {equation_1(*rate) for fpr, fnr in rates for rate in zip(fpr, fnr, strict=True)}
    return min(max(0.0, max((e for e in found if not math.isnan(e)), default=0.0)), 50.0)


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
    found = epsilons(unlearned=z + d / 2, retrained=z - d / 2)[0]
    assert at_zero <= found <= math.log(models - 1)


def test_exact_equals_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(400):
        u, r = random_case(rng, largest=9)
        if min(np.ptp(u), np.ptp(r)) < 0.01 * max(np.ptp(u), np.ptp(r)):
            continue
        assert epsilons(unlearned=u, retrained=r)[0] == pytest.approx(brute_force(u[:, 0], r[:, 0]), abs=1e-12)


def test_the_box_can_force_a_set_to_begin_with_a_negative():
    # wider than the box lets it be cut: one case of 15,000 where that set is the best one
    u = np.array([-7.09, -55.02, 7.34, 16.99, 21.95, 10.97, 5.69, -21.44, 7.13, -15.44])
    r = np.array([-14.12, -3.26, 9.71, 25.7, 19.43, -22.31, 3.21, 3.46, 5.26, 18.59])
    assert epsilons(unlearned=u[:, None], retrained=r[:, None])[0] == pytest.approx(brute_force(u, r), abs=1e-12)


def test_grid_equals_the_published_thresholds():
    rng = np.random.default_rng(1)
    for _ in range(6):
        u, r = random_case(rng, largest=15)
        if min(np.ptp(u), np.ptp(r)) >= 0.01 * max(np.ptp(u), np.ptp(r)):
            found = epsilons(unlearned=u, retrained=r, rule="grid")[0]
            assert found == pytest.approx(published_grid(u[:, 0], r[:, 0]), abs=1e-12)


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
    found = epsilons(unlearned=u, retrained=r)
    np.testing.assert_array_equal(found, epsilons(unlearned=r, retrained=u))
    np.testing.assert_array_equal(found, epsilons(unlearned=rng.permutation(u), retrained=r))
    np.testing.assert_array_equal(found, epsilons(unlearned=u + 64.0, retrained=r + 64.0))
    # every rate stays when each retrained model is counted twice: sizes may differ
    np.testing.assert_allclose(found, epsilons(unlearned=u, retrained=np.repeat(r, 2, axis=0)), rtol=1e-12)
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


def null_quality(models: int, sd: float, samples: int, rule: str = "exact", shift: float = 0.0) -> float:
    rng = np.random.default_rng(5)
    u, r = rng.normal(size=(2, models, samples)) * sd
    return points(epsilons(unlearned=u + shift * sd, retrained=r, rule=rule), models=models).mean()


def test_perfect_unlearning_scores_a_fifth():
    # .18 to .21 for any N when phi varies, in a simulation of its own; 2,000 samples err by .006
    for models, sd in ((32, 1.5), (64, 1.5), (64, 4.0)):
        assert 0.17 < null_quality(models, sd, 2000) < 0.215
    # and less when it hardly varies: .058 exact, .085 on the grid at N = 256 (errors .006 here, .01 there)
    assert 0.035 < null_quality(256, 0.3, 400) < 0.08
    assert 0.06 < null_quality(256, 0.3, 150, rule="grid") < 0.125
    # a shift of one sd: .018 to .020 at N = 256
    assert 0.012 < null_quality(256, 1.5, 400, shift=1.0) < 0.03


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


def crossed_effects(rng, models: int, samples: int, sd: tuple[float, float, float]) -> np.ndarray:
    """a_m + b_s + e_ms, float64 [models, samples]."""
    of_models, of_samples, of_both = (
        s * rng.normal(size=shape) for s, shape in zip(sd, ((models, 1), (1, samples), (models, samples)), strict=True)
    )
    return of_models + of_samples + of_both


@pytest.mark.parametrize("sd", [(1.0, 0.5, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, 1.0)])
def test_jackknife_finds_the_variance_of_crossed_effects(sd):
    rng = np.random.default_rng(8)
    models, samples, groups = 32, 25, 16
    truth = sd[0] ** 2 / models + sd[1] ** 2 / samples + sd[2] ** 2 / (models * samples)
    group = _jackknife.groups_of(models, groups=groups)
    widths, hits, repeats = [], 0, 400
    for _ in range(repeats):
        x = crossed_effects(rng, models, samples, sd)
        means = np.stack([x[group != g].mean(axis=0) for g in range(-1, groups)])
        found = _jackknife.estimate(per_sample=means[:, None], combine=lambda m: m, n=samples)
        assert found.value == pytest.approx(x.mean(), abs=1e-12)
        widths.append((found.high - found.low) ** 2)
        hits += found.low <= 0 <= found.high
    # the interval is ±t·√V with t between 1.96 and 2.2 here
    assert 0.85 < np.mean(widths) / (4 * 2.06**2 * truth) < 1.35
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)


def test_jackknife_of_a_ratio_and_of_numbers_without_samples():
    rng = np.random.default_rng(9)
    models, samples, groups = 64, 400, 16
    group = _jackknife.groups_of(models, groups=groups)
    hits, repeats = 0, 200
    for _ in range(repeats):
        x, y = (5 + crossed_effects(rng, models, samples, (1, 1, 1)) for _ in range(2))
        a = 2 + 0.1 * rng.normal(size=models)
        kept = [group != g for g in range(-1, groups)]
        found = _jackknife.estimate(
            per_sample=np.stack([[x[k].mean(0), y[k].mean(0)] for k in kept]),
            per_model=np.array([[a[k].mean()] for k in kept]),
            combine=lambda x, y, a: a * x / y,
            n=samples,
        )
        hits += found.low <= 2 <= found.high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats) < hits / repeats


def test_interval_of_forgetting_quality_covers():
    # what F estimates is its own mean for this number of models, taken here from many draws
    models, samples, repeats = 16, 16, 80
    rng = np.random.default_rng(10)
    truth = null_quality(models, 1.5, 6000)
    options = competition.Options(groups=8)
    hits = 0
    for _ in range(repeats):
        u, r = (1.5 * crossed_effects(rng, models, samples, (0.5, 0, math.sqrt(0.75))) for _ in range(2))
        eps = competition._replicated(competition._epsilons(options), u, r, options)
        found = competition._mean(points(eps, models=models), "", high=1.0)
        hits += found.low <= truth <= found.high
    assert hits / repeats > 0.95 - 3 * math.sqrt(0.95 * 0.05 / repeats)


def population(rng, models: int, samples: int, shift: float = 0.0, accuracy: float = 0.9, seconds: float = 100.0):
    return competition.Models(
        phi=1.5 * rng.normal(size=(models, samples)) + shift,
        retain_accuracy=rng.normal(accuracy, 0.005, models),
        test_accuracy=rng.normal(accuracy - 0.1, 0.005, models),
        seconds=np.full(models, seconds),
    )


def by_metric(rows: list[dict]) -> dict[str, dict]:
    assert len({r["metric"] for r in rows}) == len(rows)
    return {r["metric"]: r for r in rows}


@pytest.mark.parametrize("second", [False, True])
def test_rows_of_a_perfect_method(second):
    rng = np.random.default_rng(11)
    unlearned, retrained = population(rng, 48, 100, seconds=10.0), population(rng, 48, 100)
    independent = population(rng, 40, 100) if second else None
    rows = by_metric(
        competition.evaluate(
            unlearned=unlearned,
            retrained=retrained,
            independent=independent,
            options=competition.Options(groups=12),
            rng=np.random.default_rng(0),
        )
    )
    ratio = rows["forgetting_quality_over_null"]
    assert ratio["ci_low"] < 1 < ratio["ci_high"]
    assert ratio["ci_high"] - ratio["ci_low"] < 1
    assert rows["forgetting_quality_null"]["setting"] == f"rule=exact;models={40 if second else 24}"
    quality = points(epsilons(unlearned=unlearned.phi, retrained=retrained.phi), models=48).mean()
    assert rows["forgetting_quality"]["value"] == pytest.approx(quality)
    ra = unlearned.retain_accuracy.mean() / retrained.retain_accuracy.mean()
    ta = unlearned.test_accuracy.mean() / retrained.test_accuracy.mean()
    assert rows["score"]["value"] == pytest.approx(quality * ra * ta)
    assert rows["retain_accuracy_ratio"]["ci_low"] < 1 < rows["retain_accuracy_ratio"]["ci_high"]
    assert rows["time_ratio"]["value"] == pytest.approx(0.1)
    assert rows["score"]["note"] == ""
    assert rows["epsilon_lower_bound_max"]["value"] < 0.3
    for r in rows.values():
        assert r["ci_low"] <= r["value"] <= r["ci_high"]
        assert r["n"] > 0


def test_rows_of_a_bad_and_slow_method():
    rng = np.random.default_rng(12)
    rows = by_metric(
        competition.evaluate(
            unlearned=population(rng, 32, 40, shift=4.5, accuracy=0.8, seconds=50.0),
            retrained=population(rng, 32, 40),
            options=competition.Options(),
            rng=np.random.default_rng(0),
        )
    )
    assert rows["forgetting_quality_over_null"]["ci_high"] < 0.2
    assert rows["retain_accuracy_ratio"]["value"] == pytest.approx(8 / 9, abs=0.01)
    assert "slower than 20% of the retraining time" in rows["score"]["note"]
    assert rows["epsilon_lower_bound_mean"]["value"] > 0.2


def test_rows_without_what_they_need_are_empty_with_a_reason():
    rng = np.random.default_rng(13)
    unlearned, retrained = (competition.Models(phi=rng.normal(size=(6, 5))) for _ in range(2))
    rows = by_metric(
        competition.evaluate(
            unlearned=unlearned, retrained=retrained, options=competition.Options(), rng=np.random.default_rng(0)
        )
    )
    for name, reason in {
        "forgetting_quality_null": "halves need 8 models",
        "forgetting_quality_over_null": "halves need 8 models",
        "retain_accuracy_ratio": "no retain accuracy",
        "time_ratio": "no times",
        "score": "needs retain and test accuracy",
    }.items():
        assert math.isnan(rows[name]["value"])
        assert reason in rows[name]["note"]
    assert rows["forgetting_quality"]["ci_low"] >= 0


def test_two_models_give_intervals_over_samples_only():
    rng = np.random.default_rng(14)
    u, r = rng.normal(size=(2, 2, 40))
    rows = by_metric(
        competition.evaluate(
            unlearned=competition.Models(phi=u),
            retrained=competition.Models(phi=r),
            options=competition.Options(),
            rng=np.random.default_rng(0),
        )
    )
    assert "too few models for an interval over models" in rows["epsilon_mean"]["note"]
    assert math.isnan(rows["epsilon_lower_bound_mean"]["value"])


def test_evaluation_is_deterministic_and_ignores_the_order_of_samples():
    rng = np.random.default_rng(15)
    u, r = rng.normal(size=(2, 20, 30))
    order = rng.permutation(30)

    def rows(u, r):
        return competition.evaluate(
            unlearned=competition.Models(phi=u),
            retrained=competition.Models(phi=r),
            options=competition.Options(groups=4),
            rng=np.random.default_rng(3),
        )

    one, other = rows(u, r), rows(u[:, order], r[:, order])
    for a, b in zip(one, other, strict=True):
        assert a["metric"] == b["metric"]
        np.testing.assert_allclose(
            [a[k] for k in ("value", "ci_low", "ci_high")], [b[k] for k in ("value", "ci_low", "ci_high")], rtol=1e-9
        )


def test_share_at_the_cap_is_a_rate():
    rng = np.random.default_rng(16)
    u, r = rng.normal(size=(2, 20, 30))
    u[:, :12] += 100
    rows = by_metric(
        competition.evaluate(
            unlearned=competition.Models(phi=u),
            retrained=competition.Models(phi=r),
            options=competition.Options(groups=2, splits=1),
            rng=np.random.default_rng(0),
        )
    )
    expected = stats.clopper_pearson(successes=12, n=30)
    assert (rows["epsilon_at_cap_share"]["value"], rows["epsilon_at_cap_share"]["ci_low"]) == (0.4, expected.low)
