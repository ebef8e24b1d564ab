"""One-run audit: how often an attack guesses which of two canaries a model forgot.

A model that is like a retrained one knows nothing of the coins that chose among the canaries. So the number of right
guesses is binomial with chance ½, and no other model is needed. After Steinke, Nasr and Jagielski (2023) and, in pairs,
Mahloujifar, Melis and Chaudhuri (2024).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from unlearning_audit.evaluation.effects import DecisionRule, Effect
from unlearning_audit.metrics import Estimate, Evaluation, Membership, Row, generator, noted, stats, table
from unlearning_audit.stats import one_run as audit
from unlearning_audit.stats.one_run import Guesses

#: The confidence alone, which needs no shadow models; the control, which is not an attack.
PHI, CONTROL = "phi", "random"

#: The fewest pairs from which an attack is learned or chosen.
LEARNABLE = 4

#: Ways to guess that have rows for every single model.
OF_A_MODEL = (PHI, "phi_two_sided", "phi_likelihood_ratio", "extended")

Key = tuple[str, str]  # attack, and its form: from which shadow models it learned ("trained" or "unlearned")


@dataclass(frozen=True)
class Toss:
    """One set of coins, each of which chose the forgotten sample of one pair, with the models that share it.

    Parameters
    ----------
    models, sign
        int64 [models]: the numbers of the models, and +1 or −1 for each.
    forgotten, heldout
        int64 [pairs]: the two samples of each pair, for models with ``sign`` +1. Models with ``sign`` −1 forgot
        ``heldout`` and never saw ``forgotten`` (the other split of a swap).
    """

    models: np.ndarray
    sign: np.ndarray
    forgotten: np.ndarray
    heldout: np.ndarray

    def of(self, model: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples that ``model`` forgot and those that it never saw, int64 [pairs] each."""
        (sign,) = self.sign[self.models == model]
        return (self.forgotten, self.heldout) if sign > 0 else (self.heldout, self.forgotten)


def tossed(member: Membership, seed: int) -> list[Toss]:
    """Return the coins of the models. If the protocol drew pairs of canaries, these pairs have the coins. If it did
    not, pairs of a forgotten and a held-out sample are drawn at random by ``seed`` (`at_random`, which raises
    ValueError for a model with other numbers of forgotten than of held-out samples)."""
    if member.pair is None:
        return at_random(member, seed)
    # The two samples of every pair. Sorted by pair they are neighbours; samples without a pair (−1) come first and are
    # cut off. A coin shows heads if a model forgot the first of the two.
    first, second = np.argsort(member.pair, kind="stable")[-(member.pair >= 0).sum() :].reshape(-1, 2).T
    return [
        Toss(models, sign, np.where(heads, first, second), np.where(heads, second, first))
        for heads, models, sign in _shared_coins(member.forget[:, first])
    ]


def at_random(member: Membership, seed: int) -> list[Toss]:
    """Return the coins of pairs that join each forgotten sample with a held-out one at random, by ``seed``.

    If the forgotten samples F and the held-out samples T were drawn uniformly and are of one size, a fair coin decides
    which sample of such a pair lies in F. The coins are independent of each other. Models with the same F and T share
    their coins. Models of the other split of a swapped pair have these coins reversed. Raises ValueError for a model
    whose F and T differ in size or are empty.
    """
    sizes = member.forget.sum(axis=1), member.heldout.sum(axis=1)
    for model, (forgotten, heldout) in enumerate(zip(*sizes, strict=True)):
        if forgotten != heldout or not forgotten:
            counts = f"{forgotten} samples and {heldout} are held out"
            raise ValueError(f"model {model} forgot {counts}; pairs need as many of both")
    tosses = []
    for number, (sides, models, sign) in enumerate(_shared_coins(np.stack([member.forget, member.heldout], axis=1))):
        forgotten, heldout = map(np.flatnonzero, sides)
        tosses.append(Toss(models, sign, generator(seed, "coins", number).permutation(forgotten), heldout))
    return tosses


def _shared_coins(coins: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield every set of ``coins`` bool [models, …] that some models share, with these models and their signs, int64
    [models] each.

    The first model of a set has sign 1, and so have models with the same coins; models with the reversed coins have
    sign −1. Coins [models, pairs] are reversed by negation, and coins [models, 2, samples] by exchanging the forgotten
    and the held-out samples.
    """
    sharing: dict[bytes, list[tuple[int, int]]] = {}  # coins → each of their models and its sign
    for model, of_model in enumerate(coins):
        turned = ~of_model if of_model.ndim == 1 else of_model[::-1]  # the reversed coins
        sign = -1 if turned.tobytes() in sharing else 1
        sharing.setdefault((of_model if sign > 0 else turned).tobytes(), []).append((model, sign))
    for model_and_sign in sharing.values():
        models, signs = np.array(model_and_sign).T
        yield coins[models[0]], models, signs  # the coins of the first model, whose sign is 1


def scores_of(evaluation: Evaluation) -> dict[Key, np.ndarray]:
    """Return (attack, form) → scores of the attacks, and of phi alone, float64 [target models, samples] each, without
    duplicates.

    An attack whose scores equal those of an earlier one is left out, such as the second form of an attack that learns
    only its decisions from the shadow models. The random control is always kept.
    """
    scores = {(PHI, ""): evaluation.audited.phi()}  # φ has no form
    for (attack, form), (score, _decision) in evaluation.scores.items():
        finite = ~np.isnan(score)
        if attack == CONTROL or not any(np.array_equal(score[finite], earlier[finite]) for earlier in scores.values()):
            scores[attack, form] = score
    return scores


def evaluate(
    *, scores: dict[Key, np.ndarray], tosses: list[Toss], adaptive: Collection[str], delta: float, seed: int
) -> list[Row]:
    """Return rows of p- and e-values (``one_run_p``, ``one_run_e``), the share of right guesses (``right_guesses``),
    the least share that so many pairs find (``detectable_share``) and lower bounds on ε of the request, of a record
    that is added or removed, and of a replaced record (``epsilon_…``), of all models and of each.

    A coin decided which sample of each pair a model forgot. The attack column says how this is guessed:

    * ``phi``: the more confident sample was forgotten; ``phi_two_sided``: that or the reverse, whichever fits better,
      as two attacks; ``phi_likelihood_ratio``: by two Gaussians learned on one half of the pairs, evaluated on the
      other;
    * "attack/form": one attack, larger = forgotten (only where all models are evaluated together);
    * ``adaptive`` and ``extended``: the best attack of that set, or of all but the control, in both directions,
      corrected for as many attacks (Bonferroni); ``extended_half``: the attack that is best on one half of the pairs,
      evaluated on the other.

    The field ``model`` is set where one model is evaluated alone, by the ways ``phi…`` and ``extended`` only. For all
    models together, models that share coins add their scores and guess once, so that their share of right guesses rises
    with their number; scores of models with reversed coins are subtracted. Models with different coins are independent,
    and their counts add up. ε is that of a single model. A set has rows if it has an attack and there are two attacks
    in all, φ included; ways that learn or choose on a half of the pairs need `LEARNABLE` pairs.

    Parameters
    ----------
    scores
        (attack, form) → float64 [models, samples], larger = more likely forgotten.
    tosses
        The sets of coins, with the models that share each.
    adaptive
        Names of the attacks of the set "adaptive".

    Raises
    ------
    ValueError
        For scores that are NaN for some sample of a pair.
    """
    named = {"/".join(filter(None, key)): value for key, value in scores.items()}  # "attack/form", or "phi"
    attacks = [i for i, (attack, _form) in enumerate(scores) if attack != CONTROL]  # positions in ``scores``
    # The name of the attack of each score: φ is the score of the attack "confidence".
    names = ["confidence" if attack == PHI else attack for attack, _form in scores]
    # Name of a set → the positions of its attacks. A set needs an attack, and something to choose from.
    sets = {"adaptive": [i for i in attacks if names[i] in adaptive], "extended": attacks}
    sets = {name: members for name, members in sets.items() if members and len(attacks) > 1}
    of_all = _counts(named, tosses, sets, generator(seed, "one_run", "all"))
    lines = _rows(of_all, model=None, delta=delta, tosses=tosses)
    for toss in tosses:
        for model in toss.models.tolist():
            # The coins of this model alone; its pairs are turned so that it has sign 1.
            own_toss = [Toss(np.array([model]), np.array([1]), *toss.of(model))]
            counts = _counts(named, own_toss, sets, generator(seed, "one_run", model))
            lines += _rows({way: counts[way] for way in counts if way in OF_A_MODEL}, model, delta, own_toss)
    return lines


def effect(*, scores: dict[Key, np.ndarray], tosses: list[Toss], rule: DecisionRule) -> Effect:
    """Return the share of right guesses by every score but the control, for each set of coins, with a p-value of each
    score.

    The influence of a pair on a share is listed under the smaller number of its two samples. The p-values are those of
    the one-run audit, corrected for all attacks in both directions. Pairs with equal scores count half in the share;
    the test leaves them out.

    Parameters
    ----------
    scores
        (attack, form) → float64 [models, samples].
    tosses
        The sets of coins, which take the place of models in the effect.

    Raises
    ------
    ValueError
        For scores that are NaN for some sample of a pair.
    """
    kept = {(attack, form): score for (attack, form), score in scores.items() if attack != CONTROL}
    names, guesses = ["/".join(filter(None, key)) for key in kept], _guesses([*kept.values()], tosses)
    sample_of_pair = np.concatenate([np.minimum(toss.forgotten, toss.heldout) for toss in tosses])
    toss_of_pair = np.repeat(np.arange(len(tosses)), [len(toss.forgotten) for toss in tosses])
    index, column = np.unique(sample_of_pair, return_inverse=True)
    value, weight = (np.zeros((len(names), len(tosses), len(index))) for _ in range(2))
    # A right guess (1) has the value 1, a tie (0) ½, a wrong guess (−1) 0.
    value[:, toss_of_pair, column], weight[:, toss_of_pair, column] = (1.0 + guesses) / 2, 1.0
    # Each set of coins is a unit of its own; the number of its one split is 0.
    units, splits = np.arange(len(tosses)), np.zeros(len(tosses), np.int64)
    # Three fields of `Effect`: the shares, the influence of each pair on them, and the influence of imaginary pairs.
    shares = stats.mean_influence(value=value, weight=weight)
    p = audit.p_of_all(guesses=guesses)
    return Effect(tuple(names), *shares, unit=units, split=splits, index=index, rule=rule, p=p)


#: Way to guess (`evaluate` describes them) → the counts of its right guesses, and a remark.
Counts = dict[str, tuple[Guesses, str]]


def _counts(
    scores: dict[str, np.ndarray], tosses: list[Toss], sets: dict[str, list[int]], rng: np.random.Generator
) -> Counts:
    """Return name of each way to guess → how many pairs it gets right, and a remark on it.

    ``rng`` halves the pairs for ways that are learned or chosen on one half and evaluated on the other.

    Parameters
    ----------
    scores
        Attack → scores float64 [models, samples]; the confidence comes first.
    tosses
        The sets of coins, whose pairs are counted together. If some set has fewer than `LEARNABLE` pairs,
        "phi_likelihood_ratio" is left out; if all together have fewer, so is "extended_half".
    sets
        Name of a set → positions of its attacks in ``scores``.
    """
    names, phi = list(scores), next(iter(scores.values()))
    guesses = _guesses([*scores.values()], tosses)
    coins = np.repeat(np.arange(len(tosses)), [len(toss.forgotten) for toss in tosses])  # the set of each pair
    of_each = (audit.count(guesses=row, coins=coins) for row in guesses)
    counts: Counts = {name: (of_attack, "") for name, of_attack in zip(names, of_each, strict=True)}
    # ``number`` is below 0 if the attack is turned round.
    number, best = audit.best_of(guesses=guesses[:1], coins=coins)
    counts["phi_two_sided"] = best, "turned round" if number < 0 else ""
    if min(len(toss.forgotten) for toss in tosses) >= LEARNABLE:
        # The features of the forgotten and of the held-out sample of each pair, float64 [models, pairs] each: φ of all
        # models that share coins.
        features = [(phi[toss.models][:, toss.forgotten], phi[toss.models][:, toss.heldout]) for toss in tosses]
        learned = [audit.likelihood_ratio(forgotten=forgot, heldout=heldout, rng=rng) for forgot, heldout in features]
        counts["phi_likelihood_ratio"] = audit.pooled(counts=learned), "learned from the other half of the pairs"
    for name, members in sets.items():
        number, best = audit.best_of(guesses=guesses[members], coins=coins)
        remark = f"best of {len(members)} attacks in both directions: {_attack_name(number, names, members)}"
        counts[name] = best, remark
    if "extended" in sets and guesses.shape[1] >= LEARNABLE:
        number, on_other_half = audit.chosen_on_half(guesses=guesses[sets["extended"]], rng=rng, coins=coins)
        remark = f"chosen on the other half of the pairs: {_attack_name(number, names, sets['extended'])}"
        counts["extended_half"] = on_other_half, remark
    return counts


def _attack_name(number: int, names: list[str], members: list[int]) -> str:
    """Return the name of a chosen attack.

    Parameters
    ----------
    number
        Its position k in ``members``, or ~k if it is turned round.
    members
        The positions of a set's attacks in ``names``.
    """
    return names[members[number]] if number >= 0 else f"{names[members[~number]]} turned round"


def _guesses(scores: list[np.ndarray], tosses: list[Toss]) -> np.ndarray:
    """Return whether each score guesses right which sample of each pair was forgotten: 1 right, −1 wrong, 0 for a tie,
    int8 [attacks, pairs].

    Parameters
    ----------
    scores
        float64 [models, samples] of each attack, larger = more likely forgotten.
    tosses
        The sets of coins; the pairs of all sets follow one another in the result.
    """

    def lead(score: np.ndarray, toss: Toss) -> np.ndarray:
        """Return how much higher the forgotten sample of each pair scores than the held-out one, summed over models
        that share coins: float64 [pairs]."""
        return np.asarray(toss.sign @ (score[toss.models][:, toss.forgotten] - score[toss.models][:, toss.heldout]))

    leads = np.array([np.concatenate([lead(score, toss) for toss in tosses]) for score in scores])
    return audit.guess(forgotten=leads, heldout=np.zeros_like(leads))


def _rows(counts: Counts, model: int | None, delta: float, tosses: list[Toss]) -> list[Row]:
    """Return the rows of all metrics of the one-run audit, for each way to guess in ``counts``.

    Parameters
    ----------
    model
        The number of a single model, or None for all together.
    delta
        The δ of the bounds on ε.
    tosses
        The sets of coins with their models.
    """
    models, sharing = sum(len(toss.models) for toss in tosses), max(len(toss.models) for toss in tosses)
    together = f"{models} models, {sharing} to a coin" if models > 1 else ""
    lines = []
    for attack, (guesses, remark) in counts.items():
        remark = "; ".join(filter(None, (f"{guesses.right} of {guesses.pairs} right", together, remark)))
        p = audit.p_value(guesses=guesses)
        least = audit.detectable_share(pairs=guesses.pairs, attacks=guesses.attacks)
        undetected = f"a trace that guesses less than {least:.2f} right may have been missed"
        missed = "too few pairs" if np.isnan(least) else undetected  # NaN: no number of right guesses is significant
        note, n = missed if p > audit.ALPHA else "", guesses.pairs  # p > ALPHA: no trace was found
        estimates: dict[str, Estimate] = {
            "one_run_p": Estimate(p, low=np.nan, high=np.nan, n=n, note=note),
            "one_run_e": Estimate(audit.e_value(guesses=guesses), low=np.nan, high=np.nan, n=n),
            "detectable_share": Estimate(least, low=np.nan, high=np.nan, n=n),
            "epsilon_request": _bound_of_request(guesses, delta, models),
            "epsilon_record": _bound_of_model(audit.epsilon_record(guesses=guesses, delta=delta), delta, sharing),
            "epsilon_replace": _bound_of_model(audit.epsilon_replace(guesses=guesses, delta=delta), delta, sharing),
            "right_guesses": audit.right_share(guesses=guesses),
        }
        with_remark = {name: noted(estimate, remark) for name, estimate in estimates.items()}
        lines += table(with_remark, attack=attack, model=model)
    return lines


def _bound_of_model(bound: Estimate, delta: float, sharing: int) -> Estimate:
    """Return the lower bound on ε of a single model, from the ``bound`` on a guess that ``sharing`` models make
    together: the bound divided by their number. Without a value if ``delta`` is above 0 and models share guesses."""
    if delta and sharing > 1:
        return stats.empty(n=bound.n, note="models that guess together give no bound for δ above 0")
    return replace(bound, value=bound.value / sharing, low=bound.low / sharing)


def _bound_of_request(guesses: Guesses, delta: float, models: int) -> Estimate:
    """Return the lower bound on ε of the whole request from the ``guesses`` on ``models`` models.

    The estimate is empty, with the reason, if ``delta`` is above 0 and there are several models, or if it is too large
    for the number of attacks.
    """
    if delta and models > 1:
        return stats.empty(n=guesses.pairs, note="counts of several models give no bound for δ above 0")
    if delta >= audit.ALPHA / guesses.attacks:
        return stats.empty(n=guesses.pairs, note=f"δ is too large for {guesses.attacks} attacks at once")
    return audit.epsilon_request(guesses=guesses, delta=delta, models=models)
