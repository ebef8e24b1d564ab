"""The game, the paper's identities and the cross-fitted choice: slow loops and hand-made adversaries."""

from types import SimpleNamespace

import numpy as np
import pytest
from unlearning_audit.metrics import _crossfit, _game, swap
from unlearning_audit.stats import crossed

from swap_games import layout, read, signed_advantage


def slow_advantage(decision, forget, heldout, split, block, weight):
    """Definition 3.2 as it is written: mean over splits of the mean over models of a difference of rates."""
    per_split = {}
    for m in range(len(decision)):
        rates = []
        for side in (forget[m], heldout[m]):
            total = sum(weight[x] for x in np.flatnonzero(side))
            rates.append(sum(weight[x] * decision[m, x] for x in np.flatnonzero(side)) / total)
        per_split.setdefault((block[m], split[m]), []).append(rates[0] - rates[1])
    return np.mean([np.mean(values) for values in per_split.values()])


def test_models_have_sides_if_each_forgot_something_and_never_saw_something():
    some, rest = np.array([[1, 0, 0], [1, 0, 0]], bool), np.array([[1, 1, 1], [0, 0, 0]], bool)
    for forget, heldout, sided in ((some, ~some, True), (rest, some, False), (some, rest, False)):
        assert _game.sided(SimpleNamespace(forget=forget, heldout=heldout)) is sided


@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_advantage_is_its_definition(swapped, weighted):
    rng = np.random.default_rng(0)
    membership = layout(rng, samples=40, pairs=3, k=8, models=3, swapped=swapped)
    keep = np.delete(np.arange(18), [1, 8])  # splits of unequal numbers of models still count the same
    membership = {name: value[keep] for name, value in membership.items()}
    weight = rng.random(40) if weighted else np.ones(40)
    decision = rng.random((16, 40)) < 0.4
    rules = _game.game(**membership, weight=weight if weighted else None)
    expected = slow_advantage(decision, **membership, weight=weight)
    assert signed_advantage(rules, decision) == pytest.approx(expected, abs=1e-14)
    for block in range(3):
        of_pair = membership["block"] == block
        part = {name: value[of_pair] for name, value in membership.items()}
        expected = slow_advantage(decision[of_pair], **part, weight=weight)
        assert read(rules, [decision], block).value[0] == pytest.approx(expected, abs=1e-14)


def test_samples_of_a_block_are_those_that_any_of_its_models_forgot_or_held_out():
    forget, heldout = np.zeros((2, 3, 40), bool)
    forget[0, :3] = heldout[0, 3:5] = forget[1, 4:6] = heldout[1, 6] = forget[2, 10:] = heldout[2, :9] = True
    rules = _game.game(forget=forget, heldout=heldout, split=np.array([0, 1, 0]), block=np.array([0, 0, 1]))
    assert [_game.samples(rules, block) for block in (0, 1)] == [7, 39]


def test_adversary_that_reads_only_the_sample_gains_nothing_from_a_swap():
    rng = np.random.default_rng(1)
    decision = np.tile(rng.random(200) < 0.3, (12, 1))
    for seed in range(5):
        membership = layout(np.random.default_rng(seed), samples=200, pairs=3, k=30, models=2)
        rules = _game.game(**membership, weight=rng.random(200))
        gains = [read(rules, [decision], block).value[0] for block in (None, 0, 1, 2)]
        np.testing.assert_allclose(gains, 0, atol=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 0.9, 1.09, 600.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_bounds_are_the_papers_formulas(epsilon, delta):
    uncut = (4 - 4 * delta) / (np.exp(epsilon) + 1) - 1
    with np.errstate(all="raise"):
        assert swap.lower_bound(epsilon=epsilon, delta=delta) == pytest.approx(max(uncut, 0), abs=1e-12)
    expected = min(2 * (1 - (2 - 2 * delta) / (np.exp(epsilon) + 1)), 1)
    assert swap.advantage_bound(epsilon=epsilon, delta=delta) == pytest.approx(expected, abs=1e-12)


def test_many_adversaries_that_only_guess_do_not_fool_crossfit():
    """On random splits the best of 100 guesses on the sample alone looks strong, and is nothing on other samples."""
    rng = np.random.default_rng(9)
    optimistic, fair = [], []
    for _ in range(30):
        membership = layout(rng, samples=80, pairs=2, k=20, models=2, swapped=False)
        rules = _game.game(**membership)
        guesses = [np.tile(rng.random(80) < 0.5, (8, 1)) for _ in range(100)]
        reading = read(rules, guesses)
        optimistic.append(1 - np.abs(reading.value).max())
        fair.append(_crossfit.quality(rules, guesses, reading, rng=rng, halvings=4).estimate.value)
    assert np.mean(optimistic) < 0.82
    assert abs(np.mean(fair) - 1) < 4 * np.std(fair) / np.sqrt(30)
    assert np.std(fair) / np.sqrt(30) < 0.02


def test_crossfit_takes_the_sign_that_it_chose_and_the_interval_of_what_was_always_chosen():
    rng = np.random.default_rng(9)
    membership = layout(rng, samples=80, pairs=2, k=25, models=2)
    rules, guess = _game.game(**membership), rng.random((8, 80)) < 0.5
    for turned in (False, True):
        decisions = [membership["forget"] ^ (rng.random((8, 80)) < 0.2) ^ turned, guess]
        reading = read(rules, decisions)
        result = _crossfit.quality(rules, decisions, reading, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(result.weight, [-1 if turned else 1, 0])
        half, estimate = crossed.half_widths(reading)[0], result.estimate
        assert 0.05 < half < 0.5
        assert (estimate.high - estimate.value, estimate.value - estimate.low) == pytest.approx((half, half), rel=1e-12)
    decisions = [~membership["forget"], guess]
    certain = _crossfit.quality(rules, decisions, read(rules, decisions), rng=np.random.default_rng(0))
    assert certain.estimate.value == pytest.approx(0, abs=1e-12)


def test_crossfit_of_models_that_stand_alone_says_so_and_of_tiny_sets_is_empty():
    rng = np.random.default_rng(10)
    membership = layout(rng, samples=40, pairs=1, k=10, models=1)
    rules = _game.game(**membership)
    decisions = [rng.random((2, 40)) < 0.5]
    result = _crossfit.quality(rules, decisions, read(rules, decisions), rng=rng)
    assert result.estimate.note.startswith("unbiased over samples only")
    forget = np.array([[1, 0], [0, 1]], bool)
    rules = _game.game(forget=forget, heldout=~forget, split=np.array([0, 1]), block=np.zeros(2, int))
    result = _crossfit.quality(rules, [forget], read(rules, [forget]), rng=rng)
    assert np.isnan(result.estimate.value)
    assert result.estimate.note == "forget and heldout are too small to be halved"


def test_the_odd_model_of_a_split_joins_either_half():
    membership = layout(np.random.default_rng(12), samples=40, pairs=1, k=10, models=3)
    first, second, whole = _crossfit._model_halves(_game.game(**membership), rng=np.random.default_rng(0), halvings=400)
    assert not whole
    for models in (slice(0, 3), slice(3, 6)):
        count = (first[:, models] > 0).sum(axis=1)
        np.testing.assert_array_equal(count + (second[:, models] > 0).sum(axis=1), 3)
        assert set(count) == {1, 2}
        assert abs((count == 1).mean() - 0.5) < 4 * 0.5 / np.sqrt(400)
    np.testing.assert_allclose(first.sum(axis=1), 1)
    np.testing.assert_allclose(second.sum(axis=1), 1)
