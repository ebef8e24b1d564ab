"""One-run audit: a fair coin chooses which sample (canary) of each pair is forgotten, and an attack guesses it.

A model that is like a retrained one knows nothing of the coins, so the number of right guesses W of r pairs is Bin(r,
½) exactly. Pairs whose two scores are equal abstain. Given which pairs abstain, the coins of the other pairs are still
fair. So r counts only these other pairs, and no guess is drawn at random. Sources: Steinke, Nasr and Jagielski 2023; in
pairs Mahloujifar, Melis and Chaudhuri 2024.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL, Estimate
from unlearning_audit.stats.shapes import Float, Int

#: Scores of one sample of each pair, and what attacks guess of pairs.
Scores = Float[np.ndarray, "... pairs"]
OfAttacks = Int[np.ndarray, "attacks pairs"]

#: Tests are at this level, and bounds hold with confidence 1 − `ALPHA`.
ALPHA = 0.05
LEAST = np.finfo(np.float64).tiny  # no p-value is 0, however small
STEPS = 60  # bisections of a probability
POWER = 0.8  # the probability with which a share counts as detected


@dataclass(frozen=True)
class Guesses:
    """The number of ``right`` guesses among ``pairs`` whose two scores differ.

    Parameters
    ----------
    attacks
        From how many attacks the best was chosen by these guesses, where an attack that was tried in both directions
        counts twice; 1 for an attack that was chosen without them.
    ties
        How many further pairs have equal scores.
    shares
        The share of right guesses in each set of coins, which models of their own share; () for one set.
    """

    right: int
    pairs: int
    attacks: int = 1
    ties: int = 0
    shares: tuple[float, ...] = ()


def guess(*, forgotten: Scores, heldout: Scores) -> Int[np.ndarray, "... pairs"]:
    """Return for each pair whether the sample with the larger score is the forgotten one, as an attack guesses.

    Parameters
    ----------
    forgotten, heldout : float [..., pairs]
        Scores of the two samples of each pair.

    Returns
    -------
    int8 [..., pairs]
        1 where the guess is right, −1 where it is wrong, 0 for a tie.

    Raises
    ------
    ValueError
        A score is NaN.
    """
    if np.isnan(forgotten).any() or np.isnan(heldout).any():
        raise ValueError("scores of the pairs hold NaN and cannot be compared")
    return (forgotten > heldout).astype(np.int8) - (forgotten < heldout)


def count(*, guesses: Int[np.ndarray, "pairs"], coins: Int[np.ndarray, "pairs"] | None = None) -> Guesses:
    """Return how many of the ``guesses`` int8 [pairs] of one attack, from `guess`, are right, and how many are ties.
    ``coins`` int [pairs]: the number of the set of coins that each pair belongs to; None: there is one set."""
    right, pairs = guesses > 0, guesses != 0
    shares = () if coins is None else _shares(np.bincount(coins, right), np.bincount(coins, pairs))
    return Guesses(int(right.sum()), int(pairs.sum()), ties=int((~pairs).sum()), shares=shares)


def _shares(right: np.ndarray, pairs: np.ndarray) -> tuple[float, ...]:
    """Return ``right`` [sets] over ``pairs`` [sets], of the sets that have pairs whose scores differ."""
    return tuple((right[pairs > 0] / pairs[pairs > 0]).tolist())


@lru_cache(maxsize=1 << 16)  # an audit reads few counts thousands of times
def log_tail(*, right: int, pairs: int) -> float:
    """Return ln Pr[Bin(pairs, ½) ≥ right], which is exact even where the probability itself would round to 0."""
    if right == 0:
        return 0.0
    k = np.arange(right, pairs + 1)
    choose = special.gammaln(pairs + 1) - special.gammaln(k + 1) - special.gammaln(pairs - k + 1)
    return float(min(special.logsumexp(choose) - pairs * np.log(2), 0.0))


def p_value(*, guesses: Guesses) -> float:
    """Return the p-value of the hypothesis that the model is retrained: min(1, attacks·Pr[Bin(r, ½) ≥ W]) for W right
    guesses of r pairs by the best of several ``attacks``.

    Parameters
    ----------
    guesses
        How many guesses of how many pairs are right.
    """
    return float(np.clip(guesses.attacks * np.exp(log_tail(right=guesses.right, pairs=guesses.pairs)), LEAST, 1.0))


def _lower_bound(value: float, guesses: Guesses) -> Estimate:
    """Return a lower bound on ε, at least 0; the upper limit is inf, because one run bounds ε from below only."""
    bound = max(float(value), 0.0)
    return Estimate(bound, bound, np.inf, guesses.pairs, f"holds with confidence {1 - ALPHA:g}; one-sided")


def epsilon_request(*, guesses: Guesses, delta: float = 0.0, models: int = 1) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-unlearning of the whole request, with confidence 1 − α (`ALPHA`).

    For W right guesses of r pairs, the bound is max(0, ln((α/attacks − δ)/Pr[Bin(r, ½) ≥ W])), where ``attacks`` says
    from how many attacks the best was chosen. If the guesses are of several models, each model needs that ε, so the
    bound is divided by their number.

    Parameters
    ----------
    guesses : Guesses
        How many guesses of how many pairs are right.
    delta : float
        δ, at least 0 and below α/attacks; 0 for several models.
    models : int
        Over how many models, each with coins of its own, the guesses were counted.

    Returns
    -------
    Estimate
    """
    bound = np.log(ALPHA / guesses.attacks - delta) - log_tail(right=guesses.right, pairs=guesses.pairs)
    return _lower_bound(bound / models, guesses)


def epsilon_replace(*, guesses: Guesses, delta: float = 0.0) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-differential privacy where one record of a pair replaces the other, with
    confidence 1 − α (`ALPHA`).

    Let W be the number of right guesses of r pairs that do not abstain. The bound is the largest ε, or 0 if there is
    none, for which W or more right guesses have a probability of at most α/attacks; ``attacks`` says from how many
    attacks the best was chosen. Let p = e^ε/(1 + e^ε) and f(v) = Pr[Bin(r, p) ≥ v]. For δ = 0 that probability is at
    most f(W), so p is Clopper and Pearson's lower limit. For δ > 0 it is at most f(W) + 2·m·δ·max_i (f(W − i) − f(W))/i
    over i = 1 … W, where m counts all pairs, including those that abstain (Steinke, Nasr and Jagielski 2023, theorem
    5.2).

    Parameters
    ----------
    guesses : Guesses
        r is ``pairs``, W is ``right``, and m is ``pairs`` and ``ties`` together.
    delta : float
        δ, from 0 to 1.

    Returns
    -------
    Estimate
    """
    # ``low``: p of the bound. Below ½, where there is no such ε, its logit is negative; `_lower_bound` raises it to 0.
    level, low = ALPHA / guesses.attacks, 0.0
    if guesses.right and not delta:
        low = special.betaincinv(guesses.right, guesses.pairs - guesses.right + 1, level)
    elif guesses.right and _bound_on_tail(guesses, 0.5, delta) <= level:  # p is ½ at ε = 0
        low, high = 0.5, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _bound_on_tail(guesses, middle, delta) <= level else (low, middle)
    return _lower_bound(special.logit(low), guesses)


def _bound_on_tail(guesses: Guesses, chance: float, delta: float) -> float:
    """Return an upper bound on the probability of W or more right guesses under (ε, δ)-differential privacy: f(W) +
    2·m·δ·max_i (f(W − i) − f(W))/i (`epsilon_replace` explains the symbols).

    Parameters
    ----------
    guesses
        The W right guesses.
    chance
        The probability p = e^ε/(1 + e^ε).
    """
    i = np.arange(1, guesses.right + 1)
    f_w = special.bdtrc(guesses.right - 1.0, guesses.pairs, chance)  # f(W)
    f_less = np.where(i < guesses.right, special.bdtrc(guesses.right - i - 1.0, guesses.pairs, chance), 1.0)  # f(W − i)
    return float(f_w + 2 * (guesses.pairs + guesses.ties) * delta * ((f_less - f_w) / i).max())


def epsilon_record(*, guesses: Guesses, delta: float = 0.0) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-differential privacy where a record is added or removed, with confidence
    1 − α (`ALPHA`). Budgets of DP-SGD are of this form.

    The bound is ln((1 + e^b)/2), where b is the bound of `epsilon_replace`. The reason, for δ = 0: the densities P and
    P′ of the outputs with either record lie within a factor e^ε of the density Q without both, so min(P, P′) ≥ e^−ε·Q.
    Hence at most 1 − e^−ε/2 of the guesses can be right, where b allows e^b/(1 + e^b). That is a share of all pairs. Of
    those that an attack chooses by abstaining from others, e^2ε/(1 + e^2ε) can be right, so with ties the bound is b/2.

    Parameters
    ----------
    guesses : Guesses
        How many guesses of how many pairs are right.
    delta : float
        δ, from 0 to 1.

    Returns
    -------
    Estimate
    """
    bound = epsilon_replace(guesses=guesses, delta=delta).value
    # logaddexp(0, b) = ln(1 + e^b)
    return _lower_bound(bound / 2 if guesses.ties else np.logaddexp(0.0, bound) - np.log(2), guesses)


def detectable_share(*, pairs: int, attacks: int = 1) -> float:
    """Return the least true share of right guesses that a test on this number of pairs detects with probability
    `POWER`, at level `ALPHA`; NaN where no number of right guesses is significant.

    Parameters
    ----------
    pairs
        The number of pairs whose scores differ.
    attacks
        From how many attacks the best is chosen on these pairs.
    """
    for right in range(pairs // 2, pairs + 1):
        if attacks * np.exp(log_tail(right=right, pairs=pairs)) <= ALPHA:  # the smallest number that is significant
            # The true share with which at least ``right`` guesses are right with probability `POWER`.
            return float(special.betaincinv(right, pairs - right + 1, POWER))
    return float("nan")


def e_value(*, guesses: Guesses) -> float:
    """Return the evidence of ``guesses`` against retraining as an e-value: its mean is ≤ 1 under retraining, so
    e-values of independent audits may be multiplied.

    The e-value is the likelihood ratio of shares between ½ and 1, all equally likely, against ½, divided by
    ``attacks``. An e-value of at least 1/α rejects at level α, however often one looked (Vovk and Wang 2021). The
    result is at most the largest double, so that its product with 0 is a number.
    """
    right, wrong = guesses.right, guesses.pairs - guesses.right
    # Pr[Beta(right + 1, wrong + 1) > ½] = Pr[Bin(pairs + 1, ½) > wrong]
    tail = log_tail(right=wrong + 1, pairs=guesses.pairs + 1)
    log = special.betaln(right + 1.0, wrong + 1.0) + tail + (guesses.pairs + 1) * np.log(2)
    with np.errstate(over="ignore"):
        return float(min(np.exp(log) / guesses.attacks, np.finfo(np.float64).max))


def right_share(*, guesses: Guesses) -> Estimate:
    """Return the share of right guesses with its 95 % interval (½: no trace), corrected for several attacks by
    Bonferroni; NaN with the reason if all pairs are ties.

    The interval is Clopper and Pearson's. With several sets of coins, their models may know the canaries unequally
    well, so Student's t over the sets widens it.
    """
    if not guesses.pairs:
        return stats.empty(n=0, note="no pair has different scores")
    level, sets = 1 - (1 - LEVEL) / guesses.attacks, len(guesses.shares)
    exact = stats.clopper_pearson(successes=guesses.right, n=guesses.pairs, level=level)
    if sets < 2:
        return exact
    error = np.std(guesses.shares, ddof=1) / np.sqrt(sets)
    return stats.widened_rate(exact=exact, half=float(stats.t_quantile(p=(1 + level) / 2, dof=sets - 1) * error))


def best_of(*, guesses: OfAttacks, coins: Int[np.ndarray, "pairs"] | None = None) -> tuple[int, Guesses]:
    """Return the attack, in one of two directions, that has the least p-value, and the count of its guesses, which says
    from how many attacks and directions it was chosen (for Bonferroni's correction).

    P-values are compared, because attacks may abstain on different pairs. Reversed, an attack says that forgotten
    samples look less familiar.

    Parameters
    ----------
    guesses : int8 [attacks, pairs]
        The guesses of each attack, from `guess`.
    coins : int [pairs], optional
        The number of the set of coins that each pair belongs to; by default there is one set.

    Returns
    -------
    number : int
        The index k of the attack, or ~k if it is reversed.
    count : Guesses
        The right guesses of this attack, after the reversal if there is one.
    """
    counts = [count(guesses=row, coins=coins) for row in (*guesses, *-guesses)]
    best = int(np.argmin([log_tail(right=row.right, pairs=row.pairs) for row in counts]))
    number = best if best < len(guesses) else ~(best - len(guesses))
    return number, replace(counts[best], attacks=len(counts))


def p_of_all(*, guesses: OfAttacks) -> Float[np.ndarray, "attacks"]:
    """Return p-values of all attacks, corrected for their number and for both directions (Bonferroni): float64
    [attacks].

    Each attack is taken in the direction in which more of its guesses are right. The least of the p-values is that of
    the attack and direction that `best_of` chooses.

    Parameters
    ----------
    guesses
        int8 [attacks, pairs]: the guesses of each attack, from `guess`.
    """
    counts = [count(guesses=row) for row in guesses]
    tails = [log_tail(right=max(row.right, row.pairs - row.right), pairs=row.pairs) for row in counts]
    return np.asarray(np.clip(2 * len(counts) * np.exp(tails), LEAST, 1.0))


def chosen_on_half(
    *, guesses: OfAttacks, rng: np.random.Generator, coins: Int[np.ndarray, "pairs"] | None = None
) -> tuple[int, Guesses]:
    """Return the attack, in one of two directions, that is best on a random half of the pairs, and the count of its
    guesses on the other half.

    No correction is needed, because the coins of the other half did not influence the choice.

    Parameters
    ----------
    guesses : int8 [attacks, pairs]
        The guesses of each attack, from `guess`.
    rng : Generator
        Draws the half.
    coins : int [pairs], optional
        The number of the set of coins that each pair belongs to; by default there is one set.

    Returns
    -------
    number : int
        The index k of the attack, or ~k if it is reversed.
    count : Guesses
        The right guesses of this attack on the other half, after the reversal if there is one.
    """
    choosing = _random_half(guesses.shape[1], rng)
    number, _count = best_of(guesses=guesses[:, choosing])
    others = guesses[number, ~choosing] if number >= 0 else -guesses[~number, ~choosing]
    return number, count(guesses=others, coins=None if coins is None else coins[~choosing])


def likelihood_ratio(*, forgotten: Scores, heldout: Scores, rng: np.random.Generator) -> Guesses:
    """Return the count of right guesses on a random half of the pairs, by a likelihood ratio that is learned on the
    other half.

    Two Gaussians per feature are fitted, one to the forgotten and one to the held-out samples of the first half (a
    quadratic discriminant with independent features). So a shift up or down and a different spread are found.

    Parameters
    ----------
    forgotten, heldout : float [features, pairs] or [pairs]
        Scores of the two samples of each of at least four pairs, by one or more attacks.
    rng : Generator
        Draws the half.

    Returns
    -------
    Guesses

    Raises
    ------
    ValueError
        A score is NaN.
    """
    sides = [np.atleast_2d(np.asarray(score, dtype=np.float64)) for score in (forgotten, heldout)]
    learning = _random_half(sides[0].shape[1], rng)
    gaussians = [(side[:, learning].mean(axis=1), side[:, learning].std(axis=1, ddof=1)) for side in sides]
    # 1e-6 of the feature's largest score; 1e-300 if all its scores are 0.
    least_spread = 1e-6 * np.maximum(np.abs(np.concatenate(sides, axis=1)).max(axis=1), 1e-300)

    def ratio(score: np.ndarray) -> np.ndarray:
        """Return twice the log-likelihood ratio of forgotten to held-out samples, up to a constant, float64 [pairs], of
        ``score`` float64 [features, pairs].

        ``gaussians`` has the mean and the spread of each feature, of forgotten and of held-out samples. A spread below
        ``least_spread`` is raised to it, so that nothing is divided by 0.
        """
        of_forgotten, of_heldout = (
            ((score - mean[:, None]) / np.maximum(spread, least_spread)[:, None]) ** 2 for mean, spread in gaussians
        )
        return np.asarray((of_heldout - of_forgotten).sum(axis=0))

    forgotten_ratio, heldout_ratio = (ratio(side[:, ~learning]) for side in sides)
    return count(guesses=guess(forgotten=forgotten_ratio, heldout=heldout_ratio))


def pooled(*, counts: list[Guesses]) -> Guesses:
    """Return the sum of the counts of one attack, chosen without these guesses, on several models whose coins were
    drawn independently.

    Models that share coins (repeats of one split) count once: average their scores of each sample before guessing.
    """
    right, pairs, ties = (np.array([getattr(part, name) for part in counts]) for name in ("right", "pairs", "ties"))
    return Guesses(int(right.sum()), int(pairs.sum()), ties=int(ties.sum()), shares=_shares(right, pairs))


def _random_half(pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Return which pairs are in a random half of them, rounded down: bool [pairs]."""
    half = np.zeros(pairs, dtype=bool)
    half[rng.permutation(pairs)[: pairs // 2]] = True
    return half
