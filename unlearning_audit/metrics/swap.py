"""The SWAP test: Unlearning Quality Q, the advantages behind it, and the MIA score (Tu, Hu and Ma 2024)."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from unlearning_audit.evaluation.effects import OF_SAMPLES, DecisionRule, Effect, several
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Membership, Row, _crossfit, _game, noted, nothing, one_minus, or_reason, row, stats
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings
from unlearning_audit.stats import crossed, tail
from unlearning_audit.stats.readings import tpr_at

FPRS = (0.01, 0.001)
Key = tuple[str, str]  # attack, and its form: from which shadow models it learned ("trained" or "unlearned")


def advantage_bound(*, epsilon: float, delta: float) -> float:
    """Return the largest advantage against (ε, δ)-certified removal, 2(1 − (2 − 2δ)/(e^ε + 1)) cut to [0, 1] (Theorem
    3.6).

    Beyond ε = ln 3 (δ = 0) the theorem's value exceeds 1 and bounds nothing. ε ≥ 0 and 0 ≤ δ ≤ 1.
    """
    return float(min(2 * (np.tanh(epsilon / 2) + 2 * delta * special.expit(-epsilon)), 1.0))


def lower_bound(*, epsilon: float, delta: float) -> float:
    """Return the least Q of (ε, δ)-certified removal, (4 − 4δ)/(e^ε + 1) − 1 cut to [0, 1] (Corollary 3.8).

    The uncut value falls to −1 for large ε, where the corollary bounds nothing. The bound also holds for a model that
    was trained with the budget (ε, δ) for one sample and left unchanged. Such a model does not remove all of F at that
    budget. Yet against weak adversaries its Q is not lower: over all splits, exchanging one sample is (2ε, (1 +
    e^ε)δ)-DP, so that Adv ≤ tanh ε + 2δ(1 + e^ε)/(1 + e^2ε), which is never above ``advantage_bound``.
    """
    return 1.0 - advantage_bound(epsilon=epsilon, delta=delta)


def adv_bar(reading: crossed.Reading, *, n: int) -> list[stats.Estimate]:
    """Return Adv̄ of each adversary: the absolute value of its advantage, whose sign the note gives.

    ``reading``: the signed advantages, from `crossed.read`; ``n``: the number of samples. The lower limit is 0 where
    the interval of the signed advantage contains 0.
    """
    limits = zip(*_magnitude(reading, crossed.half_widths(reading)), reading.value, strict=True)
    return [
        stats.Estimate(float(size), float(low), float(high), n, crossed.annotated(reading, f"signed {signed:+.4f}"))
        for size, low, high, signed in limits
    ]


def quality(
    reading: crossed.Reading, *, n: int, rng: np.random.Generator, names: Sequence[str] = (), draws: int = crossed.DRAWS
) -> stats.Estimate:
    """Return Q = 1 − max over adversaries of Adv̄, from the advantages of all of them (Definition 3.7).

    ``reading``: the signed advantages, from `crossed.read`; ``n``: the number of samples; ``names`` of the adversaries:
    with them, the note names the strongest; ``draws`` from ``rng`` give the intervals of the advantages, which hold for
    all adversaries at once. The limits of Q are 1 minus the largest of their upper limits, and 1 minus the largest of
    their lower ones.
    """
    size, low, high = _magnitude(reading, crossed.joint_half_widths(reading, rng=rng, draws=draws))
    note = crossed.annotated(reading, f"strongest: {names[int(size.argmax())]}" if names else "")
    return stats.Estimate(float(1 - size.max()), float(1 - high.max()), float(1 - low.max()), n, note)


#: Q is over sets of attacks. "paper": the adversaries of Tu, Hu & Ma 2024, §4.1, that learn from trained shadow models.
#: "adaptive": these and entropy, which also know the unlearning algorithm and learn from unlearned shadow models too.
ATTACK_SETS = {
    "paper": ("correctness", "confidence", "modified_entropy", "shadow"),
    "adaptive": ("correctness", "confidence", "modified_entropy", "shadow", "entropy"),
}

#: Protocols of pairs of splits with shadow models.
PAIRED = ("swap", "random_splits")

NEEDS = ("game",)
DEFAULT = ("game", "imported")

QUANTITIES = (
    Quantity(
        "q", "Q", "higher", primary=True, system="SWAP test", ideal=1.0, attacks=("adaptive", "paper", "extended"),
        printed="unlearning_quality",
        reading="Unlearning quality: 1 minus the advantage of the strongest attack. 1 = nothing left to find, 0 = "
        "every forgotten sample is recognised. Compare with retraining.",
        columns=(Column(1, "Q"),),
        comparisons=(
            Comparison("Q", 1, attack="adaptive", ideal=1.0, shadows=PAIRED),
            Comparison("Q, extended", 2, attack="extended", ideal=1.0, shadows=PAIRED),
        ),
    ),
    Quantity(
        "q_crossfit", "Q, cross-fitted", "higher", ideal=1.0, attacks=("adaptive", "paper", "extended"),
        reading="Q with the strongest attack chosen on one half of the samples and read on the other, which removes "
        "the pessimism of choosing among many attacks.",
        columns=(Column(2, "Q, cross-fitted"),),
        comparisons=(Comparison("Q, cross-fitted", 3, attack="adaptive", ideal=1.0, shadows=PAIRED),),
    ),
    Quantity(
        "q_sd", "sd of Q over pairs", "lower", attacks=("adaptive", "paper", "extended"),
        printed="std_unlearning_quality_{protocol}",
        reading="Standard deviation of Q over pairs of splits: smaller = more reproducible.",
    ),
    Quantity(
        "mia_score", "MIA score",
        reading="1 minus the AUC of one attack that tells forgotten from held-out samples: 0.5 = chance, below = the "
        "attack succeeds, above = forgotten samples look less known than unseen ones.",
        columns=(Column(11, "MIA score", interval=False),),
        comparisons=(Comparison("MIA score", 4, attack="confidence/trained", ideal=0.5, two_sided=True),),
    ),
    Quantity(
        "advantage", "advantage", "lower",
        reading="How much more often the attack says yes to forgotten than to held-out samples.",
    ),
    Quantity("auc", "AUC", reading="Area under the ROC curve of forgotten against held-out samples: 0.5 = chance."),
    Quantity(
        "tpr_at_fpr", "TPR at fixed FPR",
        reading="Share of forgotten samples recognised at this rate of false alarms; chance = the rate.",
    ),
    Quantity(
        "tail_advantage", "tail advantage", "lower", ideal=0.0,
        reading="Share of forgotten samples that stand out as one in a hundred held-out samples does, less "
        "that one in a hundred, samples counted alike whatever their sensitivity: what an average does not show.",
    ),
    Quantity(
        "lower_bound", "guaranteed Q",
        reading="Least Q that the privacy budget of training guarantees.",
    ),
    Quantity(
        "update_auc", "AUC of both models",
        reading="Area under the ROC curve of forgotten against held-out samples by how both models, before unlearning "
        "and after, differ. The models before know the forgotten samples, so retraining is not at chance either: "
        "compare with its row. Below it less was forgotten, above it the method gives away what was.",
    ),
)  # fmt: skip


class Options(Settings):
    """``fpr``: the false positive rates at which TPR is given."""

    fpr: FalsePositiveRates = FPRS


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return advantages and AUCs of all attacks on forgotten against held-out samples of the target models, and Q of
    each set of attacks. The AUCs of attacks that compare models before and after unlearning follow.

    An attack that could not run has a row with the reason.
    """
    target = evaluation.membership[evaluation.target]
    missing = [nothing("advantage", why, attack=name) for name, why in evaluation.missing.items()]
    return read(evaluation, target, rng, options.fpr) + missing + update_rows(evaluation, target)


def read(
    evaluation: Evaluation, target: Membership, rng: np.random.Generator, fprs: Sequence[float] = FPRS
) -> list[Row]:
    """Return advantages, AUCs and Q (the rows of `evaluate`) on the forgotten and held-out samples of the models
    ``target``.

    Q is over the paper's adversaries, over the adaptive ones and over all but the random control. A set of which the
    study runs no adversary has no rows. A set of which an adversary failed has no Q, because that of the others would
    be another number under the same name. Models that are not swapped pairs have no Q either, and no rows of single
    pairs. In place of a missing Q, a row gives the reason. Without scores, only such rows are returned.
    """
    # Why there is no Q, or "".
    no_q = evaluation.unpaired or ("no attack could be asked" if evaluation.imported and not evaluation.scores else "")
    sets, reasons = ({}, [nothing("q", no_q, attack="adaptive")]) if no_q else adversaries(evaluation)
    if not evaluation.scores:
        return reasons

    def table() -> list[Row]:
        """Return the rows of all attacks and of all sets of attacks."""
        used = {name: members for name, members in sets.items() if members}
        return evaluate(scores=evaluation.scores, target=target, sets=used, rng=rng, fprs=fprs, draws=evaluation.draws)

    return reasons + [line for line in or_reason(evaluation, table, "advantage") if line.pair is None or not no_q]


def adversaries(evaluation: Evaluation) -> tuple[dict[str, list[Key]], list[Row]]:
    """Return the sets over which Q takes the maximum, name → (attack, form) of each member, and, for each set of which
    an attack failed, a row with the reason in its place.

    In the form "trained" an attack learned from shadow models before unlearning, in "unlearned" from those after it.
    The attack "random" is a control.
    """
    paper, adaptive, scores = evaluation.sets["paper"], evaluation.sets["adaptive"], evaluation.scores
    sets = {
        "paper": [key for key in scores if key[0] in paper and key[1] == "trained"],
        "adaptive": [key for key in scores if key[0] in adaptive],
        "extended": [key for key in scores if key[0] != "random"],
    }
    failed = {attack: why for attack, why in evaluation.failed_attacks.items() if attack != "random"}
    attacks_of = {"paper": paper, "adaptive": adaptive, "extended": failed}
    failed_in = {name: [attack for attack in failed if attack in attacks] for name, attacks in attacks_of.items()}
    reasons = [
        nothing("q", f"the attack {attacks[0]} failed: {failed[attacks[0]]}", attack=name)
        for name, attacks in failed_in.items()
        if attacks
    ]
    return {name: keys for name, keys in sets.items() if not failed_in[name]}, reasons


#: Retraining leaves no advantage to any attack, because which of the drawn samples are forgotten is a random draw, of
#: which retrained models know nothing.
DECIDES = {
    "advantage": DecisionRule(1, "advantage", ideal=0.0, units="pairs", chance=OF_SAMPLES, lowest=-1.0, highest=1.0),
    "tail_advantage": DecisionRule(
        1, "tail", ideal=0.0, units="pairs", chance=OF_SAMPLES, two_sided=False, lowest=-tail.SHARE, highest=1.0,
        coarse=True, coarse_margin=tail.REMEMBERED,
    ),
}  # fmt: skip

#: Without unlearning the AUC of an attack on both models is .5. That of retraining is known from retrained models only,
#: even if the forgotten samples are drawn at random.
UPDATES = {"update_auc": DecisionRule(-1, "auc", units="pairs", lowest=0.0, highest=1.0, coarse=True)}
NOT_AT_CHANCE = "retrained models are not at chance: compare with them"


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "advantage", "tail_advantage" and "update_auc" → the numbers of every adversary but the random one, for
    each target model. Numbers that no attack gives are left out.

    The advantage is above 0 where forgotten samples look familiar, and below 0 where they look less familiar than
    samples that were never seen. Canaries have "update_auc" alone, because the one-run audit gives the others. {} if a
    model has only forgotten or only held-out samples.
    """
    target = evaluation.membership[evaluation.target]
    if not _game.sided(target):
        return {}
    of_updates = _several({"update_auc": updates(evaluation, target)}, target)
    if target.pair is not None:
        return of_updates
    return advantages(evaluation.scores, evaluation.audited.phi(), target) | of_updates


def advantages(
    scores: dict[Key, tuple[np.ndarray, np.ndarray]], phi: np.ndarray, target: Membership
) -> dict[str, Effect]:
    """Return "advantage" and "tail_advantage" → the effects of each target model and sample, for every adversary
    but the random control.

    ``scores``: (attack, form) → score and decision, [models, samples] each. ``phi`` float64 [models, samples]: the φ of
    the target models, by which the direction of an attack is found; ``target``: their memberships. The tail advantage
    leaves out attacks with scores that are NaN. {} without adversaries.
    """
    rules = _game.of_models(target)
    sides, signed, tails = target.forget | target.heldout, {}, {}
    # Samples count equally in a tail: its threshold comes from scores of other samples with other weights.
    forget, heldout = (rules.forget > 0) * 1.0, (rules.heldout > 0) * 1.0
    for (attack, form), (score, decision) in scores.items():
        if attack == "random":
            continue
        direction = familiar(score=score, phi=phi, rows=sides) if form == "unlearned" else 1
        signed[f"{attack}/{form}"] = _game.advantage(rules, decision).times(direction)
        if not np.isnan(score[sides]).any():
            towards_familiar = direction * score[:, rules.columns]
            tails[f"{attack}/{form}"] = tail.advantage(score=towards_familiar, forget=forget, heldout=heldout)
    return _several({"advantage": signed, "tail_advantage": tails}, target)


def familiar(*, score: np.ndarray, phi: np.ndarray, rows: np.ndarray) -> int:
    """Return the direction of an attack: −1 if its scores fall where φ, the confidence in the label, rises, by a
    correlation of ranks; else +1. Attacks that learn from unlearned models may have either direction.

    ``score`` and ``phi`` float64 [models, samples]; ``rows`` bool [models, samples]: which of them are ranked, all
    models together. Only the scores are used, never who was forgotten. So if forgotten and held-out samples do not
    differ, the sign of a chance difference stays a fair coin.
    """
    finite = rows & ~np.isnan(score)
    if not finite.any():
        return 1
    # The argsort of an argsort is the rank of each value, from 0.
    ranks, ranks_of_phi = (value[finite].argsort(kind="stable").argsort(kind="stable") for value in (score, phi))
    _, group = np.unique(score[finite], return_inverse=True)
    mean_ranks = (np.bincount(group, ranks) / np.bincount(group))[group]  # equal scores share their mean rank
    return -1 if (mean_ranks - mean_ranks.mean()) @ (ranks_of_phi - ranks_of_phi.mean()) < 0 else 1


def updates(evaluation: Evaluation, target: Membership) -> dict[str, crossed.PerModel]:
    """Return "attack/both" → the AUC of each model, forgotten against held-out samples, by every attack that compares
    the models before unlearning with those after it.

    {} if a model has only forgotten or only held-out samples. Attacks with a score that is NaN on such a sample are
    left out.
    """
    if not _game.sided(target):
        return {}
    rules, sides = _game.of_models(target), target.forget | target.heldout
    return {
        f"{name}/both": _game.auc(score[:, rules.columns], rules.forget, rules.heldout)
        for name, score in evaluation.updates.items()
        if not np.isnan(score[sides]).any()
    }


def update_rows(evaluation: Evaluation, target: Membership) -> list[Row]:
    """Return the row "update_auc", the mean over models, of every attack that compares models before unlearning with
    those after it. ``target``: the memberships of the target models."""
    aucs = updates(evaluation, target)
    estimates = _game.estimates(_game.of_models(target), [*aucs.values()]) if aucs else []
    return [
        row(attack=name, metric="update_auc", estimate=noted(estimate, after=NOT_AT_CHANCE))
        for name, estimate in zip(aucs, estimates, strict=True)
    ]


def _several(numbers: dict[str, dict[str, crossed.PerModel]], target: Membership) -> dict[str, Effect]:
    """Return the effects of ``numbers``, metric → attack → number of each model. Metrics without attacks are left out.
    ``target``: the memberships of the models."""
    places = {"unit": target.block, "split": target.split, "index": _game.of_models(target).columns}
    return {
        metric: several([*of_attacks], [*of_attacks.values()], **places, rule=(DECIDES | UPDATES)[metric])
        for metric, of_attacks in numbers.items()
        if of_attacks
    }


def evaluate(
    *, scores: dict[Key, tuple[np.ndarray, np.ndarray]], target: Membership, sets: dict[str, list[Key]],
    rng: np.random.Generator, fprs: Sequence[float] = FPRS, draws: int = crossed.DRAWS,
) -> list[Row]:  # fmt: skip
    """Return all rows of the SWAP test for one method: advantage, auc, mia_score, tpr_at_fpr, q, q_crossfit, q_sd.

    ``scores``: (attack, form) → score float [models, samples] and decision bool [models, samples] of target models.
    ``target``: their memberships, whose ``weight`` is the sensitivity distribution. ``sets``: name → the adversaries,
    one at least, over which Q takes the maximum; ``draws``: bootstrap replicates.

    The attack column holds "attack/form", or the set's name for q; ``pair`` is set where one pair is evaluated alone.
    ``n`` counts samples, pairs for q_sd. Raises ValueError for a model without forgotten or held-out samples.
    """
    rules, keys = _game.of_models(target), list(scores)
    names = ["/".join(key) for key in keys]
    decisions = [decision for _, decision in scores.values()]
    advantages = crossed.combine((_game.advantage(rules, d) for d in decisions), split=rules.split)
    pairs = np.unique(rules.block).tolist()
    whole = crossed.weighted_mean(advantages, share=_game.share(rules), unit=rules.block)
    # The signed advantages, and the number of samples, of all pairs together (None) and of each pair alone.
    readings: dict[int | None, tuple[crossed.Reading, int]] = {None: (whole, len(rules.columns))}
    for pair in pairs:
        readings[pair] = crossed.weighted_mean(advantages, share=_game.share(rules, pair)), _game.size(rules, pair)
    table = [
        row(attack=name, metric="advantage", pair=pair, estimate=estimate)
        for pair, (reading, n) in readings.items()
        for name, estimate in zip(names, adv_bar(reading, n=n), strict=True)
    ]
    for name, members in sets.items():
        positions = [keys.index(key) for key in members]
        qualities = {
            pair: quality(reading.only(positions), n=n, rng=rng, names=[names[i] for i in positions], draws=draws)
            for pair, (reading, n) in readings.items()
        }
        table += [row(attack=name, metric="q", pair=pair, estimate=q) for pair, q in qualities.items()]
        spread = stats.sd_interval(values=np.array([qualities[pair].value for pair in pairs]))
        table.append(row(attack=name, metric="q_sd", estimate=spread))
        unbiased, _ = _crossfit.quality(rules, [decisions[i] for i in positions], whole.only(positions), rng=rng)
        table.append(row(attack=name, metric="q_crossfit", estimate=unbiased))
    for name, (score, _) in zip(names, scores.values(), strict=True):
        table += separate(rules, score[:, rules.columns], name, fprs)
    return table


def separate(rules: _game.Game, score: np.ndarray, name: str, fprs: Sequence[float]) -> list[Row]:
    """Return the rows "auc", "mia_score" (1 − AUC) and "tpr_at_fpr" of the attack ``name`` by its ``score`` float64
    [models, columns of the game]: over all pairs, "mia_score" also for each pair of splits (field ``pair``). They have
    no numbers if a forgotten or held-out sample has the score NaN."""
    if np.isnan(score[(rules.forget > 0) | (rules.heldout > 0)]).any():
        empty = stats.empty(n=len(rules.columns), note="the attack's score is NaN for some samples")
        keys = [("auc", None), ("mia_score", None), *(("tpr_at_fpr", fpr) for fpr in fprs)]
        return [row(attack=name, metric=metric, rate=fpr, estimate=empty) for metric, fpr in keys]
    per_model = _game.auc(score, rules.forget, rules.heldout)
    aucs = {pair: _game.estimates(rules, [per_model], pair)[0] for pair in (None, *np.unique(rules.block).tolist())}
    return [
        row(attack=name, metric="auc", estimate=aucs[None]),
        *(row(attack=name, metric="mia_score", pair=pair, estimate=one_minus(auc)) for pair, auc in aucs.items()),
        *(row(attack=name, metric="tpr_at_fpr", rate=fpr, estimate=tpr(rules, score, fpr)) for fpr in fprs),
    ]


def tpr(rules: _game.Game, score: np.ndarray, fpr: float) -> stats.Estimate:
    """Return the mean over splits of the TPR at ``fpr`` (`stats.readings.tpr_at`), without a number where there are too
    few held-out samples for this rate; ``score`` float64 [models, columns of the game]."""
    rate = tpr_at(score, rules.forget, rules.heldout, fpr=fpr)
    if isinstance(rate, str):  # the reason why there is none
        return stats.empty(n=len(rules.columns), note=rate)
    return rate.annotated(_game.estimates(rules, [rate.of_models])[0])


def _magnitude(reading: crossed.Reading, half_width: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the absolute value of each signed advantage, and the lower and upper limits of its interval, in [0, 1].
    ``half_width`` float64 [adversaries]: of the intervals of the signed advantages."""
    size = np.abs(reading.value)
    return size, np.maximum(size - half_width, 0.0), np.minimum(size + half_width, 1.0)
