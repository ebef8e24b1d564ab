"""The SWAP test: Unlearning Quality Q, the advantages behind it, and the MIA score (Tu, Hu and Ma 2024)."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from unlearning_audit.evaluation.effects import OF_SAMPLES, DecisionRule, Effect, several
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Membership, Row, _crossfit, _game, no_value, noted, one_minus, or_reason, row
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings
from unlearning_audit.stats import Estimate, crossed, empty, sd_interval, tail
from unlearning_audit.stats.readings import tpr_at

#: The false positive rates at which TPR is given if a study does not say.
FPRS = (0.01, 0.001)
Key = tuple[str, str]  # attack, and its form: from which shadow models it learned ("trained" or "unlearned")


def advantage_bound(*, epsilon: float, delta: float) -> float:
    """Return the largest advantage against (ε, δ)-certified removal, 2(1 − (2 − 2δ)/(e^ε + 1)) cut to [0, 1] (Theorem
    3.6).

    Beyond ε = ln 3 (δ = 0) the theorem's value exceeds 1 and bounds nothing. ε ≥ 0 and 0 ≤ δ ≤ 1.
    """
    # The same number, written with tanh and the sigmoid, so that a large ε does not overflow.
    return float(min(2 * (np.tanh(epsilon / 2) + 2 * delta * special.expit(-epsilon)), 1.0))


def lower_bound(*, epsilon: float, delta: float) -> float:
    """Return the least Q of (ε, δ)-certified removal, (4 − 4δ)/(e^ε + 1) − 1 cut to [0, 1] (Corollary 3.8).

    The uncut value falls to −1 for large ε, where the corollary bounds nothing.

    The bound also holds for a model that was trained with (ε, δ)-differential privacy for one sample and did not
    unlearn, although the privacy of one sample does not remove the whole forget set at the same (ε, δ). The reason:
    over all splits, exchanging one forgotten for one held-out sample is (2ε, (1 + e^ε)δ)-DP. So the advantage Adv of a
    weak adversary is at most tanh ε + 2δ(1 + e^ε)/(1 + e^2ε), which is never above `advantage_bound`.
    """
    return 1.0 - advantage_bound(epsilon=epsilon, delta=delta)


def adv_bar(reading: crossed.Reading, *, n: int) -> list[Estimate]:
    """Return Adv̄ of each adversary, the absolute value of its mean advantage, with an interval.

    The lower limit is 0 where the interval of the signed advantage contains 0. The note has the signed advantage.

    Parameters
    ----------
    reading
        The signed advantages, from `crossed.weighted_mean`.
    n
        The number of samples.
    """
    limits = zip(*_magnitude(reading, crossed.half_widths(reading)), reading.value, strict=True)
    return [
        Estimate(float(size), float(low), float(high), n, crossed.annotated(reading, f"signed {signed:+.4f}"))
        for size, low, high, signed in limits
    ]


def quality(
    reading: crossed.Reading, *, n: int, rng: np.random.Generator, names: Sequence[str] = (), draws: int = crossed.DRAWS
) -> Estimate:
    """Return Q = 1 − max over adversaries of Adv̄, from the advantages of all of them (Definition 3.7).

    The lower limit of Q is 1 minus the largest upper limit of an advantage, and the upper limit of Q is 1 minus the
    largest lower limit.

    Parameters
    ----------
    reading
        The signed advantages, from `crossed.weighted_mean`.
    n
        The number of samples.
    names
        The names of the adversaries; if they are given, the note names the strongest.
    draws
        Bootstrap replicates from ``rng``, by which the intervals of the advantages hold for all adversaries at once.
    """
    size, low, high = _magnitude(reading, crossed.joint_half_widths(reading, rng=rng, draws=draws))
    note = crossed.annotated(reading, f"strongest: {names[int(size.argmax())]}" if names else "")
    return Estimate(float(1 - size.max()), float(1 - high.max()), float(1 - low.max()), n, note)


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
    """Return the rows of all attacks on forgotten against held-out samples of the target models (advantages, AUCs, MIA
    scores, and TPRs at ``options.fpr``), and of each set of attacks (Q, its sd over pairs, and cross-fitted Q). The
    AUCs of attacks that compare models before and after unlearning follow.

    An attack that could not run has a row "advantage" with the reason in place of a number.
    """
    target = evaluation.membership[evaluation.target]
    missing = [no_value("advantage", why, attack=name) for name, why in evaluation.missing.items()]
    return rows_of_scores(evaluation, target, rng, options.fpr) + missing + update_rows(evaluation, target)


def rows_of_scores(
    evaluation: Evaluation, target: Membership, rng: np.random.Generator, fprs: Sequence[float] = FPRS
) -> list[Row]:
    """Return advantages, AUCs and Q (the rows of `evaluate`) on the forgotten and held-out samples of the models
    ``target``.

    Q is over three sets of adversaries: those of the paper, the adaptive ones, and all but the random control. A set of
    which the study runs no adversary has no rows. A set of which an adversary failed has no Q, because the Q of the
    remaining adversaries would be another number under the same name. Models that are not swapped pairs have no Q, and
    no rows of single pairs. In place of a missing Q, a row gives the reason. Without scores, only rows with reasons are
    returned. If rows cannot be computed of imported models, a row "advantage" has the reason; else ValueError is
    raised.
    """
    why_no_q = evaluation.why_unpaired
    if not why_no_q and evaluation.imported and not evaluation.scores:
        why_no_q = "no attack could be asked"
    sets, reasons = ({}, [no_value("q", why_no_q, attack="adaptive")]) if why_no_q else adversaries(evaluation)
    if not evaluation.scores:
        return reasons

    def evaluated() -> list[Row]:
        """Return the rows of all attacks of ``evaluation``, and of all ``sets`` of attacks that have a member, on the
        models ``target``."""
        used = {name: members for name, members in sets.items() if members}
        return evaluate(scores=evaluation.scores, target=target, sets=used, rng=rng, fprs=fprs, draws=evaluation.draws)

    lines = or_reason(evaluation, evaluated, metric="advantage")
    return reasons + [line for line in lines if line.pair is None or not why_no_q]


def adversaries(evaluation: Evaluation) -> tuple[dict[str, list[Key]], list[Row]]:
    """Return the sets of adversaries over which Q takes the maximum, name → (attack, form) of each member. A set with a
    failed attack is left out; the second list has a row with the reason for each such set.

    In the form "trained" an attack learned from shadow models before unlearning, in "unlearned" from those after it.
    The attack "random" is a control, which the set "extended" leaves out.
    """
    paper, adaptive, scores = evaluation.sets["paper"], evaluation.sets["adaptive"], evaluation.scores
    sets = {
        "paper": [(attack, form) for attack, form in scores if attack in paper and form == "trained"],
        "adaptive": [(attack, form) for attack, form in scores if attack in adaptive],
        "extended": [(attack, form) for attack, form in scores if attack != "random"],
    }
    failed = {attack: why for attack, why in evaluation.failed_attacks.items() if attack != "random"}
    reasons = []
    # The set "extended" contains every attack, so every failed one.
    for name, attacks in {"paper": paper, "adaptive": adaptive, "extended": failed}.items():
        failed_members = [attack for attack in failed if attack in attacks]
        if failed_members:
            del sets[name]
            first = failed_members[0]
            reasons.append(no_value("q", f"the attack {first} failed: {failed[first]}", attack=name))
    return sets, reasons


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


def effects(evaluation: Evaluation) -> dict[str, Effect]:
    """Return "advantage", "tail_advantage" and "update_auc" → the numbers of every adversary but the random one, for
    each target model. Numbers that no attack gives are left out.

    The advantage is the share of yes on forgotten minus that on held-out samples: above 0 where forgotten samples look
    familiar, below 0 where they look less familiar than samples that were never seen. The tail advantage is the share
    of forgotten samples above the 99th percentile of held-out scores, minus 1 %. "update_auc" is the AUC of attacks
    that compare models before and after unlearning. Canaries have "update_auc" alone, because the one-run audit gives
    the two advantages. {} if a model has only forgotten or only held-out samples.
    """
    target = evaluation.membership[evaluation.target]
    if not _game.sided(target):
        return {}
    of_updates = _effects_of_attacks({"update_auc": update_aucs(evaluation, target)}, target)
    if target.pair is not None:
        return of_updates
    return advantages(evaluation.scores, evaluation.audited.phi(), target) | of_updates


def advantages(
    scores: dict[Key, tuple[np.ndarray, np.ndarray]], phi: np.ndarray, target: Membership
) -> dict[str, Effect]:
    """Return "advantage" and "tail_advantage" → the effects of each target model and sample, for every adversary but
    the random control.

    The first is the share of yes on forgotten minus that on held-out samples, the second the share of forgotten samples
    above the 99th percentile of held-out scores, minus 1 %. The tail advantage leaves out attacks with scores that are
    NaN. {} without adversaries. Raises ValueError for a model without forgotten or without held-out samples of positive
    weight.

    Parameters
    ----------
    scores
        (attack, form) → score and decision, [models, samples] each. An attack in the form "unlearned", which learned
        from unlearned models, may score forgotten samples high because they look less familiar. The numbers of such an
        attack change their sign.
    phi
        float64 [models, samples]: φ of the target models, which shows the direction of such attacks.
    target
        The memberships of the target models.
    """
    game = _game.of_models(target)
    sides, signed, tails = target.forget | target.heldout, {}, {}
    # Samples count equally in a tail: its threshold comes from scores of other samples with other weights.
    forget, heldout = (game.forget > 0) * 1.0, (game.heldout > 0) * 1.0
    for (attack, form), (score, decision) in scores.items():
        if attack == "random":
            continue
        # 1 if high scores mean familiar, else −1
        direction = familiar_direction(score=score, phi=phi, rows=sides) if form == "unlearned" else 1
        signed[f"{attack}/{form}"] = _game.advantage(game, decision).times(direction)
        if not np.isnan(score[sides]).any():
            towards_familiar = direction * score[:, game.columns]
            tails[f"{attack}/{form}"] = tail.advantage(score=towards_familiar, forget=forget, heldout=heldout)
    return _effects_of_attacks({"advantage": signed, "tail_advantage": tails}, target)


def familiar_direction(*, score: np.ndarray, phi: np.ndarray, rows: np.ndarray) -> int:
    """Return the direction of an attack: −1 if its scores correlate negatively, by ranks, with φ, the confidence in the
    label; else +1, also if no score is a number.

    Attacks that learn from unlearned models may have either direction. The direction does not depend on which samples
    were forgotten. So if forgotten and held-out samples do not differ, the sign of a chance difference stays a fair
    coin.

    Parameters
    ----------
    score, phi
        float64 [models, samples].
    rows
        bool [models, samples]: the samples of each model that are ranked, those of all models together.
    """
    finite = rows & ~np.isnan(score)
    if not finite.any():
        return 1
    # The argsort of an argsort is the rank of each value, from 0.
    ranks, ranks_of_phi = (value[finite].argsort(kind="stable").argsort(kind="stable") for value in (score, phi))
    _, group = np.unique(score[finite], return_inverse=True)  # equal scores are one group
    mean_ranks = (np.bincount(group, ranks) / np.bincount(group))[group]  # equal scores share their mean rank
    covariance = (mean_ranks - mean_ranks.mean()) @ (ranks_of_phi - ranks_of_phi.mean())
    return -1 if covariance < 0 else 1


def update_aucs(evaluation: Evaluation, target: Membership) -> dict[str, crossed.PerModel]:
    """Return "attack/both" → the AUC of each model, forgotten against held-out samples, by every attack that compares
    the models before unlearning with those after it.

    {} if a model has only forgotten or only held-out samples. Attacks with a score that is NaN on such a sample are
    left out.
    """
    if not _game.sided(target):
        return {}
    game, sides = _game.of_models(target), target.forget | target.heldout
    return {
        f"{name}/both": _game.auc(score[:, game.columns], game.forget, game.heldout)
        for name, score in evaluation.updates.items()
        if not np.isnan(score[sides]).any()
    }


def update_rows(evaluation: Evaluation, target: Membership) -> list[Row]:
    """Return the row "update_auc", the mean over models, of every attack that compares models before unlearning with
    those after it, on forgotten against held-out samples, unless it gives one of these the score NaN. [] without such
    attacks, or if a model has only one of the two sides. ``target``: the memberships of the target models."""
    aucs = update_aucs(evaluation, target)
    estimates = _game.estimates(_game.of_models(target), [*aucs.values()]) if aucs else []
    return [
        row(attack=name, metric="update_auc", estimate=noted(estimate, after=NOT_AT_CHANCE))
        for name, estimate in zip(aucs, estimates, strict=True)
    ]


def _effects_of_attacks(numbers: dict[str, dict[str, crossed.PerModel]], target: Membership) -> dict[str, Effect]:
    """Return metric → the effect with its ``numbers`` by all attacks.

    Parameters
    ----------
    numbers
        Metric → attack → number of each model; metrics without attacks are left out.
    target
        The memberships of the models.
    """
    places = {"unit": target.block, "split": target.split, "index": _game.of_models(target).columns}
    return {
        metric: several([*of_attacks], [*of_attacks.values()], **places, rule=(DECIDES | UPDATES)[metric])
        for metric, of_attacks in numbers.items()
        if of_attacks
    }


def evaluate(
    *,
    scores: dict[Key, tuple[np.ndarray, np.ndarray]],
    target: Membership,
    sets: dict[str, list[Key]],
    rng: np.random.Generator,
    fprs: Sequence[float] = FPRS,
    draws: int = crossed.DRAWS,
) -> list[Row]:
    """Return all rows of the SWAP test for one method: advantage of each attack; q, q_sd and q_crossfit of each set of
    attacks; then auc, mia_score and tpr_at_fpr of each attack.

    Q is 1 minus the largest absolute advantage of a set's attacks. The attack column holds "attack/form", or the set's
    name for q; ``pair`` is set where one pair is evaluated alone. ``n`` counts samples, and for q_sd pairs.

    Parameters
    ----------
    scores
        (attack, form) → score float and decision bool, [target models, samples] each.
    target
        The memberships of the target models, whose ``weight`` is the sensitivity distribution.
    sets
        Name of a set → its attacks, one at least.
    fprs
        The false positive rates.
    draws
        Bootstrap replicates.

    Raises
    ------
    ValueError
        For a model without forgotten or without held-out samples of positive weight.
    """
    game, keys = _game.of_models(target), list(scores)
    names = ["/".join(key) for key in keys]
    decisions = [decision for _, decision in scores.values()]
    # The signed advantage of every adversary in every split.
    advantages = crossed.combine((_game.advantage(game, decision) for decision in decisions), split=game.split)
    pairs = np.unique(game.block).tolist()
    whole = crossed.weighted_mean(advantages, share=_game.share(game), unit=game.block)
    # The mean advantages, and the number of samples, of all pairs together (None) and of each pair alone.
    readings: dict[int | None, tuple[crossed.Reading, int]] = {None: (whole, len(game.columns))}
    for pair in pairs:
        readings[pair] = crossed.weighted_mean(advantages, share=_game.share(game, pair)), _game.size(game, pair)
    lines = [
        row(attack=name, metric="advantage", pair=pair, estimate=estimate)
        for pair, (reading, n) in readings.items()
        for name, estimate in zip(names, adv_bar(reading, n=n), strict=True)
    ]
    for name, members in sets.items():
        positions = [keys.index(key) for key in members]  # of the members of this set among all adversaries
        # Q over this set, of all pairs together (None) and of each pair.
        qualities = {
            pair: quality(reading.only(positions), n=n, rng=rng, names=[names[i] for i in positions], draws=draws)
            for pair, (reading, n) in readings.items()
        }
        lines += [row(attack=name, metric="q", pair=pair, estimate=q) for pair, q in qualities.items()]
        spread = sd_interval(values=np.array([qualities[pair].value for pair in pairs]))
        lines.append(row(attack=name, metric="q_sd", estimate=spread))
        unbiased, _weights = _crossfit.quality(game, [decisions[i] for i in positions], whole.only(positions), rng=rng)
        lines.append(row(attack=name, metric="q_crossfit", estimate=unbiased))
    for name, (score, _decision) in zip(names, scores.values(), strict=True):
        lines += rows_of_attack(game, score[:, game.columns], name, fprs)
    return lines


def rows_of_attack(game: _game.Game, score: np.ndarray, name: str, fprs: Sequence[float]) -> list[Row]:
    """Return the rows "auc", "mia_score" (1 − AUC) and "tpr_at_fpr" of the attack ``name`` by its ``score`` float64
    [models, columns of the game]: over all pairs, "mia_score" also for each pair of splits (field ``pair``). The rows
    have no numbers if a forgotten or held-out sample has the score NaN."""
    if np.isnan(score[(game.forget > 0) | (game.heldout > 0)]).any():
        estimate = empty(n=len(game.columns), note="the attack's score is NaN for some samples")
        keys = [("auc", None), ("mia_score", None), *(("tpr_at_fpr", fpr) for fpr in fprs)]
        return [row(attack=name, metric=metric, rate=fpr, estimate=estimate) for metric, fpr in keys]
    per_model = _game.auc(score, game.forget, game.heldout)
    # The AUC of all pairs together (None) and of each pair; [0] is the estimate of the one number per model.
    aucs = {pair: _game.estimates(game, [per_model], pair)[0] for pair in (None, *np.unique(game.block).tolist())}
    return [
        row(attack=name, metric="auc", estimate=aucs[None]),
        *(row(attack=name, metric="mia_score", pair=pair, estimate=one_minus(auc)) for pair, auc in aucs.items()),
        *(row(attack=name, metric="tpr_at_fpr", rate=fpr, estimate=tpr(game, score, fpr)) for fpr in fprs),
    ]


def tpr(game: _game.Game, score: np.ndarray, fpr: float) -> Estimate:
    """Return the mean over splits of the TPR at ``fpr`` (`stats.readings.tpr_at`), without a number where there are too
    few held-out samples for this rate; ``score`` float64 [models, columns of the game]. The lower limit is lowered by
    how much too high the TPR is expected to be, because few held-out samples set its threshold."""
    found = tpr_at(score, game.forget, game.heldout, fpr=fpr)
    if isinstance(found, str):  # the reason why there is no TPR
        return empty(n=len(game.columns), note=found)
    return found.corrected(_game.estimates(game, [found.of_models])[0])


def _magnitude(reading: crossed.Reading, half_width: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the absolute value of each signed advantage, and the lower and upper limits of its interval, in [0, 1].
    ``half_width`` float64 [adversaries]: of the intervals of the signed advantages."""
    size = np.abs(reading.value)
    return size, np.maximum(size - half_width, 0.0), np.minimum(size + half_width, 1.0)
