"""ε, its points and its bounds against closed forms, brute force and randomised response."""

import math

import numpy as np
import pytest
from scipy.stats import beta
from unlearning_audit.metrics import _epsilon
from unlearning_audit.metrics._epsilon import bound_table, epsilon_bounds, epsilon_table, epsilons, points

from epsilon_cases import DELTA, brute_force, equation_1, published_grid

#: Cases in which the best set of scores begins or ends with one of negatives alone, because of the box or because of
#: rules that equation (1) discards.
ENDS_WITH_NEGATIVES = [
    ([-1, 1.75, 0], [3.75, 2.75, 3.75, 1.25, 3.75]),
    ([1, 2, -2, -3], [12, -2, -3, 4.5, -1.5]),
    ([12, 0, 7, -1, 7, -1, 7], [-2, 4]),
    ([-2, 3.75, 5.75, 11.25, -11], [4.5, 5.5, -11.5, 7.25, -15.25, 10.25]),
    ([4, -6, -3, 6, -5, 0, 1], [-1, -1, 7, 1, 2, 1, 0]),
    ([-7.5, 1, 23, 33, -32.5, -13.5, -3.5], [3, 5, 5.5, -3, 25.5, -9.5]),
    ([2, 4, 0, -4, -2, 0, 3], [1, -1, 1, -1, 0, -1, 0]),
]


def lattice(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Few scores on a coarse lattice, in which ties, equal medians, equal ranges and edges of the box are common."""
    (n, m), width = rng.integers(2, 7, 2), rng.integers(1, 9, 2)
    step = rng.choice([0.25, 0.5, 1.0])
    return rng.integers(0, width[0] + 1, n) * step, (rng.integers(0, width[1] + 1, m) + rng.integers(0, 4)) * step


def scores(rng: np.random.Generator, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Phi of all scales, shifts and shapes."""
    (n, m), scale = rng.integers(3, largest, 2), 10 ** rng.uniform(-1.5, 1.1)
    u = rng.normal(size=n) * scale * rng.choice([0.3, 1, 3])
    return u, (rng.normal(size=m) + rng.choice([0, 0.5, 1, 3])) * scale


def epsilon_of(u, r, **options) -> float:
    """ε of a single sample."""
    return epsilons(unlearned=np.array(u)[:, None], retrained=np.array(r)[:, None], **options)[0]


def test_exact_equals_brute_force():
    rng = np.random.default_rng(0)
    cases = [scores(rng, 9) for _ in range(300)] + [scores(rng, 40) for _ in range(3)]
    cases += [lattice(rng) for _ in range(300)] + ENDS_WITH_NEGATIVES + [case[::-1] for case in ENDS_WITH_NEGATIVES]
    spreads = [sorted(map(np.ptp, case)) for case in cases]
    cases = [case for case, (narrow, wide) in zip(cases, spreads, strict=True) if narrow > 0.01 * wide]
    actual = [epsilon_of(*case) for case in cases]
    np.testing.assert_allclose(actual, [brute_force(*map(np.array, case)) for case in cases], atol=1e-12)


def test_every_sample_is_read_by_itself():
    rng = np.random.default_rng(1)
    u, r = rng.normal(size=(7, 40)), rng.normal(size=(9, 40)) * rng.uniform(0.5, 2, 40) + rng.normal(size=40)
    for rule in ("exact", "grid"):
        alone = [epsilon_of(*case, rule=rule) for case in zip(u.T, r.T, strict=True)]
        np.testing.assert_array_equal(epsilons(unlearned=u, retrained=r, rule=rule), alone)


def test_grid_equals_the_published_thresholds():
    rng = np.random.default_rng(1)
    for u, r in [*(scores(rng, 15) for _ in range(5)), *(lattice(rng) for _ in range(3))]:
        if min(np.ptp(u), np.ptp(r)) >= 0.01 * max(np.ptp(u), np.ptp(r)) > 0:
            assert epsilon_of(u, r, rule="grid") == pytest.approx(published_grid(u, r), abs=1e-12)


X = np.random.default_rng(3).normal(size=50)
#: One model on the wrong side of a perfect cut: FPR = 1/50 and FNR = 1/50 is the best cut left.
LEFT, RIGHT = np.r_[np.arange(49.0), 49.6], np.r_[48.5, np.arange(1, 50) + 49.5]


@pytest.mark.parametrize(
    ("u", "r", "options", "epsilon"),
    [
        (X + 100, X, {}, 50), (X, X[::-1], {}, 0), (X + 100, X, {"rule": "grid"}, 50),
        (X, X[::-1], {"rule": "grid"}, 0), ([2, 2], [2, 2], {}, 0), ([2, 2], [3, 3], {}, 50),
        (RIGHT, LEFT, {}, math.log((1 - DELTA - 0.02) / 0.02)),
        # 1 of 100 is no less than a hundredth; scores of 1 or more are 2 of the 3 and 1 of the 2
        ([0, 1], [0, 50, 100], {}, math.log((1 - DELTA - 1 / 2) / (1 / 3))),
        ([0, 0.99], [0, 50, 100], {}, 50), ([0, 0.99], [0, 50, 100], {"cap": 7.0}, 7),
        # two of the three positives need one false positive, or equation (1) discards them: it is the next one below,
        # if the set is no wider than the range by more than the buffer
        *(
            ([0, 1, 2], [-10, -9, below, 2, 2, 7, 10], {}, math.log(truth * (2 / 3 - DELTA)))
            for below, truth in ((-2.5, 7), (-3, 7), (-3.5, 3.5))
        ),
    ],
)  # fmt: skip
def test_closed_forms(u, r, options, epsilon):
    assert epsilon_of(u, r, **options) == pytest.approx(epsilon, rel=1e-12)


def test_bad_phi_is_refused():
    x = np.zeros((4, 3))
    for u, r in ((x[:1], x), (x[:, :0], x[:, :0]), (x + np.nan, x)):
        with pytest.raises(ValueError, match=r"at least two|NaN or infinite"):
            epsilons(unlearned=u, retrained=r)


def test_points_are_the_published_bins():
    values = np.array([0.0, 0.49, 0.5, 1.0, 1.5, 1.99, 6.0, 6.49, 7.0, 50.0, np.inf])
    expected = [1, 1, 0.5, 0.25, 0.125, 0.125, 2.0**-12, 2.0**-12, 0, 0, 0]
    np.testing.assert_array_equal(points(values, models=512), expected)
    # ⌈ln(N − 1)⌉: two bins for N = 3, none for N = 2; two of width 1 for N = 4
    np.testing.assert_array_equal(points([0.2, 0.7, 1.0], models=3), [1, 0.5, 0])
    np.testing.assert_array_equal(points([0.2], models=2), [0])
    np.testing.assert_array_equal(points([0.0, 0.99, 1, 2], models=4, width=1.0), [1, 1, 0.5, 0])
    # 13 bins as printed or 14 as ⌈ln(N − 1)⌉ has it: no finite ε tells them apart
    table = epsilon_table(512, 512, DELTA)
    assert table[np.isfinite(table)].max() < 6.5


def test_the_table_of_bounds_holds_both_rates_at_their_upper_limits():
    def upper(k: int, n: int) -> float:
        return 1.0 if k == n else beta.ppf(0.8, k + 1, n - k)

    expected = [[equation_1(upper(fp, 12), upper(9 - tp, 9), 0.05) for fp in range(13)] for tp in range(10)]
    table = bound_table(9, 12, 0.05, confidence=0.6)
    np.testing.assert_allclose(table, np.maximum(np.nan_to_num(expected), 0), atol=1e-12)
    assert (table > 0).sum() > 20


def test_the_interval_of_a_bound_is_the_best_of_all_and_ends_midway_or_is_open():
    rng = np.random.default_rng(4)
    for _ in range(60):
        sides = lattice(rng)
        table, t = bound_table(*map(len, sides), 1e-5, 0.5), np.unique(np.concatenate(sides))
        spans = {(low, high): [((low <= side) & (side <= high)).sum() for side in sides] for low in t for high in t}
        actual, low, high = _epsilon._best_interval(*sides, 1e-5, 0.5)
        assert actual == max(table[*counts] for counts in spans.values())
        assert actual == table[*[((low <= side) & (side <= high)).sum() for side in sides]]
    for negative, ends in (([0, 1, 7], (2, 6)), ([0, 1, 1], (2, np.inf)), ([7, 9, 8], (-np.inf, 6))):
        actual = _epsilon._best_interval(np.array([3.0, 4, 5]), np.array(negative, float), DELTA, 0.3)
        assert actual == (bound_table(3, 3, DELTA, 0.3)[3, 0], *ends)


LOW, HIGH, AROUND = [0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15], [0, 1, 2, 20, 21, 22]


@pytest.mark.parametrize(
    ("halves", "counts"),
    [
        ((HIGH, HIGH, LOW, LOW), (6, 0)),
        # 7.5, midway, belongs to the rule: an unlearned model there is found, a retrained one there is a false alarm
        ((HIGH, [7.5, *HIGH[1:]], LOW, LOW), (6, 0)), ((HIGH, HIGH, LOW, [7.5, *LOW[1:]]), (6, 1)),
        ((LOW, [7.5, *LOW[1:]], HIGH, HIGH), (6, 0)), ((LOW, LOW, HIGH, [7.5, *HIGH[1:]]), (6, 1)),
        # a rule that says "retrained": they lie between the unlearned ones, and one of them does not on the other half
        ((AROUND, AROUND, HIGH, [30, *HIGH[1:]]), (5, 0)),
        # models that the choice cannot tell apart give no rule, whatever the other halves say
        ((LOW, HIGH, LOW, LOW), (0, 0)),
    ],
)  # fmt: skip
def test_a_bound_reads_the_chosen_rule_on_the_other_halves(halves, counts):
    u, u_test, r, r_test = (np.array(half, float)[:, None] for half in halves)
    (bound,) = epsilon_bounds((u, u_test), (r, r_test), 0.9, DELTA)
    assert bound == bound_table(6, 6, DELTA, 0.9)[counts]


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
def test_bound_holds_at_its_confidence(epsilon):
    # phi = ±1 by randomised response has exactly this ε; a little noise keeps thresholds apart from ties
    rng = np.random.default_rng(6)
    samples, models, confidence = 800, 60, 0.9
    p = 1 / (1 + math.exp(-epsilon))
    signs = (np.where(rng.random((models, samples)) < rate, 1.0, -1.0) for rate in (p, 1 - p))
    u, r = (np.split(sign + 1e-3 * rng.normal(size=sign.shape), 2) for sign in signs)
    bounds = epsilon_bounds(u, r, confidence, DELTA)
    allowed = 1 - confidence
    assert (bounds > epsilon).mean() <= allowed + 3 * math.sqrt(allowed * confidence / samples)
    if epsilon == 2.0:
        assert np.median(bounds) > 0.5
