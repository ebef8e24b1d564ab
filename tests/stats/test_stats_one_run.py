"""One-run audit: exact size by enumeration of coins, bounds by hand, what is learned on half."""

import numpy as np
import pytest
from scipy import integrate, special, stats
from unlearning_audit.stats import one_run
from unlearning_audit.stats.one_run import Guesses

from stat_cases import at_most, three


def request(right, pairs, **how):
    return one_run.epsilon_request(guesses=Guesses(right, pairs, **how)).value


def replaced(right, pairs, delta=0.0, **how):
    return one_run.epsilon_replace(guesses=Guesses(right, pairs, **how), delta=delta).value


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("pairs", [1, 2, 5, 12])
def test_size_by_enumeration_of_all_coins(pairs, epsilon):
    """A model that knows no coin gets p ≤ α in at most α; bounds exceed the ε of the worst mechanism in at most α.

    The worst (ε, 0)-unlearning model multiplies the probability of every outcome by e^ε. The worst mechanism under
    replacement is randomised response.
    """
    right = np.arange(pairs + 1)
    chance = stats.binom.pmf(right, pairs, 0.5)
    assert chance @ [one_run.p_value(guesses=Guesses(w, pairs)) <= 0.05 for w in right] <= 0.05
    assert np.exp(epsilon) * (chance @ [request(w, pairs) > epsilon for w in right]) <= 0.05 + 1e-12
    response = stats.binom.pmf(right, pairs, special.expit(epsilon))
    assert response @ [replaced(w, pairs) > epsilon for w in right] <= 0.05 + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_mechanism_under_adding_and_removing_seldom_exceeds_its_epsilon(epsilon):
    """Randomised response whose two outputs both lie within e^ε of what neither record gives: right with 1 − e^−ε/2."""
    right = np.arange(1001)
    chance = stats.binom.pmf(right, 1000, 1 - np.exp(-epsilon) / 2)
    above = chance @ [one_run.epsilon_record(guesses=Guesses(w, 1000)).value > epsilon for w in right]
    assert 0.03 < above <= 0.05


def test_an_attack_that_abstains_seldom_exceeds_the_epsilon_of_a_mechanism_under_adding_and_removing():
    """Randomised response of each sample's presence: of pairs that do not tie, e^2ε are right for one that is wrong."""
    rng, epsilon = np.random.default_rng(0), 2.0
    bounds = []
    for told in rng.random((400, 1000, 2)) < special.expit(epsilon):  # whether the presence of each sample is told
        guesses = one_run.guess(forgotten=told[:, 0] * 1.0, heldout=1.0 - told[:, 1])
        bounds.append(one_run.epsilon_record(guesses=one_run.count(guesses=guesses)).value)
    assert np.mean(np.array(bounds) > epsilon) <= at_most(0.05, 400)
    assert np.median(bounds) > 0.8 * epsilon


def test_the_larger_score_is_called_forgotten_and_a_tie_abstains():
    forgotten, heldout = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 3.0]]), np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
    guesses = one_run.guess(forgotten=forgotten, heldout=heldout)
    np.testing.assert_array_equal(guesses, [[1, -1, 0], [0, 0, 0]])
    counts = [one_run.count(guesses=row) for row in guesses]
    assert counts == [Guesses(1, 2, ties=1), Guesses(0, 0, ties=3)]
    assert one_run.pooled(counts=[*counts, Guesses(3, 4)]) == Guesses(4, 6, ties=4, shares=(0.5, 0.75))
    for sides in ((np.array([np.nan, 1.0]), np.ones(2)), (np.ones(2), np.array([1.0, np.nan]))):
        with pytest.raises(ValueError, match="NaN"):
            one_run.guess(forgotten=sides[0], heldout=sides[1])


def test_where_all_pairs_abstain_nothing_is_shown():
    nothing = Guesses(0, 0, ties=100)
    assert one_run.p_value(guesses=nothing) == one_run.e_value(guesses=nothing) == 1
    assert request(0, 0) == replaced(0, 0) == 0
    share = one_run.right_share(guesses=nothing)
    np.testing.assert_equal((share.value, share.n, share.note), (np.nan, 0, "no pair has different scores"))
    assert np.isnan(one_run.detectable_share(pairs=0))


def test_tails_are_the_binomial_s_and_do_not_underflow():
    for right, pairs in ((0, 1), (1, 1), (2, 3), (80, 160), (110, 160)):
        tail = np.exp(one_run.log_tail(right=right, pairs=pairs))
        np.testing.assert_allclose(tail, stats.binom.sf(right - 1, pairs, 0.5))
    assert one_run.log_tail(right=1, pairs=400) <= 0
    np.testing.assert_allclose(one_run.log_tail(right=5000, pairs=5000), -5000 * np.log(2), rtol=1e-12)
    np.testing.assert_allclose(request(5000, 5000), 5000 * np.log(2) + np.log(0.05), rtol=1e-12)
    p = [one_run.p_value(guesses=Guesses(*counts)) for counts in ((3, 3), (3, 3, 2), (0, 3, 2), (5000, 5000))]
    np.testing.assert_allclose(p, [1 / 8, 2 / 8, 1, one_run.LEAST])


def test_bounds_of_ten_right_guesses_by_hand():
    """Ten of ten happen once in 1,024; Clopper and Pearson's lower limit of ten of ten is α to a tenth."""
    ten, two = Guesses(10, 10), Guesses(10, 10, attacks=2)
    bound = one_run.epsilon_request(guesses=ten)
    np.testing.assert_allclose(three(bound), [*[np.log(0.05 * 1024)] * 2, np.inf])
    assert (bound.n, bound.note) == (10, "holds with confidence 0.95; one-sided")
    np.testing.assert_allclose(one_run.epsilon_request(guesses=ten, models=4).value, bound.value / 4)
    np.testing.assert_allclose(one_run.epsilon_request(guesses=two, delta=0.005).value, np.log(0.02 * 1024))
    record = one_run.epsilon_replace(guesses=two)
    np.testing.assert_allclose(three(record), [*[special.logit(0.025**0.1)] * 2, np.inf])
    assert (record.n, record.note) == (10, bound.note)
    added = one_run.epsilon_record(guesses=two)
    np.testing.assert_allclose(three(added)[:2], [np.log((1 + np.exp(record.value)) / 2)] * 2)
    for right, pairs in ((9, 10), (110, 160)):
        assert stats.binom.sf(right - 1, pairs, special.expit(replaced(right, pairs))) == pytest.approx(0.05)
    assert request(80, 160) == replaced(80, 160) == replaced(0, 160) == 0


@pytest.mark.parametrize(("pairs", "ties", "right", "delta"), [
    (100, 900, 75, 1e-5), (100, 900, 75, 1e-4), (100, 0, 75, 1e-4), (60, 40, 50, 1e-3), (100, 3900, 75, 1e-4),
    (1000, 0, 1000, 1e-3), (50, 0, 50, 1.0),
])  # fmt: skip
def test_delta_counts_for_all_pairs(pairs, ties, right, delta):
    """The bound is where the p-value of Steinke et al. 2023, appendix D, is 5 %, with m all pairs and r the guesses."""

    def p_value(epsilon: float) -> float:
        chance = special.expit(epsilon)
        between = np.cumsum(stats.binom.pmf(right - np.arange(1, right + 1), pairs, chance))
        alpha = (between / np.arange(1, right + 1)).max()
        return stats.binom.sf(right - 1, pairs, chance) + alpha * delta * 2 * (pairs + ties)

    bound = replaced(right, pairs, delta, ties=ties)
    assert p_value(bound) == pytest.approx(0.05, rel=1e-6) if bound else p_value(0.0) >= 0.05


@pytest.mark.parametrize("pairs", [1, 5, 20])
def test_e_values_have_mean_one_by_enumeration(pairs):
    right = np.arange(pairs + 1)
    e = [one_run.e_value(guesses=Guesses(w, pairs)) for w in right]
    np.testing.assert_allclose(stats.binom.pmf(right, pairs, 0.5) @ e, 1.0)
    np.testing.assert_allclose(one_run.e_value(guesses=Guesses(pairs, pairs, attacks=4)), e[-1] / 4)


@pytest.mark.parametrize(("right", "pairs"), [(0, 1100), (400, 2000), (5, 5), (600, 1000)])
def test_e_values_are_the_integral_of_the_likelihood_ratio(right, pairs):
    """Where most guesses are wrong too, which is no evidence of a trace."""
    share = np.linspace(0.5, 1.0, 200_001)
    ratio = np.exp(special.xlogy(right, share) + special.xlog1py(pairs - right, -share) + pairs * np.log(2))
    e = one_run.e_value(guesses=Guesses(right, pairs))
    np.testing.assert_allclose(e, 2 * integrate.trapezoid(ratio, share), rtol=1e-4)


def test_the_evidence_of_any_audit_is_a_number():
    e = [one_run.e_value(guesses=Guesses(pairs, pairs)) for pairs in (1000, 10**6)]
    assert e[0] < e[1] < np.inf
    assert 0 <= one_run.e_value(guesses=Guesses(0, 10**6)) * e[-1] < np.inf


@pytest.mark.parametrize(("pairs", "attacks"), [(20, 1), (20, 3), (400, 1)])
def test_the_detectable_share_is_found_in_four_audits_of_five(pairs, attacks):
    share = one_run.detectable_share(pairs=pairs, attacks=attacks)
    least = next(w for w in range(pairs + 1) if one_run.p_value(guesses=Guesses(w, pairs, attacks)) <= 0.05)
    np.testing.assert_allclose(stats.binom.sf(least - 1, pairs, share), 0.8)
    assert np.isnan(one_run.detectable_share(pairs=4))


def test_the_share_of_right_guesses_is_corrected_for_the_attacks():
    share = one_run.right_share(guesses=Guesses(7, 10, 4))
    limits = stats.binomtest(7, 10).proportion_ci(1 - 0.05 / 4, "exact")
    np.testing.assert_allclose(three(share), [0.7, limits.low, limits.high])
    assert share.n == 10


@pytest.mark.parametrize(("models", "pairs"), [(4, 100), (8, 40)])
def test_the_share_covers_that_of_models_which_know_the_canaries_unequally_well(models, pairs):
    rng, repeats, inside, coins = np.random.default_rng(models), 500, 0, np.repeat(np.arange(models), pairs)
    for _ in range(repeats):
        chance = 0.65 + rng.uniform(-0.1, 0.1, size=(models, 1))
        guesses = np.where(rng.random((models, pairs)) < chance, 1, -1).ravel()
        share = one_run.right_share(guesses=one_run.count(guesses=guesses, coins=coins))
        inside += share.low <= 0.65 <= share.high
    assert 1 - inside / repeats <= at_most(0.05, repeats)


def test_sets_of_coins_widen_the_interval_by_hand():
    guesses, coins = np.array([[1, 1, 1, -1, 0, 1, -1, -1]]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    number, best = one_run.best_of(guesses=-guesses, coins=coins)
    assert (number, best) == (~0, Guesses(4, 7, attacks=2, ties=1, shares=(3 / 4, 1 / 3)))
    alone, several = (one_run.right_share(guesses=Guesses(60, 100, shares=of)) for of in ((0.6,), (0.58, 0.6, 0.62)))
    assert (alone.low, alone.high) == pytest.approx(stats.binomtest(60, 100).proportion_ci()[:])
    half = stats.t.ppf(0.975, 2) * 0.02 / np.sqrt(3)
    widened = 0.6 - np.hypot(0.6 - alone.low, half), 0.6 + np.hypot(alone.high - 0.6, half)
    assert (several.low, several.high) == pytest.approx(widened)


def test_the_best_attack_in_either_direction_by_hand():
    """Ten, one and five of ten are right; three more pairs abstain."""
    guesses = np.where(np.arange(13) < 10, np.where(np.arange(13) < np.array([[10], [1], [5]]), 1, -1), 0)
    assert one_run.best_of(guesses=guesses) == (0, Guesses(10, 10, 6, ties=3))
    assert one_run.best_of(guesses=guesses[1:]) == (~0, Guesses(9, 10, 4, ties=3))
    np.testing.assert_allclose(one_run.p_of_all(guesses=guesses), [6 / 1024, 66 / 1024, 1])
    assert one_run.p_of_all(guesses=np.ones((1, 5000), int)) == [one_run.LEAST]
    few = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, -1]])  # 3 of 3 happen in 1/8, 5 of 6 in 7/64
    assert one_run.best_of(guesses=few)[0] == 1


def test_the_best_of_several_keeps_its_size():
    rng, audits = np.random.default_rng(5), 1500
    guesses = np.where(rng.random((audits, 3, 40)) < 0.5, 1, -1)
    p = np.array([one_run.p_of_all(guesses=g).min() for g in guesses])
    assert (p <= 0.05).mean() <= at_most(0.05, audits)
    best = [one_run.p_value(guesses=one_run.best_of(guesses=g)[1]) for g in guesses[:100]]
    np.testing.assert_allclose(best, p[:100])


@pytest.mark.parametrize("pairs", [2, 3, 7, 8])
def test_an_attack_is_chosen_on_half_and_counted_on_the_rest(pairs):
    """Of two attacks one is right on the half, which the other reverses; of the rest, every third is right."""
    for seed in range(10):
        learn = one_run._random_half(pairs, np.random.default_rng(seed))
        assert learn.sum() == pairs // 2
        third = np.arange(pairs) % 3 == 0
        guesses = np.where(np.where(learn, [[True], [False]], third), 1, -1)
        choice, turned = (
            one_run.chosen_on_half(guesses=some, rng=np.random.default_rng(seed)) for some in (guesses, guesses[1:])
        )
        right, rest = int(third[~learn].sum()), pairs - pairs // 2
        assert (choice, turned) == ((0, Guesses(right, rest)), (~0, Guesses(rest - right, rest)))


@pytest.mark.parametrize("seed", range(12))
def test_the_likelihood_ratio_is_that_of_gaussians_learned_on_half(seed):
    rng, pairs = np.random.default_rng(seed), 4 + seed % 8
    forgotten, heldout = rng.normal([[0.5], [0.0]], [[1.0], [3.0]], (2, pairs)), rng.normal(size=(2, pairs))
    learn = one_run._random_half(pairs, np.random.default_rng(seed))
    sides = [(x[:, learn].mean(axis=1), x[:, learn].std(axis=1, ddof=1)) for x in (forgotten, heldout)]
    of_forgotten, of_heldout = (
        np.diff([stats.norm.logpdf(x[:, ~learn].T, *side).sum(axis=1) for side in reversed(sides)], axis=0)
        for x in (forgotten, heldout)
    )
    counts = one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=np.random.default_rng(seed))
    assert counts == Guesses(int((of_forgotten > of_heldout).sum()), pairs - pairs // 2)


@pytest.mark.parametrize("seed", range(6))
def test_a_score_far_from_a_spread_of_none_is_told_by_the_nearest_mean(seed):
    """Learned: 1 exactly on one side, −1 on the other; a held-out score of 0.5 is called forgotten, −0.5 is not."""
    learn = one_run._random_half(4, np.random.default_rng(seed))
    heldout = np.where(learn, -1.0, 0.0)
    forgotten = np.where(learn, 1.0, [0.5, 0.25, -0.5, 0.75])
    counts = one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=np.random.default_rng(seed))
    assert counts == Guesses(int((forgotten > 0)[~learn].sum()), 2)
