"""One-run audit by hand: tails, bounds and counts of a few pairs."""

import numpy as np
import pytest
from scipy import special, stats
from unlearning_audit.stats import one_run
from unlearning_audit.stats.one_run import Guesses


def test_the_larger_score_is_called_forgotten_and_a_tie_abstains():
    forgotten, heldout = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 3.0]]), np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
    np.testing.assert_array_equal(one_run.guess(forgotten=forgotten, heldout=heldout), [[1, -1, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("forgotten", "heldout", "words"),
    [
        (np.ones((1, 2)), np.ones(2), "\\(1, 2\\) forgotten and \\(2,\\) heldout"),
        (np.ones(0), np.ones(0), "two scores"),
        (np.array([np.nan, 1.0]), np.ones(2), "NaN"),
        (np.ones(2), np.array([1.0, np.nan]), "NaN"),
    ],
)
def test_scores_that_are_no_pairs_are_refused(forgotten, heldout, words):
    with pytest.raises(ValueError, match=words):
        one_run.guess(forgotten=forgotten, heldout=heldout)


def test_tails_of_three_coins():
    tails = [np.exp(one_run.log_tail(right=k, pairs=3)) for k in range(4)]
    np.testing.assert_allclose(tails, [1, 7 / 8, 4 / 8, 1 / 8])
    np.testing.assert_allclose(np.exp(one_run.log_tail(right=2, pairs=3, chance=0.9)), 3 * 0.81 * 0.1 + 0.729)
    assert one_run.log_tail(right=0, pairs=1) == 0
    for chance in (1e-300, 1.0):
        assert one_run.log_tail(right=1, pairs=400, chance=chance) <= 0


@pytest.mark.parametrize(("right", "pairs"), [(-1, 3), (4, 3), (1, 0)])
def test_counts_that_cannot_be_are_refused(right, pairs):
    for call in (
        lambda: one_run.log_tail(right=right, pairs=pairs),
        lambda: one_run.epsilon_replace(guesses=Guesses(right, pairs)),
    ):
        with pytest.raises(ValueError, match=f"{right} right guesses of {pairs} pairs"):
            call()


def test_a_p_value_by_hand():
    three = Guesses(3, 3)
    np.testing.assert_allclose(one_run.p_value(guesses=three), 1 / 8)
    np.testing.assert_allclose(one_run.p_value(guesses=three, epsilon=np.log(2), delta=0.01), 0.26)
    np.testing.assert_allclose(one_run.p_value(guesses=Guesses(3, 3, 2), epsilon=np.log(2), delta=0.01), 0.52)
    assert one_run.p_value(guesses=three, epsilon=np.log(8)) == pytest.approx(1)
    assert one_run.p_value(guesses=three, epsilon=9.0) == 1
    assert one_run.p_value(guesses=three, delta=1.0) == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(-0.1, 0.0), (np.nan, 0.0), (0.0, -0.01), (0.0, 1.01)])
def test_a_p_value_needs_a_privacy_that_can_be(epsilon, delta):
    with pytest.raises(ValueError, match=f"not {epsilon} and {delta}"):
        one_run.p_value(guesses=Guesses(3, 3), epsilon=epsilon, delta=delta)


def test_bounds_of_ten_right_guesses_by_hand():
    """Ten of ten happen once in 1,024; Clopper and Pearson's lower limit of ten of ten is α to a tenth."""
    ten = Guesses(10, 10)
    request = one_run.epsilon_request(guesses=ten, alpha=0.2)
    np.testing.assert_allclose(request.value, np.log(0.2 * 1024))
    assert (request.low, request.high, request.n) == (request.value, np.inf, 10)
    assert request.note == "holds with confidence 0.8; one-sided"
    np.testing.assert_allclose(one_run.epsilon_request(guesses=ten, alpha=0.2, models=4).value, request.value / 4)
    np.testing.assert_allclose(
        one_run.epsilon_request(guesses=Guesses(10, 10, 2), alpha=0.2, delta=0.03).value, np.log(0.07 * 1024)
    )
    np.testing.assert_allclose(one_run.epsilon_request(guesses=ten).value, np.log(0.05 * 1024))
    record = one_run.epsilon_replace(guesses=Guesses(10, 10, 2), alpha=0.2)
    np.testing.assert_allclose(record.value, special.logit(0.1**0.1))
    assert (record.low, record.high, record.n, record.note) == (record.value, np.inf, 10, request.note)
    np.testing.assert_allclose(one_run.epsilon_replace(guesses=Guesses(1, 1), alpha=0.6).value, np.log(0.6 / 0.4))
    partial = one_run.epsilon_replace(guesses=Guesses(8, 10), alpha=0.3)
    np.testing.assert_allclose(partial.value, special.logit(limit(8, 10, 0.3)))


def limit(right, pairs, alpha):
    return stats.binomtest(right, pairs).proportion_ci(1 - 2 * alpha, "exact").low


@pytest.mark.parametrize(("delta", "models"), [(0.1, 1), (0.11, 1), (-0.01, 1), (0.01, 2)])
def test_a_bound_needs_a_delta_below_its_share_of_alpha(delta, models):
    with pytest.raises(ValueError, match="alpha/attacks = 0\\.1"):
        one_run.epsilon_request(guesses=Guesses(3, 3, 2), delta=delta, alpha=0.2, models=models)
    one_run.epsilon_request(guesses=Guesses(3, 3, 2), delta=0.0, alpha=0.2, models=2)


def test_the_share_of_right_guesses_is_corrected_for_the_attacks():
    share = one_run.right_share(guesses=Guesses(7, 10, 4), level=0.8)
    np.testing.assert_allclose(share.low, limit(7, 10, 0.025))
    np.testing.assert_allclose(share.high, 1 - limit(3, 10, 0.025))
    assert (share.value, share.n) == (0.7, 10)


GUESSES = np.array([[1, 1, 1, -1, -1], [1, 1, 1, 1, -1], [-1, -1, -1, -1, 1]])


def test_the_best_attack_by_hand():
    assert one_run.best_of(guesses=GUESSES) == (1, Guesses(4, 5, 3))
    assert one_run.best_of(guesses=GUESSES, two_sided=True) == (1, Guesses(4, 5, 6))
    assert one_run.best_of(guesses=GUESSES[[0, 2]], two_sided=True) == (~1, Guesses(4, 5, 4))
    assert one_run.best_of(guesses=GUESSES[:1]) == (0, Guesses(3, 5, 1))


def test_p_values_of_all_attacks_by_hand():
    """Ten, one and five of ten are right, in either direction; three more pairs abstain; 5,000 of 5,000 underflow."""
    guesses = np.where(np.arange(13) < 10, np.where(np.arange(13) < np.array([[10], [1], [5]]), 1, -1), 0)
    np.testing.assert_allclose(one_run.p_of_all(guesses=guesses), [6 / 1024, 66 / 1024, 1])
    assert one_run.p_of_all(guesses=guesses).min() == one_run.p_value(
        guesses=one_run.best_of(guesses=guesses, two_sided=True)[1]
    )
    assert one_run.p_of_all(guesses=np.ones((1, 5000), int)) == [one_run.LEAST]


@pytest.mark.parametrize("pairs", [2, 3, 8])
@pytest.mark.parametrize("right", [True, False])
def test_an_attack_is_chosen_on_half_and_counted_on_the_rest(pairs, right):
    guesses = np.full((2, pairs), 1 if right else -1)
    choice = one_run.chosen_on_half(guesses=guesses, rng=np.random.default_rng(4))
    rest = pairs - pairs // 2
    assert choice == (0 if right else ~0, Guesses(rest, rest, 1))
    single = one_run.chosen_on_half(guesses=guesses[:1], rng=np.random.default_rng(4), two_sided=False)
    assert single == (0, Guesses(rest * right, rest))


def test_a_choice_counts_right_guesses_of_the_rest_only():
    for seed in range(20):
        learn = one_run._half(7, np.random.default_rng(seed))
        assert learn.sum() == 3
        guesses = np.where(np.where(learn, [[True], [False]], np.arange(7) % 3 == 0), 1, -1)
        (name, counts), (turned, reverse) = (
            one_run.chosen_on_half(guesses=subset, rng=np.random.default_rng(seed)) for subset in (guesses, guesses[1:])
        )
        right = int((np.arange(7) % 3 == 0)[~learn].sum())
        assert (name, counts) == (0, Guesses(right, 4))
        assert (turned, reverse) == (~0, Guesses(4 - right, 4))


def test_the_likelihood_ratio_is_that_of_gaussians_learned_on_half():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        pairs = 4 + seed % 8
        forgotten, heldout = rng.normal([[0.5], [0.0]], [[1.0], [3.0]], (2, pairs)), rng.normal(size=(2, pairs))
        learn = one_run._half(pairs, np.random.default_rng(seed))
        sides = [(x[:, learn].mean(axis=1), x[:, learn].std(axis=1, ddof=1)) for x in (forgotten, heldout)]
        of_forgotten, of_heldout = (
            np.diff([stats.norm.logpdf(x[:, ~learn].T, *side).sum(axis=1) for side in reversed(sides)], axis=0)
            for x in (forgotten, heldout)
        )
        right = int((of_forgotten > of_heldout).sum())
        counts = one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=np.random.default_rng(seed))
        assert counts == Guesses(right, pairs - pairs // 2)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_the_likelihood_ratio_of_scores_that_never_vary(shift):
    """The spread is then a millionth of the largest score; where all are 0 every pair abstains."""
    scores = np.zeros(1000)
    counts = one_run.likelihood_ratio(forgotten=scores + shift, heldout=scores, rng=np.random.default_rng(0))
    assert (counts.right, counts.pairs) == ((500, 500) if shift else (0, 0))


def test_a_score_far_from_a_spread_of_none_is_told_by_the_nearest_mean():
    """Learned: 1 exactly on one side, −1 on the other; a held-out score of 0.5 is called forgotten, −0.5 is not."""
    for seed in range(8):
        learn = one_run._half(4, np.random.default_rng(seed))
        heldout = np.where(learn, -1.0, 0.0)
        forgotten = np.where(learn, 1.0, [0.5, 0.25, -0.5, 0.75])
        counts = one_run.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=np.random.default_rng(seed))
        assert counts == Guesses(int((forgotten > 0)[~learn].sum()), 2)


def test_counts_of_no_model_or_of_the_best_of_two_attacks_do_not_add_up():
    for counts in ([], [Guesses(3, 4, 2)]):
        with pytest.raises(ValueError, match="add up for one attack"):
            one_run.pooled(counts=counts)
    assert one_run.pooled(counts=[Guesses(3, 4), Guesses(1, 2)]) == Guesses(4, 6, 1)
