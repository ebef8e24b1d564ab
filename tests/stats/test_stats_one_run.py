"""One-run audit: exact size, closed forms of power and bounds."""

import itertools

import numpy as np
import pytest
from scipy import integrate, special, stats
from unlearning_audit.stats import one_run
from unlearning_audit.stats.one_run import Guesses


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("pairs", [1, 2, 5, 12])
def test_size_by_enumeration_of_all_coins(pairs, epsilon):
    """Of all 2^r coins a model that knows none gets p ≤ α in at most α; one that gives itself away by ε keeps the size.

    The worst (ε, 0)-unlearning model multiplies the probability of every rejecting outcome by e^ε.
    """
    counts = [sum(coins) for coins in itertools.product((0, 1), repeat=pairs)]
    right, times = np.unique(counts, return_counts=True)
    chance = times / 2.0**pairs
    for alpha in (0.01, 0.05, 0.2):
        rejects = np.array([one_run.p_value(guesses=Guesses(int(w), pairs), epsilon=epsilon) <= alpha for w in right])
        assert np.exp(epsilon) * (chance @ rejects) <= alpha + 1e-12
        bound = [one_run.epsilon_request(guesses=Guesses(int(w), pairs), alpha=alpha).value > epsilon for w in right]
        assert np.exp(epsilon) * (chance @ np.array(bound)) <= alpha + 1e-12
        record = [one_run.epsilon_replace(guesses=Guesses(int(w), pairs), alpha=alpha).value > epsilon for w in right]
        weight = special.xlogy(right, special.expit(epsilon)) + special.xlogy(pairs - right, special.expit(-epsilon))
        assert (times * np.exp(weight)) @ np.array(record) <= alpha + 1e-12


def test_retrained_models_guess_right_by_chance_exactly():
    """Of audits in which five of twenty pairs tie, W of the other fifteen is binomial."""
    rng, audits, pairs = np.random.default_rng(0), 100_000, 20
    scores = rng.integers(0, 4, size=(2, audits, pairs)).astype(float)  # one in four is a tie
    coins = rng.random((audits, pairs)) < 0.5
    forgotten, heldout = np.where(coins, scores[0], scores[1]), np.where(coins, scores[1], scores[0])
    guesses = one_run.guess(forgotten=forgotten, heldout=heldout)
    decided = (guesses != 0).sum(axis=1)
    right, pairs = (guesses > 0).sum(axis=1)[decided == 15], 15
    audits = len(right)
    assert audits > 10_000
    observed = np.bincount(right, minlength=pairs + 1)
    expected = audits * special.binom(pairs, np.arange(pairs + 1)) / 2.0**pairs
    frequent = expected >= 5
    square = ((observed - expected)[frequent] ** 2 / expected[frequent]).sum()
    assert special.chdtrc(frequent.sum() - 1, square) > 1e-3


@pytest.mark.parametrize("shift", [0.3, 1.0])
def test_power_against_a_gaussian_shift(shift):
    """Forgotten scores are N(μ, 1), held-out ones N(0, 1): right with probability Φ(μ/√2); power is a binomial tail."""
    rng, audits, pairs = np.random.default_rng(1), 4000, 60
    forgotten, heldout = rng.normal(shift, 1, (audits, pairs)), rng.normal(0, 1, (audits, pairs))
    right = (one_run.guess(forgotten=forgotten, heldout=heldout) > 0).sum(axis=1)
    p = special.ndtr(shift / np.sqrt(2))
    assert abs(right.mean() / pairs - p) < 4 * np.sqrt(p * (1 - p) / (audits * pairs))
    least = next(w for w in range(pairs + 1) if one_run.p_value(guesses=Guesses(w, pairs)) <= 0.05)
    power = np.exp(one_run.log_tail(right=least, pairs=pairs, chance=p))
    assert abs((right >= least).mean() - power) < 4 * np.sqrt(power * (1 - power) / audits)


def test_tail_is_the_binomial_s():
    for pairs, chance in ((1, 0.5), (7, 0.3), (160, 0.5), (1000, 0.9)):
        for right in {0, 1, pairs // 2, pairs}:
            expected = special.bdtrc(right - 1, pairs, chance) if right else 1.0
            np.testing.assert_allclose(np.exp(one_run.log_tail(right=right, pairs=pairs, chance=chance)), expected)


def test_tail_of_a_large_request_does_not_underflow():
    np.testing.assert_allclose(one_run.log_tail(right=5000, pairs=5000), -5000 * np.log(2), rtol=1e-12)
    bound = one_run.epsilon_request(guesses=Guesses(5000, 5000)).value
    np.testing.assert_allclose(bound, 5000 * np.log(2) + np.log(0.05), rtol=1e-12)
    assert one_run.p_value(guesses=Guesses(5000, 5000), epsilon=4000.0) == 1


def test_p_value_reaches_alpha_at_the_bound():
    for delta in (0.0, 1e-3, 0.02):
        for attacks in (1, 2):
            counts = Guesses(110, 160, attacks)
            bound = one_run.epsilon_request(guesses=counts, delta=delta).value
            np.testing.assert_allclose(one_run.p_value(guesses=counts, epsilon=bound, delta=delta), 0.05)
    counts = Guesses(110, 160)
    record = one_run.epsilon_replace(guesses=counts).value
    tail = one_run.log_tail(right=110, pairs=160, chance=special.expit(record))
    np.testing.assert_allclose(np.exp(tail), 0.05)


def test_nothing_is_shown_by_half_right():
    counts = Guesses(80, 160)
    assert one_run.epsilon_request(guesses=counts).value == 0
    assert one_run.epsilon_record(guesses=counts).value == 0
    assert one_run.epsilon_record(guesses=Guesses(0, 160)).value == 0
    share = one_run.right_share(guesses=counts)
    assert share.low < 0.5 == share.value < share.high


def test_ties_abstain():
    guesses = one_run.guess(forgotten=np.zeros(100), heldout=np.zeros(100))
    counts = one_run.count(guesses=guesses)
    assert counts == Guesses(0, 0, ties=100)
    assert one_run.p_value(guesses=counts) == one_run.e_value(guesses=counts) == 1
    assert one_run.epsilon_record(guesses=counts).value == one_run.epsilon_request(guesses=counts).value == 0
    assert np.isnan(one_run.right_share(guesses=counts).value)


def test_pairs_that_tie_do_not_hide_those_that_speak():
    """38 of 44 pairs whose correctness differs, among 300: a trace that 256 coins would drown."""
    forgotten, heldout = np.zeros(300), np.zeros(300)
    forgotten[:38], heldout[38:44] = 1, 1
    counts = one_run.count(guesses=one_run.guess(forgotten=forgotten, heldout=heldout))
    assert counts == Guesses(38, 44, ties=256)
    np.testing.assert_allclose(one_run.p_value(guesses=counts), 4.7e-7, rtol=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_mechanism_under_adding_and_removing_seldom_exceeds_its_epsilon(epsilon):
    """Randomised response whose two outputs both lie within e^ε of what neither record gives: right with 1 − e^−ε/2."""
    rng, audits, pairs = np.random.default_rng(12), 4000, 1000
    right = rng.binomial(pairs, 1 - np.exp(-epsilon) / 2, audits)
    bound = np.array([one_run.epsilon_record(guesses=Guesses(int(w), pairs)).value for w in np.unique(right)])
    above = np.isin(right, np.unique(right)[bound > epsilon]).mean()
    assert above <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_delta_is_counted():
    counts = Guesses(1000, 1000)
    plain, small, large = (one_run.epsilon_replace(guesses=counts, delta=d).value for d in (0.0, 1e-9, 1e-3))
    np.testing.assert_allclose(small, plain, rtol=1e-5)
    assert 3.4 < large < 3.5 < 5.8 < plain
    assert one_run.epsilon_replace(guesses=counts, delta=1.0).value == 0


@pytest.mark.parametrize(("pairs", "ties", "right", "delta"), [
    (100, 900, 75, 1e-5), (100, 900, 75, 1e-4), (100, 0, 75, 1e-4), (60, 40, 50, 1e-3), (100, 3900, 75, 1e-4)
])  # fmt: skip
def test_delta_counts_for_pairs_that_abstain(pairs, ties, right, delta):
    """The bound is where the p-value of Steinke et al. 2023, appendix D, is 5 %, with m all pairs and r the guesses."""

    def p_value(epsilon: float) -> float:
        chance = 1 / (1 + np.exp(-epsilon))
        beta, alpha, total = stats.binom.sf(right - 1, pairs, chance), 0.0, 0.0
        for i in range(1, right + 1):
            total += stats.binom.pmf(right - i, pairs, chance)
            alpha = max(alpha, total / i)
        return min(beta + alpha * delta * 2 * (pairs + ties), 1.0)

    bound = one_run.epsilon_replace(guesses=Guesses(right, pairs, ties=ties), delta=delta).value
    if bound:
        assert p_value(bound) == pytest.approx(0.05, rel=1e-6)
    else:
        assert p_value(0.0) >= 0.05


def test_ties_are_counted_and_add_up():
    votes = np.array([[1, 0, -1, 0], [-1, 0, -1, 1]])
    counts = [one_run.count(guesses=row) for row in votes]
    assert counts == [Guesses(1, 2, ties=2), Guesses(1, 3, ties=1)]
    assert one_run.pooled(counts=counts) == Guesses(2, 5, ties=3)
    assert one_run.best_of(guesses=-votes[1:], two_sided=True) == (0, Guesses(2, 3, 2, ties=1))


def test_e_values_have_mean_one_by_enumeration():
    for pairs in (1, 5, 20):
        e = [one_run.e_value(guesses=Guesses(w, pairs)) for w in range(pairs + 1)]
        chance = special.binom(pairs, np.arange(pairs + 1)) / 2.0**pairs
        np.testing.assert_allclose(chance @ e, 1.0)


@pytest.mark.parametrize(("right", "pairs"), [(0, 1100), (100, 2000), (400, 2000), (5, 5), (0, 3), (600, 1000)])
def test_e_values_are_the_integral_of_the_likelihood_ratio(right, pairs):
    """Where most guesses are wrong too, which is no evidence of a trace."""
    share = np.linspace(0.5, 1.0, 200_001)
    ratio = np.exp(special.xlogy(right, share) + special.xlog1py(pairs - right, -share) + pairs * np.log(2))
    e = one_run.e_value(guesses=Guesses(right, pairs))
    np.testing.assert_allclose(e, 2 * integrate.trapezoid(ratio, share), rtol=1e-4)
    if not right:
        np.testing.assert_allclose(e, 1 / (pairs + 1))


def test_the_evidence_of_any_audit_is_a_number():
    e = [one_run.e_value(guesses=Guesses(pairs, pairs)) for pairs in (1000, 2000, 10**6)]
    assert np.isfinite(e).all()
    assert e[0] < e[1] <= e[2]
    assert 0 <= one_run.e_value(guesses=Guesses(0, 10**6)) * e[-1] < np.inf


@pytest.mark.parametrize("pairs", [20, 100, 400])
def test_the_detectable_share_is_found_in_four_audits_of_five(pairs):
    share = one_run.detectable(pairs=pairs)
    least = next(w for w in range(pairs + 1) if one_run.p_value(guesses=Guesses(w, pairs)) <= 0.05)
    np.testing.assert_allclose(np.exp(one_run.log_tail(right=least, pairs=pairs, chance=share)), 0.8)
    assert np.isnan(one_run.detectable(pairs=4))


def test_best_of_several_keeps_its_size():
    rng, audits = np.random.default_rng(5), 4000
    guesses = np.where(rng.random((audits, 3, 40)) < 0.5, 1, -1)
    p = np.array([one_run.p_value(guesses=one_run.best_of(guesses=g, two_sided=True)[1]) for g in guesses])
    assert (p <= 0.05).mean() <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / audits)


def test_an_attack_that_is_always_wrong_is_found_from_two_sides():
    guesses = np.stack([np.where(np.random.default_rng(6).random(80) < 0.5, 1, -1), np.full(80, -1)])
    assert one_run.best_of(guesses=guesses)[0] == 0
    name, counts = one_run.best_of(guesses=guesses, two_sided=True)
    assert (name, counts) == (~1, Guesses(80, 80, 4))
    name, counts = one_run.chosen_on_half(guesses=guesses, rng=np.random.default_rng(7))
    assert (name, counts) == (~1, Guesses(40, 40))


@pytest.mark.parametrize("ask", ["chosen", "ratio"])
def test_what_is_learned_on_half_keeps_its_size(ask):
    rng, audits, pairs = np.random.default_rng(8), 3000, 40
    right = []
    for _ in range(audits):
        forgotten, heldout = rng.normal(size=(2, 2, pairs))
        if ask == "chosen":
            guesses = one_run.guess(forgotten=forgotten, heldout=heldout)
            right.append(one_run.chosen_on_half(guesses=guesses, rng=rng)[1].right)
        else:
            right.append(one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=rng).right)
    observed = np.bincount(right, minlength=21)
    expected = audits * special.binom(20, np.arange(21)) / 2.0**20
    frequent = expected >= 5
    assert special.chdtrc(frequent.sum() - 1, ((observed - expected)[frequent] ** 2 / expected[frequent]).sum()) > 1e-3


def test_the_likelihood_ratio_finds_another_spread():
    """A method that over-unlearns unevenly leaves the mean and changes the spread: the larger score says nothing."""
    rng = np.random.default_rng(9)
    forgotten, heldout = 3 * rng.normal(size=(1, 400)), rng.normal(size=(1, 400))
    plain = int((one_run.guess(forgotten=forgotten, heldout=heldout) > 0).sum())
    assert one_run.p_value(guesses=Guesses(plain, 400, 2)) > 0.01
    assert one_run.p_value(guesses=one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=rng)) < 1e-6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: one_run.epsilon_record(guesses=Guesses(5, 4)), "impossible"),
        (lambda: one_run.epsilon_record(guesses=Guesses(3, 4), delta=-0.5), "between 0 and 1, not -0.5"),
        (lambda: one_run.epsilon_record(guesses=Guesses(3, 4), delta=1.5), "between 0 and 1, not 1.5"),
        (lambda: one_run.chosen_on_half(guesses=np.ones((1, 1), bool), rng=None), "two of them"),
        (lambda: one_run.likelihood_ratio(forgotten=np.ones(3), heldout=np.ones(3), rng=None), "four of them"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises(ValueError, match=words):
        call()
