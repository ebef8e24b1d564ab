"""One-run audit: canaries in pairs, a fair coin says which of a pair is forgotten, an attack guesses it.

A model that is what retraining gives knows nothing of the coins, so the number of right guesses W of r pairs is
Bin(r, ½) exactly. Sources: Steinke, Nasr and Jagielski 2023; in pairs Mahloujifar, Melis and Chaudhuri 2024.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from unlearning import stats
from unlearning.stats import LEVEL, Estimate

ALPHA = 0.05


@dataclass(frozen=True)
class Guesses:
    """``right`` guesses of ``pairs``, by the best of ``attacks`` or by one that was chosen elsewhere (1)."""

    right: int
    pairs: int
    attacks: int = 1


def guess(*, forgotten: np.ndarray, heldout: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which pairs are guessed right when the larger score is called forgotten, bool [..., pairs].

    ``forgotten`` and ``heldout`` float [..., pairs]: scores of the two samples of each pair, without NaN (ValueError).
    Ties are drawn by a coin of ``rng``: one half on average.
    """
    forgotten, heldout = np.asarray(forgotten, dtype=np.float64), np.asarray(heldout, dtype=np.float64)
    if forgotten.shape != heldout.shape or not forgotten.size:
        raise ValueError(f"a pair has two scores, not {forgotten.shape} forgotten and {heldout.shape} heldout ones")
    if np.isnan(forgotten).any() or np.isnan(heldout).any():
        raise ValueError("scores of the pairs hold NaN and cannot be compared")
    coin = rng.random(forgotten.shape) < 0.5
    return np.where(forgotten == heldout, coin, forgotten > heldout)


def log_tail(*, right: int, pairs: int, chance: float = 0.5) -> float:
    """ln Pr[Bin(pairs, chance) ≥ right], exact far beyond what a float holds without the logarithm."""
    if not 0 <= right <= pairs or pairs < 1:
        raise ValueError(f"{right} right guesses of {pairs} pairs are impossible")
    if right == 0:
        return 0.0
    k = np.arange(right, pairs + 1)
    choose = special.gammaln(pairs + 1) - special.gammaln(k + 1) - special.gammaln(pairs - k + 1)
    return float(min(special.logsumexp(choose + special.xlogy(k, chance) + special.xlog1py(pairs - k, -chance)), 0.0))


def p_value(*, found: Guesses, epsilon: float = 0.0, delta: float = 0.0) -> float:
    """p-value of (ε, δ)-unlearning of the request, min(1, attacks·(e^ε·Pr[Bin(r, ½) ≥ W] + δ)).

    With ε = δ = 0 that of retraining. Raises ValueError unless ε ≥ 0 and 0 ≤ δ ≤ 1.
    """
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise ValueError(f"(ε, δ)-unlearning needs ε ≥ 0 and 0 ≤ δ ≤ 1, not {epsilon} and {delta}")
    exponent = min(epsilon + log_tail(right=found.right, pairs=found.pairs), 0.0)
    return float(min(found.attacks * (np.exp(exponent) + delta), 1.0))


def epsilon_request(*, found: Guesses, delta: float = 0.0, alpha: float = ALPHA, models: int = 1) -> Estimate:
    """Lower bound on the ε of (ε, δ)-unlearning of the whole request, with confidence 1 − ``alpha``.

    max(0, ln((α/attacks − δ)/Pr[Bin(r, ½) ≥ W])). Counts that were added over ``models`` with coins of their own need
    ε each, so their bound is divided by the number (δ = 0 only). The upper limit is inf: one run bounds from
    below. Raises ValueError unless 0 ≤ δ < α/attacks, and for δ > 0 with several models.
    """
    if not 0 <= delta < alpha / found.attacks or (models > 1 and delta > 0):
        raise ValueError(f"delta must lie below alpha/attacks = {alpha / found.attacks:g}, and be 0 for several models")
    bound = np.log(alpha / found.attacks - delta) - log_tail(right=found.right, pairs=found.pairs)
    bound = max(float(bound) / models, 0.0)
    return Estimate(bound, bound, np.inf, found.pairs, f"holds with confidence {1 - alpha:g}; one-sided")


def epsilon_record(*, found: Guesses, alpha: float = ALPHA) -> Estimate:
    """Lower bound on ε as the auditing of differential privacy reads it, each pair by itself; 0 if nothing is shown.

    The largest ε with Pr[Bin(r, e^ε/(1 + e^ε)) ≥ W] ≤ α/attacks: the log-odds of Clopper and Pearson's lower limit.
    """
    if not 0 <= found.right <= found.pairs or found.pairs < 1:
        raise ValueError(f"{found.right} right guesses of {found.pairs} pairs are impossible")
    low = 0.0
    if found.right:
        low = special.betaincinv(found.right, found.pairs - found.right + 1, alpha / found.attacks)
    bound = max(float(special.logit(low)), 0.0)
    return Estimate(bound, bound, np.inf, found.pairs, f"holds with confidence {1 - alpha:g}; one-sided")


def right_share(*, found: Guesses, level: float = LEVEL) -> Estimate:
    """Share of right guesses with its exact interval (½: no trace); over several attacks that of Bonferroni."""
    return stats.clopper_pearson(successes=found.right, n=found.pairs, level=1 - (1 - level) / found.attacks)


def best_of(*, guesses: np.ndarray, two_sided: bool = False) -> tuple[int, Guesses]:
    """The attack with most right guesses, and its count to be corrected for all of them (Bonferroni).

    ``guesses`` bool [attacks, pairs]. ``two_sided``: each attack may also be turned round (forgotten samples look less
    familiar) and counts as two; the number of attack k turned round is ~k.
    """
    right = guesses.sum(axis=1)
    pairs = guesses.shape[1]
    every = np.concatenate([right, pairs - right]) if two_sided else right
    best = int(every.argmax())
    name = best if best < len(right) else ~(best - len(right))
    return name, Guesses(int(every[best]), pairs, len(every))


def chosen_on_half(*, guesses: np.ndarray, rng: np.random.Generator, two_sided: bool = True) -> tuple[int, Guesses]:
    """The attack, and its direction, that is best on a random half of the pairs, counted on the other half.

    Arguments and the number of the attack as ``best_of``. No correction is needed: the coins of the other half had no
    say. Raises ValueError below two pairs.
    """
    pairs = guesses.shape[1]
    if pairs < 2:
        raise ValueError("an attack chosen on half of the pairs needs two of them")
    learn = _half(pairs, rng)
    chosen, _ = best_of(guesses=guesses[:, learn], two_sided=two_sided)
    right = int(guesses[chosen if chosen >= 0 else ~chosen, ~learn].sum())
    tested = int((~learn).sum())
    return chosen, Guesses(right if chosen >= 0 else tested - right, tested)


def likelihood_ratio(*, forgotten: np.ndarray, heldout: np.ndarray, rng: np.random.Generator) -> Guesses:
    """Guesses by the likelihood ratio that a random half of the pairs teaches, counted on the other half.

    ``forgotten`` and ``heldout`` float64 [features, pairs]: scores of one or more attacks. Forgotten and held-out
    samples of the first half give a Gaussian each per feature (quadratic discriminant, features taken as
    independent), so that a shift to either side or another spread is found. Raises ValueError below four pairs and as
    ``guess``.
    """
    forgotten, heldout = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (forgotten, heldout))
    pairs = forgotten.shape[1]
    if pairs < 4:
        raise ValueError(f"a likelihood ratio learned from half of the pairs needs four of them, not {pairs}")
    learn = _half(pairs, rng)
    sides = [(x[:, learn].mean(axis=1), x[:, learn].std(axis=1, ddof=1)) for x in (forgotten, heldout)]
    least = 1e-6 * np.maximum(np.abs(np.concatenate([forgotten, heldout], axis=1)).max(axis=1), 1e-300)

    def ratio(x: np.ndarray) -> np.ndarray:
        logs = []
        for mean, spread in sides:
            spread = np.maximum(spread, least)[:, None]
            logs.append(-0.5 * ((x - mean[:, None]) / spread) ** 2 - np.log(spread))
        return (logs[0] - logs[1]).sum(axis=0)

    tested = ~learn
    right = guess(forgotten=ratio(forgotten[:, tested]), heldout=ratio(heldout[:, tested]), rng=rng)
    return Guesses(int(right.sum()), int(tested.sum()))


def pooled(*, found: list[Guesses]) -> Guesses:
    """Counts of several models added, for models whose coins were drawn independently.

    Models that share coins (repeats of one split) count once: average their scores of each sample before they are
    guessed by. Raises ValueError where a count was corrected for several attacks.
    """
    if not found or any(one.attacks != 1 for one in found):
        raise ValueError("counts add up for one attack that is the same on all models")
    return Guesses(sum(one.right for one in found), sum(one.pairs for one in found))


def _half(pairs: int, rng: np.random.Generator) -> np.ndarray:
    learn = np.zeros(pairs, dtype=bool)
    learn[rng.permutation(pairs)[: pairs // 2]] = True
    return learn
