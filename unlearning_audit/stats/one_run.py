"""One-run audit: a fair coin chooses which sample (canary) of each pair is forgotten, and an attack guesses it.

A model that is like a retrained one knows nothing of the coins, so the number of right guesses W of r pairs is Bin(r,
½) exactly. Pairs whose two scores are equal abstain. Given which pairs abstain, the other coins are still fair, so r
counts only those, and no guess is drawn at random. Sources: Steinke, Nasr and Jagielski 2023; in pairs Mahloujifar,
Melis and Chaudhuri 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from unlearning_audit import stats
from unlearning_audit.stats import LEVEL, Estimate

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ALPHA = 0.05
LEAST = np.finfo(np.float64).tiny  # no p-value is 0, however small
STEPS = 60  # bisections of a probability


@dataclass(frozen=True)
class Guesses:
    """The number of ``right`` guesses among ``pairs`` whose two scores differ.

    ``attacks``: from how many attacks the best was chosen by these guesses; 1 for an attack that was chosen without
    them; ``ties``: how many further pairs have equal scores.
    """

    right: int
    pairs: int
    attacks: int = 1
    ties: int = 0


def guess(
    *, forgotten: Float[np.ndarray, "... pairs"], heldout: Float[np.ndarray, "... pairs"]
) -> Int[np.ndarray, "... pairs"]:
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
        A score is NaN, there are no pairs, or shapes differ.
    """
    forgotten, heldout = np.asarray(forgotten, dtype=np.float64), np.asarray(heldout, dtype=np.float64)
    if forgotten.shape != heldout.shape or not forgotten.size:
        raise ValueError(f"a pair has two scores, not {forgotten.shape} forgotten and {heldout.shape} heldout ones")
    if np.isnan(forgotten).any() or np.isnan(heldout).any():
        raise ValueError("scores of the pairs hold NaN and cannot be compared")
    return (forgotten > heldout).astype(np.int8) - (forgotten < heldout)


def count(*, guesses: Int[np.ndarray, "pairs"]) -> Guesses:
    """Count the ``guesses`` int8 [pairs] of one attack, which `guess` returns."""
    return Guesses(int((guesses > 0).sum()), int((guesses != 0).sum()), ties=int((guesses == 0).sum()))


@lru_cache(maxsize=1 << 16)  # an audit reads few counts thousands of times
def log_tail(*, right: int, pairs: int, chance: float = 0.5) -> float:
    """Return ln Pr[Bin(pairs, chance) ≥ right], which is exact even where the probability itself would round to 0.

    Raises ValueError unless 0 ≤ right ≤ pairs.
    """
    if not 0 <= right <= pairs:
        raise ValueError(f"{right} right guesses of {pairs} pairs are impossible")
    if right == 0:
        return 0.0
    k = np.arange(right, pairs + 1)
    choose = special.gammaln(pairs + 1) - special.gammaln(k + 1) - special.gammaln(pairs - k + 1)
    return float(min(special.logsumexp(choose + special.xlogy(k, chance) + special.xlog1py(pairs - k, -chance)), 0.0))


def p_value(*, guesses: Guesses, epsilon: float = 0.0, delta: float = 0.0) -> float:
    """Return the p-value of (ε, δ)-unlearning of the request, min(1, attacks·(e^ε·Pr[Bin(r, ½) ≥ W] + δ)).

    Parameters
    ----------
    guesses : Guesses
        The number W of right guesses of r pairs, and from how many attacks the best was chosen.
    epsilon, delta : float
        The budget ε ≥ 0 and 0 ≤ δ ≤ 1 of the hypothesis. With ε = δ = 0 it is that the model is retrained.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        ε or δ is outside these ranges.
    """
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise ValueError(f"(ε, δ)-unlearning needs ε ≥ 0 and 0 ≤ δ ≤ 1, not {epsilon} and {delta}")
    exponent = min(epsilon + log_tail(right=guesses.right, pairs=guesses.pairs), 0.0)
    return float(np.clip(guesses.attacks * (np.exp(exponent) + delta), LEAST, 1.0))


def epsilon_request(*, guesses: Guesses, delta: float = 0.0, alpha: float = ALPHA, models: int = 1) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-unlearning of the whole request, with confidence 1 − α.

    The bound is max(0, ln((α/attacks − δ)/Pr[Bin(r, ½) ≥ W])). If the guesses are of several models, each of them needs
    that ε, so the bound is divided by their number.

    Parameters
    ----------
    guesses : Guesses
        The number W of right guesses of r pairs, and from how many attacks the best was chosen.
    delta : float
        δ, at least 0 and below α/attacks; 0 for several models.
    alpha : float
        The error rate α.
    models : int
        Over how many models, each with coins of its own, the guesses were counted.

    Returns
    -------
    Estimate
        The upper limit is inf, because one run bounds ε from below only.

    Raises
    ------
    ValueError
        δ is outside its range.
    """
    if not 0 <= delta < alpha / guesses.attacks or (models > 1 and delta > 0):
        raise ValueError(
            f"delta must lie below alpha/attacks = {alpha / guesses.attacks:g}, and be 0 for several models"
        )
    bound = np.log(alpha / guesses.attacks - delta) - log_tail(right=guesses.right, pairs=guesses.pairs)
    bound = max(float(bound) / models, 0.0)
    return Estimate(bound, bound, np.inf, guesses.pairs, f"holds with confidence {1 - alpha:g}; one-sided")


def epsilon_replace(*, guesses: Guesses, delta: float = 0.0, alpha: float = ALPHA) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-differential privacy where one record of a pair replaces the other, with
    confidence 1 − α; 0 if nothing is shown.

    The bound is the largest ε for which (ε, δ) would give as many right guesses with probability ≤ α/attacks. For δ = 0
    it is the log-odds of Clopper and Pearson's lower limit. For δ > 0 the probability is at most f(W) + 2·m·δ·max_i
    (f(W − i) − f(W))/i. Here f(v) = Pr[Bin(r, e^ε/(1 + e^ε)) ≥ v], and m counts all pairs, including those that abstain
    (Steinke, Nasr and Jagielski 2023, theorem 5.2).

    Parameters
    ----------
    guesses : Guesses
        The number W of right guesses of r pairs, how many pairs abstain, and from how many attacks the best was chosen.
    delta : float
        δ, from 0 to 1.
    alpha : float
        The error rate α.

    Returns
    -------
    Estimate
        The upper limit is inf.

    Raises
    ------
    ValueError
        δ or the number of right guesses is out of range.
    """
    if not 0 <= guesses.right <= guesses.pairs:
        raise ValueError(f"{guesses.right} right guesses of {guesses.pairs} pairs are impossible")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie between 0 and 1, not {delta}")
    level, low = alpha / guesses.attacks, 0.0
    if guesses.right and not delta:
        low = special.betaincinv(guesses.right, guesses.pairs - guesses.right + 1, level)
    elif guesses.right and _likely(guesses, 0.5, delta) <= level:
        low, high = 0.5, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _likely(guesses, middle, delta) <= level else (low, middle)
    bound = max(float(special.logit(low)), 0.0)
    return Estimate(bound, bound, np.inf, guesses.pairs, f"holds with confidence {1 - alpha:g}; one-sided")


def _likely(guesses: Guesses, chance: float, delta: float) -> float:
    """Return an upper bound on the probability of at least as many right ``guesses`` under (ε, δ)-differential privacy,
    with ``chance`` = e^ε/(1 + e^ε)."""
    step = np.arange(1, guesses.right + 1)
    tail = special.bdtrc(guesses.right - 1.0, guesses.pairs, chance)
    less = np.where(step < guesses.right, special.bdtrc(guesses.right - step - 1.0, guesses.pairs, chance), 1.0)
    return float(tail + 2 * (guesses.pairs + guesses.ties) * delta * ((less - tail) / step).max())


def epsilon_record(*, guesses: Guesses, delta: float = 0.0, alpha: float = ALPHA) -> Estimate:
    """Return a lower bound on the ε of (ε, δ)-differential privacy where a record is added or removed, with confidence
    1 − α. Budgets of DP-SGD are stated so.

    The bound is ln((1 + e^ε)/2) with the ε of `epsilon_replace`. If the distributions of two outputs both lie within
    e^ε of a third, the smaller one holds a share e^−ε of it. So at most 1 − e^−ε/2 of the guesses can be right.

    Parameters
    ----------
    guesses : Guesses
        The number of right guesses of all pairs, how many pairs abstain, and from how many attacks the best was chosen.
    delta : float
        δ, from 0 to 1.
    alpha : float
        The error rate α.

    Returns
    -------
    Estimate
        The upper limit is inf.

    Raises
    ------
    ValueError
        δ or the number of right guesses is out of range.
    """
    both = epsilon_replace(guesses=guesses, delta=delta, alpha=alpha)
    bound = float(np.logaddexp(0.0, both.value) - np.log(2))
    return replace(both, value=bound, low=bound)


def detectable(*, pairs: int, attacks: int = 1, alpha: float = ALPHA, power: float = 0.8) -> float:
    """Return the least true share of right guesses that a test on so many pairs detects.

    Parameters
    ----------
    pairs : int
        The number of pairs whose scores differ.
    attacks : int
        From how many attacks the best is chosen on these pairs.
    alpha : float
        The level of the test.
    power : float
        The probability of detection.

    Returns
    -------
    float
        NaN where no number of right guesses is significant.
    """
    least = next(
        (v for v in range(pairs // 2, pairs + 1) if attacks * np.exp(log_tail(right=v, pairs=pairs)) <= alpha), None
    )
    if least is None or not pairs:
        return float("nan")
    return float(special.betaincinv(least, pairs - least + 1, power))


def e_value(*, guesses: Guesses) -> float:
    """Return the evidence of ``guesses`` against retraining as an e-value: its mean is ≤ 1 under retraining, so
    e-values of independent audits may be multiplied.

    The e-value is the likelihood ratio of shares between ½ and 1, all equally likely, against ½, divided by
    ``attacks``. At or above 1/α it rejects at level α, however often one looked (Vovk and Wang 2021). It is at most the
    largest double, so that its product with 0 is a number.
    """
    right, wrong = guesses.right, guesses.pairs - guesses.right
    # Pr[Beta(right + 1, wrong + 1) > ½] = Pr[Bin(pairs + 1, ½) > wrong]
    tail = log_tail(right=wrong + 1, pairs=guesses.pairs + 1)
    log = special.betaln(right + 1.0, wrong + 1.0) + tail + (guesses.pairs + 1) * np.log(2)
    with np.errstate(over="ignore"):
        return float(min(np.exp(log) / guesses.attacks, np.finfo(np.float64).max))


def right_share(*, guesses: Guesses, level: float = LEVEL) -> Estimate:
    """Return the share of right guesses with its exact interval at ``level`` (½: no trace), corrected for several
    attacks by Bonferroni; NaN with the reason if all pairs are ties."""
    if not guesses.pairs:
        return stats.empty(n=0, note="no pair has different scores")
    return stats.clopper_pearson(successes=guesses.right, n=guesses.pairs, level=1 - (1 - level) / guesses.attacks)


def best_of(*, guesses: Int[np.ndarray, "attacks pairs"], two_sided: bool = False) -> tuple[int, Guesses]:
    """Choose the attack with the least p-value; return its number, and its count, to be corrected for all attacks
    (Bonferroni).

    P-values are compared, because attacks may abstain on different pairs.

    Parameters
    ----------
    guesses : int8 [attacks, pairs]
        The guesses of each attack, from `guess`.
    two_sided : bool
        Whether each attack may also be reversed (forgotten samples look less familiar) and counts as two.

    Returns
    -------
    number : int
        The index k of the attack, or ~k if it is reversed.
    count : Guesses
        Its right guesses, after the reversal if there is one.
    """
    counts = [count(guesses=row) for row in guesses]
    candidates = counts + [replace(row, right=row.pairs - row.right) for row in counts] * two_sided
    best = int(np.argmin([log_tail(right=row.right, pairs=row.pairs) for row in candidates]))
    name = best if best < len(counts) else ~(best - len(counts))
    return name, replace(candidates[best], attacks=len(candidates))


def p_of_all(*, guesses: Int[np.ndarray, "attacks pairs"]) -> Float[np.ndarray, "attacks"]:
    """Return p-values of all attacks, corrected for their number and for both directions (Bonferroni): float64
    [attacks].

    ``guesses`` int8 [attacks, pairs], from `guess`. Each attack is taken in the direction that fits it better. The
    least of the p-values is that of the attack which `best_of` chooses in both directions.
    """
    counts = [count(guesses=row) for row in guesses]
    tails = [min(log_tail(right=right, pairs=row.pairs) for right in (row.right, row.pairs - row.right))
             for row in counts]  # fmt: skip
    p: np.ndarray = np.clip(2 * len(counts) * np.exp(tails), LEAST, 1.0)
    return p


def chosen_on_half(
    *, guesses: Int[np.ndarray, "attacks pairs"], rng: np.random.Generator, two_sided: bool = True
) -> tuple[int, Guesses]:
    """Choose the attack, and its direction, that is best on a random half of the pairs; return its number, and its
    count on the other half.

    No correction is needed, because the coins of the other half did not influence the choice.

    Parameters
    ----------
    guesses : int8 [attacks, pairs]
        The guesses of each attack, from `guess`.
    rng : Generator
        Draws the half.
    two_sided : bool
        Whether attacks may also be reversed.

    Returns
    -------
    number : int
        The index k of the attack, or ~k if it is reversed.
    count : Guesses
        Its right guesses on the other half, after the reversal if there is one.

    Raises
    ------
    ValueError
        There are fewer than two pairs.
    """
    pairs = guesses.shape[1]
    if pairs < 2:
        raise ValueError("an attack chosen on half of the pairs needs two of them")
    learn = _half(pairs, rng)
    number, _ = best_of(guesses=guesses[:, learn], two_sided=two_sided)
    rest = guesses[number if number >= 0 else ~number, ~learn]
    return number, count(guesses=rest if number >= 0 else -rest)


def likelihood_ratio(
    *,
    forgotten: Float[np.ndarray, "attacks pairs"],
    heldout: Float[np.ndarray, "attacks pairs"],
    rng: np.random.Generator,
) -> Guesses:
    """Learn a likelihood ratio on a random half of the pairs; return the count of its guesses on the other half.

    Two Gaussians per feature are fitted, one to the forgotten and one to the held-out samples of the first half (a
    quadratic discriminant with independent features). So a shift to either side or a different spread is found.

    Parameters
    ----------
    forgotten, heldout : float [features, pairs] or [pairs]
        Scores of the two samples of each pair, by one or more attacks.
    rng : Generator
        Draws the half.

    Returns
    -------
    Guesses

    Raises
    ------
    ValueError
        There are fewer than four pairs, or a score is NaN.
    """
    forgotten, heldout = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (forgotten, heldout))
    pairs = forgotten.shape[1]
    if pairs < 4:
        raise ValueError(f"a likelihood ratio learned from half of the pairs needs four of them, not {pairs}")
    learn = _half(pairs, rng)
    sides = [(x[:, learn].mean(axis=1), x[:, learn].std(axis=1, ddof=1)) for x in (forgotten, heldout)]
    least = 1e-6 * np.maximum(np.abs(np.concatenate([forgotten, heldout], axis=1)).max(axis=1), 1e-300)

    def ratio(x: np.ndarray) -> np.ndarray:
        """Return the log-likelihood ratio of forgotten to held-out samples, float64 [pairs]."""
        logs = []
        for mean, spread in sides:
            spread = np.maximum(spread, least)[:, None]
            logs.append(-0.5 * ((x - mean[:, None]) / spread) ** 2 - np.log(spread))
        difference: np.ndarray = (logs[0] - logs[1]).sum(axis=0)
        return difference

    tested = ~learn
    return count(guesses=guess(forgotten=ratio(forgotten[:, tested]), heldout=ratio(heldout[:, tested])))


def pooled(*, counts: list[Guesses]) -> Guesses:
    """Add the counts of one attack on several models whose coins were drawn independently.

    Models that share coins (repeats of one split) count once: average their scores of each sample before guessing.
    Raises ValueError for no counts, and where a count was corrected for several attacks.
    """
    if not counts or any(guesses.attacks != 1 for guesses in counts):
        raise ValueError("counts add up for one attack that is the same on all models")
    right, pairs, ties = (sum(getattr(guesses, name) for guesses in counts) for name in ("right", "pairs", "ties"))
    return Guesses(right, pairs, ties=ties)


def _half(pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a random half of the pairs, rounded down: bool [pairs]."""
    learn = np.zeros(pairs, dtype=bool)
    learn[rng.permutation(pairs)[: pairs // 2]] = True
    return learn
