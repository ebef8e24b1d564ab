"""ε where every number can be counted: few models, whole scores, ties, and scores on the edge of the box."""

import math

import numpy as np
import pytest
from scipy.stats import beta
from unlearning_audit.metrics import _epsilon, _epsilon_bound
from unlearning_audit.metrics._epsilon import epsilon_table, epsilons, points
from unlearning_audit.metrics._epsilon_bound import bound_table, epsilon_bounds

from epsilon_cases import DELTA, brute_force, equation_1, published_grid

#: Cases in which the best set of scores begins or ends with one of negatives alone, because of the box or because of
#: rules that equation (1) discards; found at random, at least two for each reason.
BEGIN_OR_END_WITH_NEGATIVES = [
    ([-1, 1.75, 0], [3.75, 2.75, 3.75, 1.25, 3.75]),
    ([1, 2, -2, -3], [12, -2, -3, 4.5, -1.5]),
    ([12, 0, 7, -1, 7, -1, 7], [-2, 4]),
    ([0, 2, 0, 1], [1.5, 1.5, 6.5]),
    ([3, 2], [4, 2, 2, -5, 5, 1]),
    ([3, -1, -1, 1, -3], [0, -1, -1, 0, -1]),
    ([-2, 3.75, 5.75, 11.25, -11], [4.5, 5.5, -11.5, 7.25, -15.25, 10.25]),
    ([2.5, 4, 1, -2.5, -5, -2.5], [-1.5, 5, 1.5, -2, 0, 0.5]),
    ([4, -6, -3, 6, -5, 0, 1], [-1, -1, 7, 1, 2, 1, 0]),
    ([-12, -8.5, 3, -5.5, 16.25, -12], [-3.25, -9.75, 11, -3.5, 4.25]),
    ([-12, -14, -41, 34, -2, 11], [28, 38, 6, -12, 25]),
    ([-7.5, 1, 23, 33, -32.5, -13.5, -3.5], [3, 5, 5.5, -3, 25.5, -9.5]),
    ([0.5, 4, 8, 3], [8, 6, 19]),
    ([0, -1, 0, 2, -0.5], [0, 1, 0.75, 0.75]),
    ([3, 1.5], [2.5, 0, 2.5, 1]),
    ([2, 4, 0, -4, -2, 0, 3], [1, -1, 1, -1, 0, -1, 0]),
    ([-8, -20, 1.5, 5, 5.5], [0.75, 9.25, 11.5]),
    ([-5, 10, 3, -3, 11, -13], [9, 5, 14, -5]),
]


def whole_scores(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Few scores on a coarse lattice, in which ties, equal medians, equal ranges and edges of the box are common."""
    n, m = rng.integers(2, 7, 2)
    width = rng.integers(1, 9, 2)
    step = rng.choice([0.25, 0.5, 1.0])
    return rng.integers(0, width[0] + 1, n) * step, (rng.integers(0, width[1] + 1, m) + rng.integers(0, 4)) * step


def epsilon_of(u, r, **options) -> float:
    """ε of a single sample."""
    return epsilons(unlearned=np.array(u)[:, None], retrained=np.array(r)[:, None], **options)[0]


def test_the_table_holds_equation_1_of_unequal_numbers_of_models():
    table = epsilon_table(2, 3, 0.1).reshape(3, 4)
    # one of two positives and one of three negatives: (.9 − ½)/⅓ is more than (.9 − ⅓)/½; elsewhere both are below 1
    expected = [[-np.inf, 0, 0, 0], [-np.inf, math.log(1.2), 0, 0], [np.inf, -np.inf, -np.inf, -np.inf]]
    np.testing.assert_allclose(table, expected, rtol=1e-12)


@pytest.mark.parametrize("threshold", [0, 24], ids=["one by one", "at once"])
def test_sets_that_begin_or_end_with_negatives_are_tried(threshold, monkeypatch):
    monkeypatch.setattr(_epsilon, "MOST_AT_ONCE", threshold)
    for u, r in BEGIN_OR_END_WITH_NEGATIVES:
        for a, b in ((u, r), (r, u)):
            assert epsilon_of(a, b) == pytest.approx(brute_force(np.array(a), np.array(b)), abs=1e-12)


@pytest.mark.parametrize("threshold", [0, 24], ids=["one by one", "at once"])
def test_a_set_may_be_wider_than_the_range_by_the_buffer(threshold, monkeypatch):
    # two of the three positives need one false positive, or equation (1) discards them: it is the next one below
    monkeypatch.setattr(_epsilon, "MOST_AT_ONCE", threshold)
    for below, truth in ((-2.5, 7 * (2 / 3 - DELTA)), (-3, 7 * (2 / 3 - DELTA)), (-3.5, 3.5 * (2 / 3 - DELTA))):
        assert epsilon_of([0, 1, 2], [-10, -9, below, 2, 2, 7, 10]) == pytest.approx(math.log(truth), rel=1e-12)


@pytest.mark.parametrize("threshold", [0, 24], ids=["one by one", "at once"])
def test_ties_and_edges_of_the_box_are_counted_in(threshold, monkeypatch):
    monkeypatch.setattr(_epsilon, "MOST_AT_ONCE", threshold)
    rng = np.random.default_rng(1)
    for _ in range(200):
        u, r = whole_scores(rng)
        if np.ptp(u) and np.ptp(r):
            assert epsilon_of(u, r) == pytest.approx(brute_force(u, r), abs=1e-12)


def test_the_grid_counts_ties_as_published():
    rng = np.random.default_rng(2)
    for _ in range(3):
        u, r = whole_scores(rng)
        if np.ptp(u) and np.ptp(r):
            assert epsilon_of(u, r, rule="grid") == pytest.approx(published_grid(u, r), abs=1e-12)


def test_ranges_are_separated_below_a_hundredth():
    # 1 of 100 is no less than a hundredth; scores of 1 or more are 2 of the 3 and 1 of the 2
    assert epsilon_of([0, 1], [0, 50, 100]) == pytest.approx(math.log((1 - DELTA - 1 / 2) / (1 / 3)), rel=1e-12)
    assert epsilon_of([0, 0.99], [0, 50, 100]) == 50
    assert epsilon_of([0, 0.99], [0, 50, 100], cap=7.0) == 7
    assert epsilon_of([2, 2], [2, 2]) == 0
    assert epsilon_of([2, 2], [3, 3]) == 50


def test_points_of_few_models_and_of_other_bins():
    np.testing.assert_array_equal(points([0.0, 0.5], models=2), [0, 0])  # ln 1 = 0: no bin
    np.testing.assert_array_equal(points([0.0, 0.99, 1, 2], models=4, width=1.0), [1, 1, 0.5, 0])  # ⌈ln 3⌉ = 2


def test_the_table_of_bounds_holds_both_rates_at_their_upper_limits():
    positives, negatives, delta, confidence = 9, 12, 0.05, 0.6
    table = bound_table(positives, negatives, delta, confidence)

    def upper(k: int, n: int) -> float:
        return 1.0 if k == n else beta.ppf(0.8, k + 1, n - k)

    for tp in range(positives + 1):
        for fp in range(negatives + 1):
            fnr, fpr = upper(positives - tp, positives), upper(fp, negatives)
            expected = equation_1(fpr, fnr, delta)
            assert table[tp, fp] == pytest.approx(max(0.0, 0.0 if math.isnan(expected) else expected), abs=1e-12)
    assert (table > 0).sum() > 20


def test_the_interval_of_a_bound_is_the_best_of_all():
    rng = np.random.default_rng(4)
    delta, confidence = 1e-5, 0.5
    for _ in range(60):
        positive, negative = whole_scores(rng)
        table = bound_table(len(positive), len(negative), delta, confidence)
        t = np.unique(np.concatenate([positive, negative]))

        def value(low: float, high: float, sides=(positive, negative), table=table) -> float:
            return table[*(((low <= side) & (side <= high)).sum() for side in sides)]

        best = max(value(low, high) for low in t for high in t if low <= high)
        actual, low, high = _epsilon_bound._best_interval(positive, negative, delta, confidence)
        assert actual == best == value(low, high)
        assert not np.isin([low, high], t).any()


def test_an_interval_ends_midway_between_scores_or_is_open():
    for negative, ends in (([0, 1, 7], (2, 6)), ([0, 1, 1], (2, np.inf)), ([7, 9, 8], (-np.inf, 6))):
        actual = _epsilon_bound._best_interval(np.array([3.0, 4, 5]), np.array(negative, float), DELTA, 0.3)
        assert actual == (bound_table(3, 3, DELTA, 0.3)[3, 0], *ends)


def bound(*halves: list[float], confidence: float = 0.9) -> float:
    """The bound of a single sample, from its scores: unlearned to choose and to test, retrained to choose and test."""
    u, v, r, s = (np.array(half, float)[:, None] for half in halves)
    return epsilon_bounds(unlearned=(u, v), retrained=(r, s), confidence=confidence)[0]


def test_a_bound_reads_the_chosen_rule_on_the_other_halves():
    low, high = [0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]
    table = bound_table(6, 6, DELTA, 0.9)
    assert bound(high, high, low, low) == table[6, 0] > 0
    # 7.5, midway, belongs to the rule: one unlearned model there is found, one retrained model there is a false alarm
    assert bound(high, [7.5, *high[1:]], low, low) == table[6, 0]
    assert bound(high, high, low, [7.5, *low[1:]]) == table[6, 1] < table[6, 0]
    # above the retrained ones or below, and between them
    assert bound(low, [7.5, *low[1:]], high, high) == table[6, 0]
    assert bound(low, low, high, [7.5, *high[1:]]) == table[6, 1]
    # a rule that says "retrained": they are between the unlearned ones, and one of them is not on the other half
    around = [0, 1, 2, 20, 21, 22]
    assert bound(around, around, high, [30, *high[1:]]) == table[5, 0]
    # models that the choice cannot tell apart give no rule, whatever the other halves say
    assert bound([0, 1], [10, 11], [0, 1], [0, 1]) == 0


def test_a_confidence_lies_between_its_ends():
    for confidence in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            bound([0, 1], [0, 1], [2, 3], [2, 3], confidence=confidence)
    # the halves to test on are checked as those to choose on are
    with pytest.raises(ValueError, match="NaN or infinite"):
        bound([0, 1], [0, np.nan], [2, 3], [2, 3])
    with pytest.raises(ValueError, match="at least two"):
        bound([0, 1], [0, 1], [2, 3], [2])
