"""One-run audit: how often an attack guesses which of two canaries a model forgot.

A model that is like a retrained one knows nothing of the coins that chose among them. So the number of right guesses is
binomial with chance ½, and no other model is needed. After Steinke, Nasr and Jagielski (2023) and, in pairs,
Mahloujifar, Melis and Chaudhuri (2024).
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from unlearning_audit import stats
from unlearning_audit.evaluation.effects import DecisionRule, Effect
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _coins, row
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import Estimate
from unlearning_audit.stats import one_run as audit
from unlearning_audit.stats.one_run import Guesses

#: The confidence alone, which needs no shadow models; the control, which is not an attack.
PHI, CONTROL = "phi", "random"

#: The fewest pairs from which a rule is learned.
LEARNABLE = 4

#: Ways to guess that have rows for every single model.
OF_A_MODEL = (PHI, "phi_two_sided", "phi_likelihood_ratio", "extended")

Key = tuple[str, str]  # attack, form


def scores_of(case: Evaluation) -> dict[Key, np.ndarray]:
    """Return (attack, form) → scores of the attacks, and of phi alone, float64 [target models, samples] each, without
    duplicates.

    An attack that ranks all samples like an earlier one counts once (such as one that learns from both kinds of shadow
    data). The random control is always kept.
    """
    phi = case.answers(case.unlearned_files).phi(case.labels_of(case.target), case.target)
    scores = {(PHI, ""): phi}
    for key, (score, _) in (case.scores if case.scores_file else {}).items():
        finite = ~np.isnan(score)
        if key[0] == CONTROL or not any(np.array_equal(score[finite], earlier[finite]) for earlier in scores.values()):
            scores[key] = score
    return scores


def evaluate(
    *,
    scores: dict[Key, np.ndarray],
    tosses: list[_coins.Toss],
    adaptive: Collection[str],
    delta: float,
    seed: int,
) -> list[Row]:
    """Return rows ``one_run_p``, ``one_run_e``, ``right_guesses``, ``detectable_share``, ``epsilon_request``,
    ``epsilon_record`` and ``epsilon_replace``, of all models and of each.

    ``scores``: (attack, form) → float64 [models, samples], larger = more likely forgotten; ``adaptive``: names of the
    attacks of the set "adaptive". The attack column says how the guess was made:

    * ``phi``: the more confident sample was forgotten; ``phi_two_sided``: that or the reverse, whichever fits better,
      as two attacks; ``phi_likelihood_ratio``: by two Gaussians learned on one half of the pairs, evaluated on the
      other;
    * "attack/form": one attack, larger = forgotten (only where all models are evaluated together);
    * ``adaptive`` and ``extended``: the best attack of that set, or of all but the control, in both directions,
      corrected for as many attacks (Bonferroni); ``extended_half``: the attack that is best on one half of the pairs,
      evaluated on the other.

    The field ``model`` is set where one model is evaluated alone. For all models together, models that share coins add
    their scores, with the sign of their split, and guess once, so that their share of right guesses rises with their
    number. Models with different coins are independent, and their counts add up. ε is that of a single model. Raises
    ValueError for scores that are NaN for some sample of a pair.
    """
    named = {"/".join(filter(None, key)): value for key, value in scores.items()}
    attacks = [i for i, (attack, _) in enumerate(scores) if attack != CONTROL]
    labels = ["confidence" if attack == PHI else attack for attack, _ in scores]
    sets = {"adaptive": [i for i in attacks if labels[i] in adaptive], "extended": attacks}
    sets = {name: members for name, members in sets.items() if members and len(attacks) > 1}
    table = _rows(_together(named, tosses, sets, generator(seed, "one_run", "all")), None, delta, tosses)
    for toss in tosses:
        for model in toss.models.tolist():
            single = [_coins.Toss(np.array([model]), np.array([1]), *toss.of(model))]
            ways = _together(named, single, sets, generator(seed, "one_run", model))
            table += _rows({k: v for k, v in ways.items() if k in OF_A_MODEL}, model, delta, single)
    return table


def effect(*, scores: dict[Key, np.ndarray], tosses: list[_coins.Toss], rule: DecisionRule) -> Effect:
    """Return the share of right guesses by every score but the control, for each set of coins, with the p-value of the
    best of them.

    The p-value is that of the one-run audit for the best attack, corrected for all attacks in both directions. Pairs
    with equal scores count half in the share; the test leaves them out. Raises ValueError for scores that are NaN for
    some sample of a pair.
    """
    names = ["/".join(filter(None, key)) for key in scores if key[0] != CONTROL]
    guesses = _guesses([value for key, value in scores.items() if key[0] != CONTROL], tosses)
    samples = np.concatenate([np.minimum(toss.forgotten, toss.heldout) for toss in tosses])
    number = np.repeat(np.arange(len(tosses)), [len(toss.forgotten) for toss in tosses])
    index, column = np.unique(samples, return_inverse=True)
    value, weight = (np.zeros((len(names), len(tosses), len(index))) for _ in range(2))
    value[:, number, column], weight[:, number, column] = (1.0 + guesses) / 2, 1.0
    units, splits = np.arange(len(tosses)), np.zeros(len(tosses), np.int64)
    shares = stats.mean_influence(value=value, weight=weight)
    return Effect(tuple(names), *shares, units, splits, index, rule, audit.p_of_all(guesses=guesses))


Ways = dict[str, tuple[Guesses, str]]


def _together(
    scores: dict[str, np.ndarray], tosses: list[_coins.Toss], sets: dict[str, list[int]], rng: np.random.Generator
) -> Ways:
    """Return how many pairs each way to guess gets right: name of the way → its counts and a remark.

    ``evaluate`` describes the ways. ``scores``: attack → scores float64 [models, samples]; the confidence comes first.
    ``tosses``: the sets of coins, whose pairs are counted together. ``sets``: name of a set → positions of its attacks
    in ``scores``. ``rng`` halves the pairs for ways that are learned or chosen on one half and evaluated on the other.
    """
    names, phi = list(scores), next(iter(scores.values()))
    guesses = _guesses([*scores.values()], tosses)
    ways: Ways = {name: (audit.count(guesses=votes), "") for name, votes in zip(names, guesses, strict=True)}
    number, best = audit.best_of(guesses=guesses[:1])
    ways["phi_two_sided"] = best, "turned round" if number < 0 else ""
    if min(len(toss.forgotten) for toss in tosses) >= LEARNABLE:
        sides = [(phi[toss.models][:, toss.forgotten], phi[toss.models][:, toss.heldout]) for toss in tosses]
        learned = [
            audit.likelihood_ratio(forgotten=forgotten, heldout=heldout, rng=rng) for forgotten, heldout in sides
        ]
        ways["phi_likelihood_ratio"] = audit.pooled(counts=learned), "learned from the other half of the pairs"
    for name, members in sets.items():
        number, best = audit.best_of(guesses=guesses[members])
        remark = f"best of {len(members)} attacks in both directions: {_label(number, names, members)}"
        ways[name] = best, remark
    if "extended" in sets and guesses.shape[1] >= LEARNABLE:
        number, half = audit.chosen_on_half(guesses=guesses[sets["extended"]], rng=rng)
        remark = f"chosen on the other half of the pairs: {_label(number, names, sets['extended'])}"
        ways["extended_half"] = half, remark
    return ways


def _label(number: int, names: list[str], members: list[int]) -> str:
    """Return the name of the attack ``number`` of a set; a negative number means that it is turned round."""
    return names[members[number]] if number >= 0 else f"{names[members[~number]]} turned round"


def _guesses(values: list[np.ndarray], tosses: list[_coins.Toss]) -> np.ndarray:
    """Return each score's guesses: 1 right, −1 wrong, 0 for a tie, int8 [attacks, pairs of all sets of coins].

    ``values``: scores float64 [models, samples] of each attack, larger = more likely forgotten.
    """

    def lead(value: np.ndarray, toss: _coins.Toss) -> np.ndarray:
        """Return how much higher the forgotten sample of each pair scores than the held-out one, summed over models
        that share coins."""
        sums: np.ndarray = toss.sign @ (value[toss.models][:, toss.forgotten] - value[toss.models][:, toss.heldout])
        return sums

    ahead = np.array([np.concatenate([lead(value, toss) for toss in tosses]) for value in values])
    return audit.guess(forgotten=ahead, heldout=np.zeros_like(ahead))


def _rows(ways: Ways, model: int | None, delta: float, tosses: list[_coins.Toss]) -> list[Row]:
    """Return the rows of all metrics of the game, for each way to guess.

    ``ways``: name of the way → its counts of right guesses and a remark; ``model``: the number of a single model, or
    None for all together; ``tosses``: the sets of coins with their models.
    """
    models, sharing = sum(len(toss.models) for toss in tosses), max(len(toss.models) for toss in tosses)
    table = []
    for attack, (guesses, remark) in ways.items():
        together = f"{models} models, {sharing} to a coin" if models > 1 else ""
        remark = "; ".join(filter(None, (f"{guesses.right} of {guesses.pairs} right", together, remark)))
        p = audit.p_value(guesses=guesses)
        least = audit.detectable(pairs=guesses.pairs, attacks=guesses.attacks)
        none = f"a trace that guesses less than {least:.2f} right may have been missed"
        none = "too few pairs" if np.isnan(least) else none
        for metric, estimate in (
            ("one_run_p", Estimate(p, np.nan, np.nan, guesses.pairs, none if p > audit.ALPHA else "")),
            ("one_run_e", Estimate(audit.e_value(guesses=guesses), np.nan, np.nan, guesses.pairs)),
            ("detectable_share", Estimate(least, np.nan, np.nan, guesses.pairs)),
            ("epsilon_request", _request(guesses, delta, models)),
            ("epsilon_record", _shared(audit.epsilon_record(guesses=guesses, delta=delta), delta, sharing)),
            ("epsilon_replace", _shared(audit.epsilon_replace(guesses=guesses, delta=delta), delta, sharing)),
            ("right_guesses", audit.right_share(guesses=guesses)),
        ):
            noted = replace(estimate, note="; ".join(filter(None, (remark, estimate.note))))
            table.append(row(attack=attack, metric=metric, model=model, estimate=noted))
    return table


def _shared(bound: Estimate, delta: float, sharing: int) -> Estimate:
    """Return the lower bound on ε of a single model, from the ``bound`` on a guess that ``sharing`` models make
    together: the bound divided by their number. Without a value if ``delta`` is above 0 and models share guesses."""
    if delta and sharing > 1:
        return stats.empty(n=bound.n, note="models that guess together give no bound for δ above 0")
    return replace(bound, value=bound.value / sharing, low=bound.low / sharing)


def _request(guesses: Guesses, delta: float, models: int) -> Estimate:
    """Return the lower bound on ε of the whole request, or an empty estimate with the reason."""
    if delta and models > 1:
        return stats.empty(n=guesses.pairs, note="counts of several models give no bound for δ above 0")
    if delta >= audit.ALPHA / guesses.attacks:
        return stats.empty(n=guesses.pairs, note=f"δ is too large for {guesses.attacks} attacks at once")
    return audit.epsilon_request(guesses=guesses, delta=delta, models=models)
